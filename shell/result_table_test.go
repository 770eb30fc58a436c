package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/shell"
)

var errWhy = errors.New("the user pressed a key")

// resultRow is a line of the table in the package documentation. Those of a full
// disk, and of a deleted directory, are in disk_linux_test.go.
type resultRow struct {
	name   string
	script string
	req    command.Request // with limits
	opts   shell.Options

	pre  func(*interrupt.Source) // done before
	ctx  func(context.Context) (context.Context, context.CancelFunc)
	when func(*shell.PersistentShell, *interrupt.Source) // done once the script has begun

	post func() // done at the end

	code      int
	stdout    string
	is        []error
	isNot     []error
	as        func(error) bool
	restarted bool
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func interrupted(err error) bool { return as[*shell.InterruptError](err) }

// blocked frees a Writer that does not return.
var blocked = make(chan struct{}, 1)

var resultTable = []resultRow{
	{name: "exit 0", script: "echo hi", stdout: "hi\n"},
	{name: "exit n", script: "(exit 7)", code: 7},
	{name: "not found", script: "no-such-command-here", code: 127},
	{name: "a syntax error", script: "echo 'open", code: 2},
	{name: "a signal killed the command", script: "sh -c 'kill -9 $$'", code: 137},
	{name: "SIGTERM killed the command", script: "sh -c 'kill -TERM $$'", code: 143},

	{name: "exit 7 ends the script", script: "echo out; exit 7", code: 7, stdout: "out\n"},
	{name: "exit ends the script", script: "exit"},
	{name: "set -e ends the script", script: "set -e; echo a; false; echo b", code: 1, stdout: "a\n"},
	{name: "exec ends the script", script: "exec sh -c 'echo there; exit 9'", code: 9, stdout: "there\n"},
	{name: "an unset variable ends the script", script: "echo a; : ${x?}; echo b", code: 127, stdout: "a\n"},
	{name: "the script kills its own shell", script: "echo part; kill -9 $BASHPID", code: 137, stdout: "part\n"},
	{name: "the script kills its shell, a bash of its own", script: "echo part; kill -9 $$", code: 137, stdout: "part\n"},

	{name: "exit 7 ends bash", script: inBash + "echo out; exit 7", code: 7, stdout: "out\n", restarted: true},
	{name: "exit 0 ends bash", script: inBash + "exit", restarted: true},
	{name: "set -e ends bash", script: inBash + "set -e; echo a; false; echo b", code: 1, stdout: "a\n", restarted: true},
	{name: "exec ends bash", script: inBash + "exec sh -c 'echo there; exit 9'", code: 9, stdout: "there\n", restarted: true},

	{name: "Timeout", script: "echo part; sleep 60", req: command.Request{Timeout: 300 * time.Millisecond},
		code: 124, stdout: "part\n", is: []error{shell.ErrTimeout}, isNot: []error{shell.ErrIdle, context.DeadlineExceeded, shell.ErrInterrupted}, as: interrupted},
	{name: "Options.Timeout", script: "echo part; sleep 60", opts: shell.Options{Timeout: 300 * time.Millisecond},
		code: 124, stdout: "part\n", is: []error{shell.ErrTimeout}, as: interrupted},
	{name: "IdleTimeout", script: "echo part; sleep 60", req: command.Request{IdleTimeout: 300 * time.Millisecond},
		code: 124, stdout: "part\n", is: []error{shell.ErrIdle}, isNot: []error{shell.ErrTimeout, shell.ErrInterrupted}, as: interrupted},
	{name: "the caller's deadline", script: "echo part; sleep 60",
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		},
		code: 124, stdout: "part\n", is: []error{context.DeadlineExceeded}, isNot: []error{shell.ErrTimeout, shell.ErrIdle}, as: interrupted},
	{name: "ctx cancelled", script: "echo part; sleep 60",
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel
		},
		code: 130, stdout: "part\n", is: []error{context.Canceled}, isNot: []error{context.DeadlineExceeded, shell.ErrTimeout}, as: interrupted},
	{name: "ctx cancelled with a cause", script: "echo part; sleep 60",
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(300*time.Millisecond, func() { cancel(errWhy) })
			return ctx, func() { cancel(nil) }
		},
		code: 130, stdout: "part\n", is: []error{context.Canceled, errWhy}, as: interrupted},
	{name: "Interrupt", script: "echo part; : >begun; sleep 60",
		when: func(sh *shell.PersistentShell, _ *interrupt.Source) { _ = sh.Interrupt() },
		code: 130, stdout: "part\n", is: []error{shell.ErrInterrupted}, isNot: []error{shell.ErrTimeout}, as: interrupted},
	{name: "Source stopped", script: "echo part; : >begun; sleep 60",
		when: func(_ *shell.PersistentShell, src *interrupt.Source) { src.Stop(errWhy) },
		code: 130, stdout: "part\n", is: []error{shell.ErrInterrupted, errWhy}, as: interrupted},
	{name: "Close", script: "echo part; : >begun; sleep 60",
		when: func(sh *shell.PersistentShell, _ *interrupt.Source) { go sh.Close() },
		code: 130, stdout: "part\n", is: []error{shell.ErrClosed}, isNot: []error{shell.ErrInterrupted}, as: interrupted},

	{name: "bash killed", script: "echo part; " + killBash, code: -1, stdout: "part\n", as: as[*shell.DeadError], restarted: true},
	{name: "bash crashed", script: "echo part; bash -c 'kill -SEGV $PPID'", code: -1, stdout: "part\n", as: as[*shell.DeadError], restarted: true},

	{name: "a Writer failed", script: "echo out; (exit 3)", code: 3, stdout: "out\n",
		req: command.Request{Stdout: writerFunc(func([]byte) (int, error) { return 0, errWhy })}, is: []error{errWhy}},
	{name: "a Writer failed, and a stop", script: "echo out; sleep 60", code: 124, stdout: "out\n",
		req: command.Request{Timeout: 300 * time.Millisecond, Stdout: writerFunc(func([]byte) (int, error) { return 0, errWhy })},
		is:  []error{shell.ErrTimeout}, isNot: []error{errWhy}, as: interrupted},
	{name: "a Writer did not return", script: "echo out; (exit 3)", code: 3, stdout: "out\n",
		req: command.Request{Stdout: writerFunc(func(p []byte) (int, error) {
			<-blocked
			return len(p), nil
		})},
		post: func() { blocked <- struct{}{} },
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		is: []error{ipc.ErrWriterStuck}},

	{name: "refused by a Source", script: ": >ran", pre: func(src *interrupt.Source) { src.Stop(errWhy) },
		code: -1, is: []error{shell.ErrInterrupted, errWhy}, as: interrupted},
	{name: "refused by Before", script: "echo no; : >ran", opts: shell.Options{Before: func(context.Context, *command.Request) error { return errWhy }},
		code: -1, is: []error{errWhy}, as: as[*shell.RefusedError]},
	{name: "refused by Admit", script: "echo no; : >ran", opts: shell.Options{Admit: func(context.Context, command.Request, string) error { return errWhy }},
		code: -1, is: []error{errWhy}, as: as[*shell.RefusedError]},
	{name: "an empty script", script: " ", code: -1, is: []error{command.ErrEmptyScript}},
	{name: "a NUL byte", script: ": >ran; echo a\x00b", code: -1, is: []error{command.ErrNUL}},
	{name: "a bad variable", script: ": >ran", req: command.Request{Env: []string{"a-b=1"}}, code: -1, as: as[*command.EnvError]},
	{name: "a missing directory", script: ": >ran", req: command.Request{Dir: "/no/such/dir"}, code: -1, is: []error{os.ErrNotExist}, as: as[*shell.DirError]},
	{name: "a file for a directory", script: ": >ran", req: command.Request{Dir: "/etc/passwd"}, code: -1, as: as[*shell.DirError]},
	{name: "ctx over before", script: ": >ran",
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
		code: -1, is: []error{context.Canceled}},
}

