package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/transport"
)

// lookIn has bwrap looked for in these directories, and says in which it is
// otherwise.
func lookIn(t *testing.T, dirs ...string) (before []string) {
	t.Helper()
	before = sandbox.SetBackendDirs(dirs)
	t.Cleanup(func() { sandbox.SetBackendDirs(before) })
	return before
}

// aBackend has a shell script used as bwrap.
func aBackend(t *testing.T, script string) (path string) {
	t.Helper()
	path = filepath.Join(testenv.TempDir(t), "above", "bin", "bwrap")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	lookIn(t, filepath.Dir(path))
	return path
}

// version011 is how the script begins of a bwrap that is asked for more than that.
const version011 = `[ "$1" = --version ] && echo bubblewrap 0.11.0 && exit
`

// notOurs reports whether the tests' user is none whose bwrap is trusted: only
// root's is. The error must be about that then.
func notOurs(t *testing.T, err error) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return false
	}
	require.ErrorIs(t, err, sandbox.ErrUntrustedBackend)
	assert.ErrorContains(t, err, "bwrap is not root's")
	return true
}

// starter starts true(1) in a sandbox, and returns why that fails.
func starter(t *testing.T) (start func(ctx context.Context, stderr *os.File) error) {
	t.Helper()
	dir := t.TempDir()
	where, err := sandbox.New(sandbox.WorkspaceWrite(dir))
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, null.Close()) })
	return func(ctx context.Context, stderr *os.File) error {
		conn, err := where.Start(ctx, transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: dir, Stdin: null, Stderr: stderr})
		if err == nil {
			err = errors.Join(errors.New("it started"), conn.Close())
		}
		return err
	}
}

func TestWhatBwrapSaysIsTheErrorOfAStart(t *testing.T) {
	need(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	for said, code := range map[string]error{
		"setting up uid map: Permission denied":                      sandbox.ErrUserns,
		"loopback: Failed RTM_NEWADDR: Operation not permitted":      sandbox.ErrNetns,
		"Can't mount proc on /newroot/proc: Operation not permitted": sandbox.ErrProc,
		"execvp /bin/true: No such file or directory":                sandbox.ErrExec,
	} {
		aBackend(t, version011+`echo "bwrap: `+said+`" >&2; exit 1`)
		for _, stderr := range []*os.File{nil, file} { // A pipe of limpet's, and the caller's own.
			err := starter(t)(testenv.Context(t), stderr)
			if notOurs(t, err) {
				continue
			}
			require.ErrorIs(t, err, code)
			var e *sandbox.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, "bwrap: "+said, e.Said)
			assert.NotEmpty(t, e.Hint)
			require.NoError(t, file.Truncate(0))
			_, err = file.Seek(0, 0)
			require.NoError(t, err)
		}
	}
}

// A bwrap may hang before it has made the namespace, and after. What has ended the
// context is the error: for the limit of a start that is an ErrStartTimeout.
func TestABwrapThatHangsIsGivenUpWithTheContext(t *testing.T) {
	need(t)
	for _, first := range []string{"", `echo "{\"child-pid\": $$}" >&5; `} {
		hangs := filepath.Join(t.TempDir(), "hangs")
		aBackend(t, version011+first+`echo $$ >`+hangs+`; exec sleep 90`)
		why := &sandbox.Error{Code: sandbox.ErrStartTimeout, Detail: "the test has seen enough"}
		ctx, cancel := context.WithCancelCause(testenv.Context(t))
		start, failed := starter(t), make(chan error, 1)
		go func() { failed <- start(ctx, nil) }()
		if os.Geteuid() != 0 {
			notOurs(t, <-failed)
			cancel(nil)
			continue
		}
		pid, err := strconv.Atoi(testenv.AwaitFile(t, hangs))
		require.NoError(t, err)
		cancel(why)
		select {
		case err = <-failed:
		case <-time.After(testenv.Patience): // Sooner than it ends by itself.
			require.FailNow(t, "the start goes on")
		}
		assert.Same(t, why, err)
		assert.False(t, testenv.Alive(pid), "it is not left behind")
	}
}

