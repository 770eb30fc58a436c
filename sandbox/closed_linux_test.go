package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// What a policy gives the sandbox must not do anything outside: bwrap is started
// there. The dynamic linker writes to a file if it is told to (ld.so(8), LD_DEBUG).
func TestVariablesOfThePolicyAreInsideAlone(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "log")
	linker := []string{"LD_DEBUG=libs", "LD_DEBUG_OUTPUT=" + outside}
	control := exec.Command("/usr/bin/bwrap", "--version")
	control.Env = linker
	require.NoError(t, control.Run())
	written, err := filepath.Glob(outside + ".*")
	require.NoError(t, err)
	if len(written) == 0 {
		t.Skip("no sandbox is to be had here: with a dynamic linker that writes a log") // A static bwrap.
	}
	for _, path := range written {
		require.NoError(t, os.Remove(path))
	}

	child := *policy
	child.Env.Set = map[string]string{"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": outside}
	narrowed, err := policy.Narrow(child)
	require.NoError(t, err)
	asked := *policy
	asked.Env.Pass = []string{"LD_DEBUG", "LD_DEBUG_OUTPUT"}
	for _, p := range []sandbox.Policy{narrowed, asked} {
		where, err := sandbox.New(p)
		require.NoError(t, err)
		sh, err := shell.Start(testenv.Context(t), &shell.Options{
			Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Env: append(linker, "PATH=/usr/bin:/bin"),
		})
		require.NoError(t, err)
		res, err := sh.Run(testenv.Context(t), "echo $LD_DEBUG")
		require.NoError(t, err)
		assert.Equal(t, "libs\n", res.Stdout.String())
		require.NoError(t, sh.Close())
		written, err := filepath.Glob(outside + "*")
		require.NoError(t, err)
		assert.Empty(t, written)
	}
}

func TestAStartThatIsOverBeforeItBeganHasItsCause(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	cancel(why)
	_, err = where.Start(ctx, transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: workspace})
	require.ErrorIs(t, err, why)
}

// A program that is not there is an error each time: bwrap forks before it finds out.
func TestAProgramThatIsNotInsideIsAnError(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "bash")
	require.NoError(t, os.WriteFile(outside, []byte("#!/bin/bash\nexec /bin/bash \"$@\"\n"), 0o755))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close() // Read only.
	for range 50 {
		conn, err := where.Start(testenv.Context(t), transport.Spec{Path: outside, Argv: []string{"bash"}, Dir: workspace, Stdin: null})
		require.ErrorIs(t, err, sandbox.ErrExec)
		assert.Nil(t, conn)
	}
	if allowed, err := sandbox.New(sandbox.AllowDomains(workspace, "example.com")); assert.NoError(t, err) {
		_, err = allowed.Start(testenv.Context(t), transport.Spec{Path: outside, Argv: []string{"bash"}, Dir: workspace, Stdin: null})
		require.ErrorIs(t, err, sandbox.ErrExec)
	}
	r := oneshot.New(&oneshot.Options{Bash: outside, Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	_, err = r.Run(testenv.Context(t), "echo ran")
	require.ErrorIs(t, err, sandbox.ErrExec)
	_, err = shell.Start(testenv.Context(t), &shell.Options{Bash: outside, Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.ErrorIs(t, err, sandbox.ErrExec)
}

// By the files of another session, commands could be given to a shell that is in no
// sandbox.
func TestOtherSessionsAreNotInside(t *testing.T) {
	workspace, policy := usual(t)
	above := t.TempDir()
	beside := filepath.Join(above, "sub")
	require.NoError(t, os.Mkdir(beside, 0o755))
	all := *policy
	all.FS.Root = sandbox.All
	for _, row := range []struct {
		name    string
		policy  sandbox.Policy
		runtime string // empty: it starts
		field   string
	}{
		{"in the workspace", *policy, workspace, "FS.Workspace"},
		{"below what is readable", policy.With([]string{above}, nil), beside, "FS.ExtraRO"},
		{"below what is writable", policy.With(nil, []string{beside}), beside, "FS.ExtraRW"},
		{"in a part of the system", all, "/var/cache", "FS.Root"},
		{"in what is hidden", all, "/dev/shm", ""},
		{"beside all that", *policy, beside, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			where, err := sandbox.New(row.policy)
			require.NoError(t, err)
			runtime, err := os.MkdirTemp(row.runtime, "limpet-test-")
			if err != nil {
				t.Skip("not root: ", err)
			}
			t.Cleanup(func() { assert.NoError(t, os.RemoveAll(runtime)) })
			sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: runtime, Transport: where})
			if row.field == "" {
				require.NoError(t, err)
				require.NoError(t, sh.Close())
				return
			}
			require.ErrorIs(t, err, sandbox.ErrProtect)
			assert.ErrorContains(t, err, "cannot be protected: "+row.field+" shows them; set RuntimeDir to a directory that the sandbox does not show")
		})
	}
}