func TestResultsAndErrorsAreThoseOfTheTable(t *testing.T) {
	testenv.Slow(t)
	for _, row := range resultTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir, src := t.TempDir(), interrupt.New()
			opts := row.opts
			opts.Dir, opts.Interrupts = dir, src
			sh := start(t, &opts)

			if row.post != nil {
				defer row.post()
			}
			if row.pre != nil {
				row.pre(src)
			}
			ctx := testenv.Context(t)
			if row.ctx != nil {
				var cancel context.CancelFunc
				ctx, cancel = row.ctx(ctx)
				defer cancel()
			}
			req := row.req
			req.Script = row.script
			done := make(chan answer, 1)
			go func() {
				res, err := sh.Do(ctx, req)
				done <- answer{res, err}
			}()
			if row.when != nil {
				awaitFile(t, filepath.Join(dir, "begun"))
				row.when(sh, src)
			}
			got := await(t, done)

			assert.Equal(t, row.code, got.res.ExitCode)
			assert.Equal(t, row.stdout, got.res.Stdout.String())
			assert.Equal(t, row.restarted, got.res.Restart != nil, "%v", got.res.Restart)
			if row.is == nil && row.as == nil {
				assert.NoError(t, got.err)
			}
			for _, want := range row.is {
				assert.ErrorIs(t, got.err, want)
			}
			for _, not := range row.isNot {
				assert.NotErrorIs(t, got.err, not)
			}
			if row.as != nil {
				assert.True(t, row.as(got.err), "%T", got.err)
			}
			assert.NoFileExists(t, filepath.Join(dir, "ran"))
		})
	}
}

func TestARecordThatWasThereBeforeTheSignalWins(t *testing.T) {
	sh := start(t, nil)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	// The Writer is the last to be served: by then the command has reported.
	res, err := sh.Do(ctx, command.Request{Script: "echo done; (exit 5)", Stdout: writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})})
	if err != nil { // It was cancelled before bash reported, which is as right.
		require.ErrorIs(t, err, context.Canceled)
		return
	}
	assert.Equal(t, 5, res.ExitCode)
	assert.Equal(t, "done\n", res.Stdout.String())
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestReceiptSaysPipelineAndSignal(t *testing.T) {
	sh := start(t, nil)
	for _, test := range []struct {
		script   string
		code     int
		pipeline []int
		signal   syscall.Signal
	}{
		{"true", 0, []int{0}, 0},
		{"(exit 3)", 3, []int{3}, 0},
		{"(exit 3) | (exit 4) | true", 0, []int{3, 4, 0}, 0},
		{"sh -c 'kill -9 $$'", 137, []int{137}, syscall.SIGKILL},
		{"true | sh -c 'kill -TERM $$'", 143, []int{0, 143}, syscall.SIGTERM},
	} {
		res := run(t, sh, test.script)
		assert.Equal(t, test.code, res.ExitCode, test.script)
		assert.Equal(t, test.pipeline, res.Receipt.Pipeline, test.script)
		assert.Equal(t, test.signal, res.Receipt.Signal, test.script)
	}
}

func TestDeadErrorSaysWhatKilledBash(t *testing.T) {
	sh := start(t, nil)
	_, err := sh.Run(testenv.Context(t), killBash)
	dead, ok := errors.AsType[*shell.DeadError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, syscall.SIGKILL, dead.Signal)
	assert.Equal(t, -1, dead.Code)
	assert.ErrorContains(t, err, "killed by signal 9")
}
