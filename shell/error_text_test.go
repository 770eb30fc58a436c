package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// What an error says is all that many of its readers have.
func TestErrorsSayWhatHappenedAndWhatToDo(t *testing.T) {
	testenv.Slow(t)
	t.Parallel() // It waits for a start that hangs.
	ctx := testenv.Context(t)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	why, cancelWhy := context.WithCancelCause(ctx)
	cancelWhy(errWhy)
	hanging := filepath.Join(t.TempDir(), "rc")
	require.NoError(t, os.WriteFile(hanging, []byte("sleep 60"), 0o600))
	// Long enough for bash to come to its init file, also on a busy machine; the others
	// are asked meanwhile.
	hung := make(chan error, 1)
	hangingDir := t.TempDir()
	go func() {
		_, err := shell.Start(ctx, &shell.Options{InitFiles: []string{hanging}, RuntimeDir: hangingDir, StartTimeout: 3 * time.Second})
		hung <- err
	}()

	bash, err := transport.FindBash("")
	require.NoError(t, err)
	starting := "starting " + bash + " --noprofile --norc --noediting -i +H: "

	sh := start(t, nil)
	closed := start(t, nil)
	require.NoError(t, closed.Close())
	busy := start(t, nil)
	closing := begin(t, busy, ctx, "sleep 60")
	go busy.Close()
	r := oneshot.New(nil)
	require.NoError(t, r.Close())
	do := func(ctx context.Context, req command.Request) error {
		req.Script = "true"
		_, err := sh.Do(ctx, req)
		return err
	}
	startWith := func(ctx context.Context, opts shell.Options) error {
		opts.RuntimeDir = t.TempDir()
		_, err := shell.Start(ctx, &opts)
		return err
	}
	second := func(_ command.Result, err error) error { return err }

	for _, test := range []struct {
		name string
		err  error
		want string
		is   error
	}{
		{"a NUL byte in the directory", do(ctx, command.Request{Dir: "a\x00b"}), `command: directory "a\x00b" holds a NUL byte, which no path can`, command.ErrNUL},
		{"closed", second(closed.Run(ctx, "true")), "the shell is closed: start another one", shell.ErrClosed},
		{"closed, and Interrupt", closed.Interrupt(), "the shell is closed: start another one", shell.ErrClosed},
		{"closed, and Reset", closed.Reset(ctx), "the shell is closed: start another one", shell.ErrClosed},
		{"a runner that is closed", second(r.Run(ctx, "true")), "the runner is closed: make another one with New", interrupt.ErrClosed},
		{"cancelled before", do(cancelled, command.Request{}), "nothing ran: context canceled", context.Canceled},
		{"cancelled before, with a cause", do(why, command.Request{}), "nothing ran: the user pressed a key (context canceled)", errWhy},
		{"cancelled before, with a cause: still cancelled", do(why, command.Request{}), "nothing ran: the user pressed a key (context canceled)", context.Canceled},
		{"a runner, cancelled before", second(oneshot.New(nil).Run(cancelled, "true")), "nothing ran: context canceled", context.Canceled},
		{"a start, cancelled before", startWith(cancelled, shell.Options{}), "nothing ran: context canceled", context.Canceled},
		{"the zero value", second(new(shell.PersistentShell).Run(ctx, "true")), "shell: the zero PersistentShell has no bash: use Start", nil},
		{"the zero value, and Reset", new(shell.PersistentShell).Reset(ctx), "shell: the zero PersistentShell has no bash: use Start", nil},
		{"an init file that is not there", startWith(ctx, shell.Options{InitFiles: []string{"/no/such/rc"}}),
			starting + `init file "/no/such/rc": no such file or directory`, os.ErrNotExist},
		{"an init file that is a directory", startWith(ctx, shell.Options{InitFiles: []string{"/"}}),
			starting + `init file "/": bash cannot read it, where it runs, or it is a directory`, nil},
		{"an init file that hangs", <-hung,
			starting + "it did not become ready in time; raise Options.StartTimeout if that is too short" +
				" for its init files (it was running: . " + hanging + ")", nil},
	} {
		assert.EqualError(t, test.err, test.want, test.name)
		if test.is != nil {
			assert.ErrorIs(t, test.err, test.is, test.name)
		}
	}
	got := await(t, closing)
	assert.ErrorIs(t, got.err, shell.ErrClosed)
	assert.ErrorContains(t, got.err, "command stopped: the shell is closed: start another one (")
}

func TestTheZeroShellCanBeClosed(t *testing.T) {
	var sh shell.PersistentShell
	require.NoError(t, sh.Interrupt())
	assert.Empty(t, sh.Dir())
	require.NoError(t, sh.Close())
	require.NoError(t, sh.Close())
}

func TestAMissingInitFileIsAStartError(t *testing.T) {
	ok := filepath.Join(t.TempDir(), "ok")
	require.NoError(t, os.WriteFile(ok, []byte("set -eu; f() { echo f; }"), 0o600))
	_, err := shell.Start(testenv.Context(t), &shell.Options{InitFiles: []string{ok, "no-such-rc"}, RuntimeDir: t.TempDir()})
	_, isStart := errors.AsType[*shell.StartError](err)
	require.True(t, isStart, "%T: %v", err, err)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "/no-such-rc")
}

func TestBeforeMayRunCommandsOnItsOwnShell(t *testing.T) {
	var sh *shell.PersistentShell
	var asked []string
	sh = start(t, &shell.Options{Before: func(ctx context.Context, req *command.Request) error {
		asked = append(asked, req.Script)
		if req.Script == "x=1" {
			return nil
		}
		_, err := sh.Run(ctx, "x=1")
		return err
	}})
	assert.Equal(t, "1", says(t, sh, "echo $x"))
	assert.Equal(t, []string{"echo $x", "x=1"}, asked)
}

func TestHooksHoldTheTurn(t *testing.T) {
	var sh *shell.PersistentShell
	var inner error
	sh = start(t, &shell.Options{Hooks: shell.Hooks{Started: func(command.Request) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, inner = sh.Run(ctx, "true")
	}}})
	run(t, sh, "true")
	assert.ErrorIs(t, inner, context.DeadlineExceeded)
}

func TestResetIsNoRestart(t *testing.T) {
	told := 0
	sh := start(t, &shell.Options{Hooks: shell.Hooks{Restarted: func(*command.Restart) { told++ }}})
	run(t, sh, "x=1")
	require.NoError(t, sh.Reset(testenv.Context(t)))
	assert.Nil(t, run(t, sh, "true").Restart)
	assert.Zero(t, told)
}

// A command begins when the one before it has ended, however long it waited before.
func TestElapsedDoesNotCountTheWaitForTheTurn(t *testing.T) {
	asked := make(chan struct{})
	sh := start(t, &shell.Options{Before: func(_ context.Context, req *command.Request) error {
		if req.Script == "true" {
			close(asked)
		}
		return nil
	}})
	release := filepath.Join(t.TempDir(), "go")
	first := begin(t, sh, testenv.Context(t), "until [[ -e "+release+" ]]; do sleep 0.01; done")
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Run(testenv.Context(t), "true")
		done <- answer{res, err}
	}()
	<-asked // It waits for its turn now, or is about to.
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	before, after := await(t, first), await(t, done)
	require.NoError(t, before.err)
	require.NoError(t, after.err)
	assert.False(t, after.res.Started.Before(before.res.Started.Add(before.res.Elapsed)), "it has started while the other one ran")
	assert.False(t, time.Now().Before(after.res.Started.Add(after.res.Elapsed)), "it has taken longer than it ran")
}