// Who is told of violations need not run another command.
func TestAnIdleShellTellsWhatItsLastCommandMade(t *testing.T) {
	workspace, policy := usual(t)
	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	says(t, sh, "mkdir .git")
	testenv.Await(t, "the violation", func() bool { return len(violations()) == 1 })
	_, err := sh.Run(testenv.Context(t), "touch ran")
	require.ErrorIs(t, err, sandbox.ErrViolation)
	assert.NoFileExists(t, filepath.Join(workspace, "ran"))
	assert.Len(t, violations(), 1)
}

// Nor is it lost when bash has ended, by the command or while it was idle.
func TestAViolationIsHeardOfAfterTheEndOfBash(t *testing.T) {
	for _, script := range []string{
		"mkdir .git; exit 3", "mkdir .git; kill -9 $$", "mkdir .git; " + ending, "mkdir .git; " + kills,
		"bash -c 'mkdir .git; kill -9 $PPID' & wait", "mkdir .git; bash -c 'until [[ -e go ]]; do :; done; kill -9 $PPID' &",
	} {
		workspace, policy := usual(t)
		where, violations := told(t, *policy)
		sh := startWith(t, workspace, where)
		_, _ = sh.Run(testenv.Context(t), script) // How it ended is not the point.
		testenv.Await(t, "the violation", func() bool { return len(violations()) == 1 })
		put(t, workspace, "", "go")
		var err error
		testenv.Await(t, "an error: "+script, func() bool {
			_, err = sh.Run(testenv.Context(t), "touch ran")
			return err != nil
		})
		require.ErrorIs(t, err, sandbox.ErrViolation, script)
		assert.NoFileExists(t, filepath.Join(workspace, "ran"), script)
		assert.Equal(t, "fine", says(t, sh, "echo fine"))
	}
}

func TestAWorkspaceAndAHomeMayBeNamedBySymlinks(t *testing.T) {
	workspace, policy := usual(t)
	real, links := t.TempDir(), t.TempDir()
	link, home := filepath.Join(links, "work"), filepath.Join(links, "home")
	require.NoError(t, os.Symlink(workspace, link))
	require.NoError(t, os.Symlink(real, home))
	t.Setenv("HOME", home)
	policy.FS.Workspace = link
	sh := start(t, link, policy)
	assert.Equal(t, workspace+" "+real, says(t, sh, "touch ~/file; echo $(pwd -P) ~"))
	assert.NoFileExists(t, filepath.Join(real, "file"))
}

// One that the sandbox can write would decide what the next sandbox is.
func TestABackendInTheWorkspaceIsRefused(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("not root: a bwrap that is trusted is root's")
	}
	dir, err := os.MkdirTemp("/opt", "limpet-test-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	program, err := os.ReadFile("/usr/bin/bwrap")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bwrap"), program, 0o755))
	sandbox.SetBackendDirs([]string{dir})
	t.Cleanup(func() { sandbox.SetBackendDirs([]string{"/usr/bin", "/usr/local/bin", "/bin"}) })
	where, err := sandbox.New(sandbox.WorkspaceWrite(dir))
	require.NoError(t, err)
	_, err = where.Start(testenv.Context(t), transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: dir})
	require.ErrorIs(t, err, sandbox.ErrUntrustedBackend)
	assert.ErrorContains(t, err, "FS.Workspace lets the sandbox write it")
}
