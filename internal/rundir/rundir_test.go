package rundir_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/rundir"
)

const helperVar = "LIMPET_TEST_HELPER"

func TestMain(m *testing.M) {
	switch role := os.Getenv(helperVar); role {
	case "":
		os.Exit(m.Run())
	case "live":
		// A program with a session, until its stdin ends or it is killed.
		p, err := rundir.Acquire(os.Getenv("LIMPET_TEST_DIR"), "program", false)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Path)
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // The end is what is waited for.
	default:
		fmt.Printf("no helper %q\n", role)
		os.Exit(2)
	}
}

func own(base string) string { return filepath.Join(base, "limpet-"+strconv.Itoa(os.Getuid())) }

func TestTheDirectoriesArePrivate(t *testing.T) {
	base := t.TempDir()
	p, err := rundir.Acquire(base, "x", false)
	require.NoError(t, err)
	defer p.Release()
	assert.Equal(t, filepath.Join(own(base), "x"), p.Path)
	for path, mode := range map[string]os.FileMode{own(base): 0o700, p.Path: 0o700, filepath.Join(p.Path, "lock"): 0o600} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, st.Mode().Perm(), path)
	}
}

// A session that runs as another user reaches what is its own by its name.
func TestOthersCanPassWhereTheyShall(t *testing.T) {
	base := t.TempDir()
	modes := func(p *rundir.Program) []os.FileMode {
		var modes []os.FileMode
		for _, path := range []string{filepath.Dir(p.Path), p.Path, filepath.Join(p.Path, "lock")} {
			st, err := os.Stat(path)
			require.NoError(t, err)
			modes = append(modes, st.Mode().Perm())
		}
		return modes
	}
	private, err := rundir.Acquire(base, "a", false)
	require.NoError(t, err)
	defer private.Release()
	p, err := rundir.Acquire(base, "b", true)
	require.NoError(t, err)
	defer p.Release()
	passable := []os.FileMode{0o711, 0o711, 0o600}
	assert.Equal(t, passable, modes(p))
	require.NoError(t, os.RemoveAll(filepath.Dir(p.Path)))
	require.NoError(t, p.Ensure())
	assert.Equal(t, passable, modes(p), "made anew")
	assert.Equal(t, []os.FileMode{0o700, 0o700, 0o600}, modes(private))
}

func TestTheLastReleaseRemovesTheDirectory(t *testing.T) {
	base := t.TempDir()
	a, err := rundir.Acquire(base, "a", false)
	require.NoError(t, err)
	b, err := rundir.Acquire(base, "b", false)
	require.NoError(t, err)
	assert.Equal(t, a.Path, b.Path, "a program has one directory")
	a.Release()
	assert.DirExists(t, b.Path)
	b.Release()
	assert.NoDirExists(t, b.Path)
	c, err := rundir.Acquire(base, "c", false)
	require.NoError(t, err)
	assert.DirExists(t, c.Path)
	c.Release()
}

func TestADirectoryThatIsTooOpenIsClosed(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Mkdir(own(base), 0o777))
	require.NoError(t, os.Chmod(own(base), 0o777))
	p, err := rundir.Acquire(base, "x", false)
	require.NoError(t, err)
	defer p.Release()
	st, err := os.Stat(own(base))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

func TestWhatOthersCouldHaveMadeIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"a symlink", func(t *testing.T, path string) { require.NoError(t, os.Symlink(t.TempDir(), path)) }},
		{"a dangling symlink", func(t *testing.T, path string) { require.NoError(t, os.Symlink("/no/such", path)) }},
		{"a file", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }},
		{"another user's", func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o700))
			if err := os.Chown(path, 12345, 12345); err != nil {
				t.Skipf("not permitted: %v", err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			base := t.TempDir()
			test.make(t, own(base))
			_, err := rundir.Acquire(base, "x", false)
			require.ErrorContains(t, err, "is not a directory of ours; remove it, or use another runtime directory")
			assert.ErrorContains(t, err, own(base))
		})
	}
}

func TestAMissingBaseIsAnError(t *testing.T) {
	_, err := rundir.Acquire("/no/such", "x", false)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// live starts another program with a session below base.
func live(t *testing.T, base string) (path string, end func(kill bool)) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperVar+"=live", "LIMPET_TEST_DIR="+base)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	path, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return path[:len(path)-1], func(kill bool) {
		if kill {
			_ = cmd.Process.Kill() // It cannot have ended.
		}
		_ = stdin.Close() // It may be broken.
		_ = cmd.Wait()    // Killed, or not.
	}
}

func TestSweepRemovesWhatDeadProgramsLeftAndNothingElse(t *testing.T) {
	base := t.TempDir()
	path, end := live(t, base)
	require.DirExists(t, path)
	rundir.Sweep(own(base))
	assert.DirExists(t, path, "its program lives")
	end(true)
	require.DirExists(t, path, "it was killed")

	fresh, old := filepath.Join(own(base), "fresh"), filepath.Join(own(base), "old")
	require.NoError(t, os.Mkdir(fresh, 0o700))
	require.NoError(t, os.Mkdir(old, 0o700))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(old, long, long))

	rundir.Sweep(own(base))
	assert.NoDirExists(t, path)
	assert.NoDirExists(t, old)
	assert.DirExists(t, fresh, "its program may be just about to lock it")
	rundir.Sweep(filepath.Join(base, "none"))
}

func TestTheFirstAcquireSweeps(t *testing.T) {
	base := t.TempDir()
	path, end := live(t, base)
	end(true)
	require.DirExists(t, path)
	p, err := rundir.Acquire(base, "mine", false)
	require.NoError(t, err)
	defer p.Release()
	assert.NoDirExists(t, path)
}
