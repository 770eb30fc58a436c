package limpet_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// What the documents link to is there.
func TestDocsThatAreLinkedExist(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "docs/protocol.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllSubmatch(text, -1) {
			_, err := os.Stat(string(link[1]))
			assert.NoError(t, err, "linked in %s", page)
		}
	}
}
