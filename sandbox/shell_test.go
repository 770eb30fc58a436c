package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// need skips a test where no sandbox is to be had, and says why. The words are
// those of testdata/skips.
func need(t *testing.T) {
	t.Helper()
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
}

// start starts a shell in the workspace, under the policy; a nil one is no
// sandbox, for control.
func start(t *testing.T, workspace string, policy *sandbox.Policy) *shell.PersistentShell {
	t.Helper()
	opts := &shell.Options{Dir: workspace, RuntimeDir: t.TempDir()}
	if policy != nil {
		where, err := sandbox.New(*policy)
		require.NoError(t, err)
		opts.Transport = where
	}
	sh, err := shell.Start(testenv.Context(t), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

// usual is WorkspaceWrite in an empty workspace.
func usual(t *testing.T) (workspace string, policy *sandbox.Policy) {
	t.Helper()
	need(t)
	workspace = t.TempDir()
	p := sandbox.WorkspaceWrite(workspace)
	return workspace, &p
}

func says(t *testing.T, sh *shell.PersistentShell, script string) string {
	t.Helper()
	res, err := sh.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return strings.TrimSpace(res.Stdout.String() + res.Stderr.String())
}

func TestAShellStaysInItsSandbox(t *testing.T) {
	workspace, policy := usual(t)
	sh := start(t, workspace, policy)
	says(t, sh, "x=1; f() { echo f; }; mkdir sub; cd sub; sleep 900 &")
	for _, script := range []string{"while :; do :; done", "sleep 50; touch X", "sleep 50 | cat; touch X"} {
		_, err := sh.Do(testenv.Context(t), command.Request{Script: script, Timeout: 300 * time.Millisecond})
		var stop *shell.InterruptError
		require.ErrorAs(t, err, &stop)
		assert.True(t, stop.Outcome.ShellSurvived, script)
	}
	assert.Equal(t, "1 f "+workspace+"/sub 1", says(t, sh, "echo $x $(f) $PWD $(jobs -r | wc -l)"))
	assert.NoFileExists(t, filepath.Join(workspace, "sub", "X"))

	for script, ends := range map[string]bool{"x=2; exit 137": false, "x=2; kill -9 $$": false, "x=2; jobs >/dev/null; exit 137": true} {
		res, err := sh.Run(testenv.Context(t), "x=1")
		require.NoError(t, err)
		assert.Nil(t, res.Restart)
		res, err = sh.Run(testenv.Context(t), script)
		require.NoError(t, err, script)
		assert.Equal(t, 137, res.ExitCode, script)
		assert.Equal(t, ends, res.Restart != nil, script)
		want := "2"
		if strings.Contains(script, "kill") {
			want = "1" // Nothing comes back from what was killed.
		}
		assert.Equal(t, want, says(t, sh, "echo $x"), script)
	}

	killed(t, sh, kills)
	assert.Regexp(t, "^[12]$", says(t, sh, "echo $x"))
}

// ending ends bash itself: what is about its jobs runs in no fork. So does kills.
const (
	ending = "jobs; exit 3"
	kills  = "bash -c 'kill -9 $PPID'"
)

// killed runs a script that kills its bash.
func killed(t *testing.T, sh *shell.PersistentShell, script string) {
	t.Helper()
	res, err := sh.Run(testenv.Context(t), script)
	require.NotNil(t, res.Restart)
	if !sandbox.TellsSignals() {
		require.NoError(t, err)
		assert.Equal(t, 128+int(syscall.SIGKILL), res.ExitCode)
		return
	}
	var dead *shell.DeadError
	require.ErrorAs(t, err, &dead)
	assert.Equal(t, syscall.SIGKILL, dead.Signal)
}

// A directory of the host that is not in the sandbox, or one in the sandbox alone.
func TestADirectoryIsThatOfTheSandbox(t *testing.T) {
	workspace, policy := usual(t)
	sh := start(t, workspace, policy)
	says(t, sh, "x=1; mkdir /tmp/inside sub; cd sub; false")
	for _, merge := range []bool{false, true} {
		hidden := t.TempDir()
		res, err := sh.Do(testenv.Context(t), command.Request{Script: "touch ran", Dir: hidden, MergeStderr: merge})
		var dir *shell.DirError
		require.ErrorAs(t, err, &dir)
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.Equal(t, hidden, dir.Dir)
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
		assert.Empty(t, res.Stderr.String()+res.Stdout.String())
	}
	assert.Equal(t, "1 "+workspace+"/sub", says(t, sh, "echo $x $PWD; ls"))
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "pwd", Dir: "/tmp/inside"})
	require.NoError(t, err)
	assert.Equal(t, "/tmp/inside\n", res.Stdout.String())
	assert.Equal(t, workspace+"/sub", says(t, sh, "pwd"))

	// Neither errexit nor a reader of the output takes part in it.
	says(t, sh, "set -e # of this script")
	var live strings.Builder
	res, err = sh.Do(testenv.Context(t), command.Request{Script: "touch ran", Dir: t.TempDir(), Stdout: &live, Stderr: &live})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Nil(t, res.Restart)
	assert.Empty(t, live.String())

	// A directory that was for one command is not the next bash's, however it is written.
	for _, dir := range []string{"/tmp/inside/", "/tmp/./inside"} {
		for _, script := range []string{"exit 3", ending} {
			res, err = sh.Do(testenv.Context(t), command.Request{Script: script, Dir: dir})
			require.NoError(t, err)
			assert.Equal(t, 3, res.ExitCode)
			assert.Equal(t, script == ending, res.Restart != nil, script)
			assert.Equal(t, workspace+"/sub", res.Dir, script)
			says(t, sh, "mkdir -p /tmp/inside")
		}
	}
	says(t, sh, "cd /tmp/inside")
	assert.Equal(t, "/tmp/inside", says(t, sh, "pwd"), "a save does not bring it back")
}

