package limpet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// The README's program is the Example that is compiled and run.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("shell/example_test.go")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?s)func main\(\) \{\n(.*?)\n\}\n`).FindSubmatch(readme)
	require.NotNil(t, shown)
	run := regexp.MustCompile(`(?s)func Example\(\) \{\n(.*?)\n\t// Output:`).FindSubmatch(example)
	require.NotNil(t, run)
	assert.Equal(t, strings.TrimSpace(string(run[1])), strings.TrimSpace(string(shown[1])))
}

// The numbers that the pages show are those of the last full run.
func TestTheTablesAreThoseOfTheBenchmark(t *testing.T) {
	latest, err := os.ReadFile("bench/results/latest.md")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?s)<!-- bench -->\n(.*?)\n<!-- /bench -->`)

	whole, err := os.ReadFile("bench/README.md")
	require.NoError(t, err)
	table := shown.FindSubmatch(whole)
	require.NotNil(t, table)
	assert.Equal(t, strings.TrimSpace(string(latest)), strings.TrimSpace(string(table[1])))

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := shown.FindSubmatch(readme)
	require.NotNil(t, rows)
	lines := strings.Split(strings.TrimSpace(string(rows[1])), "\n")
	assert.Len(t, lines, 2+5)
	for _, line := range lines {
		assert.Contains(t, string(latest), line+"\n")
	}
}

// The page's session is run, and prints what it shows.
func TestTheExampleOfSessionsIsTrue(t *testing.T) {
	testenv.Slow(t)
	page, err := os.ReadFile("docs/sessions.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```sh\n(\\$ .*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin, "./cmd/limpet").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var printed strings.Builder
	for _, line := range strings.Split(string(shown[1]), "\n") {
		script, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		cmd := exec.Command("bash", "-c", script+" 2>&1")
		cmd.Dir = "/tmp"
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+bin+"/state")
		out, _ := cmd.CombinedOutput() // What it prints is what counts.
		printed.WriteString(line + "\n" + string(out))
	}
	assert.Equal(t, string(shown[1]), printed.String())
}

// What the documents link to is there.
func TestDocsThatAreLinkedExist(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "docs/protocol.md", "docs/sessions.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), string(link[1])))
			assert.NoError(t, err, "linked in %s", page)
		}
	}
}
