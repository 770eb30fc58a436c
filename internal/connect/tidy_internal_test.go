package connect

import (
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
	other := filepath.Join(dir, "mine")
	for _, path := range []string{filepath.Join(dir, "part-x"), other} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	b, err := exec.Command(own).CombinedOutput()
	require.NoError(t, err, string(b))
	assert.FileExists(t, own)
	assert.FileExists(t, used, "it runs")
	assert.NoDirExists(t, filepath.Dir(unused))
	assert.NoFileExists(t, filepath.Join(dir, "part-x"))
	assert.FileExists(t, other, "it was not brought")
}