func TestWithoutBwrapTheErrorSaysWhereItWasLookedFor(t *testing.T) {
	path := aBackend(t, "touch $0.ran\n"+version011)
	// Who can write what is in PATH, or where one happens to be, chooses no sandbox.
	t.Chdir(filepath.Dir(path))
	t.Setenv("PATH", filepath.Dir(path)+":.:"+os.Getenv("PATH"))
	one, two := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink("nowhere", filepath.Join(two, "bwrap")))
	lookIn(t, one, two)
	_, probed := sandbox.Probe(testenv.Context(t))
	for _, err := range []error{probed, starter(t)(testenv.Context(t), nil)} {
		require.ErrorIs(t, err, sandbox.ErrNoBackend)
		assert.EqualError(t, err, "sandbox: bubblewrap (bwrap) not found in "+one+":"+two+
			"; install it (apt-get install bubblewrap) or ask for Unconfined explicitly")
	}
	assert.NoFileExists(t, path+".ran")
}

func TestTheVersionOfBwrapIsWhatItSays(t *testing.T) {
	aBackend(t, `[ "$*" = --version ] && echo bubblewrap 0.7.12`)
	err := starter(t)(testenv.Context(t), nil)
	if !notOurs(t, err) {
		require.ErrorIs(t, err, sandbox.ErrOldBackend)
		assert.ErrorContains(t, err, "bwrap 0.7 lacks --disable-userns (needs 0.8)")
	}
}

func TestBwrapIsLookedForWhereOnlyRootCanWrite(t *testing.T) {
	for _, dir := range lookIn(t) {
		assert.Contains(t, []string{"/usr/bin", "/usr/local/bin", "/bin"}, dir)
	}
}

func TestABwrapThatOthersCouldHaveMadeIsNotTrusted(t *testing.T) {
	for _, row := range []struct {
		script string // what is done in the directory A above that of bwrap
		why    string // empty: it is trusted
	}{
		{"", ""},
		{"chmod g+w bin/bwrap", "A/bin/bwrap is writable by others"},
		{"chmod o+w bin/bwrap", "A/bin/bwrap is writable by others"},
		{"chmod o+w,+t bin/bwrap", "A/bin/bwrap is writable by others"},
		{"chmod u+s bin/bwrap", "setuid"},
		{"chown 12345 bin/bwrap", "A/bin/bwrap is not root's"},
		{"chmod g+w bin", "A/bin is writable by others"},
		{"chmod o+w .", "A is writable by others"},
		{"chown 12345 .", "A is not root's"},
		{"chmod o+w,+t .", ""}, // As /tmp.
		{"mkdir o; mv bin/bwrap o; ln -s ../o/bwrap bin; chmod o+w o", "A/o is writable by others"},
		{"mkdir o; mv bin/bwrap o; ln -s ../o/bwrap bin; chmod o+w bin", "A/bin is writable by others"},
		{"mkdir o; mv bin/bwrap o; ln -s ../o/bwrap bin; chown -h 12345 bin/bwrap", "A/bin/bwrap is not root's"},
		{"mv bin/bwrap bin/b; ln -s bwrap2 bin/bwrap; ln -s b bin/bwrap2", ""},
		{"printf '#!/bin/sh\necho none' >bin/bwrap", `it says that its version is "none"`},
		{"printf '#!/bin/sh\nexit 3' >bin/bwrap", "it does not tell its version: exit status 3"},
	} {
		ran := filepath.Join(t.TempDir(), "ran")
		path := aBackend(t, "touch "+ran+"\n"+version011+"exit 1")
		above := filepath.Dir(filepath.Dir(path))
		if os.Geteuid() == 0 {
			cmd := exec.Command("sh", "-c", row.script)
			cmd.Dir = above
			require.NoError(t, cmd.Run(), row.script)
		}
		err := starter(t)(testenv.Context(t), nil)
		if notOurs(t, err) {
			continue
		}
		if row.why == "" {
			require.NotErrorIs(t, err, sandbox.ErrUntrustedBackend)
			assert.FileExists(t, ran)
			continue
		}
		require.ErrorIs(t, err, sandbox.ErrUntrustedBackend, row.script)
		assert.EqualError(t, err, "sandbox: "+path+" is not trusted ("+strings.Replace(row.why, "A", above, 1)+
			"); install the distribution's bubblewrap, owned by root and writable by nobody else")
		assert.NoFileExists(t, ran, "not even for its version")
	}
}
