package connect

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Argv0 { // Without an argument: else it is another one.
		later := time.Now().Add(31 * 24 * time.Hour)
		tidy(later)
		fmt.Println("tidied")
		if len(os.Args) > 2 {
			time.Sleep(time.Hour) // Until it is killed.
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

func TestWhatNobodyUsesIsRemoved(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	self, err := os.Executable()
	require.NoError(t, err)
	copyOf := func(digit string) string {
		path := filepath.Join(dir, strings.Repeat(digit, 64), Argv0)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, exec.Command("cp", self, path).Run())
		return path
	}
	used := copyOf("1")
	runs := exec.Command(used, "and", "stay")
	out, err := runs.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, runs.Start())
	defer func() {
		_ = runs.Process.Kill() // It stays until then.
		_ = runs.Wait()         // As said.
	}()
	line := make([]byte, 6)
	_, err = out.Read(line)
	require.NoError(t, err)

	own, unused := copyOf("2"), copyOf("3")
	mark := "limpet-" + rand.Text()
	parts := []string{"part-" + mark, "part-" + mark + ".out", "try-" + mark}
	others := []string{"mine", "part-1", "try-1", "part-" + mark + ".txt", strings.Repeat("4", 64) + "/mine"} // Some may be beside it, behind a link.
	outside := filepath.Join(testenv.TempDir(t), Argv0)
	links := []string{"part-limpet-" + strings.Repeat("A", 26), strings.Repeat("5", 64)}
	require.NoError(t, os.Mkdir(filepath.Join(dir, strings.Repeat("4", 64)), 0o700))
	for _, name := range append(parts, others...) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, links[0])))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, links[1])))
	b, err := exec.Command(own).CombinedOutput()
	require.NoError(t, err, string(b))
	assert.FileExists(t, own)
	assert.FileExists(t, used, "it runs")
	assert.NoDirExists(t, filepath.Dir(unused))
	for _, name := range parts {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}
	for _, name := range append(others, links...) {
		assert.FileExists(t, filepath.Join(dir, name), "it was not brought")
	}
	assert.FileExists(t, outside)
}