// whenWritten is called with the first output.
type whenWritten func()

func (f whenWritten) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// A process that has neither the environment nor the session of its command is found
// by the pid namespace.
func TestAStopFindsWhatHasNoEnvironmentAndNoSession(t *testing.T) {
	workspace, policy := usual(t)
	sh := start(t, workspace, policy)
	const lost = "(exec env -i /usr/bin/setsid /bin/sleep %d >/dev/null 2>&1 &); until [[ $(grep -lx sleep /proc/[0-9]*/comm 2>/dev/null | wc -l) == %d ]]; do :; done; "
	res, err := sh.Run(testenv.Context(t), fmt.Sprintf(lost, 4321, 1))
	require.NoError(t, err)
	require.Len(t, res.Receipt.Leftover, 1)
	assert.Contains(t, res.Receipt.Leftover[0].Command, "sleep 4321")

	ctx, cancel := context.WithCancel(testenv.Context(t))
	_, err = sh.Do(ctx, command.Request{Script: fmt.Sprintf(lost, 4322, 2) + "echo ready; sleep 100", Stdout: whenWritten(cancel)})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "4321", says(t, sh, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep [0-9]*' | cut -d' ' -f2"), "the job of the command before is spared")
}

func TestClosingAShellEndsItsSandbox(t *testing.T) {
	workspace, policy := usual(t)
	sh := start(t, workspace, policy)
	mark := says(t, sh, "setsid sleep 1000 & (setsid sleep 1001 &); echo LIMPET_SESSION=$LIMPET_SESSION")
	require.NotEmpty(t, testenv.Marked(mark))
	require.NoError(t, sh.Close())
	assert.Empty(t, testenv.Describe(testenv.Marked(mark)))
}

// A mask is lost when the host renames a file over it. The next command then
// runs in a new sandbox, with the state of the old one, and says so.
func TestALostProtectionIsNoticedBeforeTheNextCommand(t *testing.T) {
	for _, mode := range []sandbox.DriftMode{sandbox.DriftRespawn, sandbox.DriftFail} {
		workspace, policy := usual(t)
		env := filepath.Join(workspace, ".env")
		require.NoError(t, os.WriteFile(env, []byte("secret\n"), 0o600))
		policy.FS.Mask, policy.Drift = []string{".env"}, mode
		sh := start(t, workspace, policy)
		assert.NotContains(t, says(t, sh, "x=1; cat .env"), "secret")
		require.NoError(t, os.WriteFile(env+".new", []byte("secret 2\n"), 0o600))
		require.NoError(t, os.Rename(env+".new", env))
		res, err := sh.Run(testenv.Context(t), "cat .env 2>/dev/null; echo $x")
		require.NotNil(t, res.Restart)
		assert.Contains(t, res.Restart.String(), "protection of "+env+" was lost")
		if mode == sandbox.DriftFail {
			require.ErrorIs(t, err, sandbox.ErrDrift)
			assert.Empty(t, res.Stdout.String())
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "1\n", res.Stdout.String())
	}
}

func TestOneShotCommandsRunInTheSandbox(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	r := oneshot.New(&oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	res, err := r.Do(testenv.Context(t), command.Request{Script: "cat; pwd; echo $$", Stdin: strings.NewReader("in\n")})
	require.NoError(t, err)
	assert.Equal(t, "in\n"+workspace+"\n2\n", res.Stdout.String())
	res, err = r.Run(testenv.Context(t), ": "+strings.Repeat("x", 1<<18)+"\necho long")
	require.NoError(t, err)
	assert.Equal(t, "long\n", res.Stdout.String())
	_, err = r.Do(testenv.Context(t), command.Request{Script: "true", Dir: t.TempDir()})
	require.ErrorIs(t, err, sandbox.ErrMount)
}

func TestWhatCannotBeEnforcedIsRefused(t *testing.T) {
	need(t)
	caps, err := sandbox.Probe(t.Context())
	require.NoError(t, err)
	where, err := sandbox.New(sandbox.Scratch(t.TempDir()))
	require.NoError(t, err)
	if !caps.Overlay {
		_, err = where.Start(testenv.Context(t), transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: "/"})
		require.ErrorIs(t, err, sandbox.ErrOldBackend)
		assert.ErrorContains(t, err, "needs 0.11")
	}
	_, err = sandbox.New(sandbox.Policy{})
	require.ErrorIs(t, err, sandbox.ErrNoPolicy)
	_, err = sandbox.New(sandbox.WorkspaceWrite("/"))
	require.ErrorIs(t, err, sandbox.ErrBadWorkspace)
}

// A program may end before anybody has seen it start.
func TestAProgramThatEndsAtOnceHasItsExitCode(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close() // Read only.
	for range 100 {
		conn, err := where.Start(testenv.Context(t), transport.Spec{
			Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 42"}, Dir: workspace, Stdin: null,
		})
		require.NoError(t, err)
		<-conn.Done()
		assert.Equal(t, 42, conn.Exit().Code)
		require.NoError(t, conn.Close())
	}
}
