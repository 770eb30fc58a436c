package oneshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/transport"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var errWhy = errors.New("why")

func runner(t *testing.T, opts *oneshot.Options) *oneshot.Runner {
	t.Helper()
	own := oneshot.Options{}
	if opts != nil {
		own = *opts
	}
	if own.RuntimeDir == "" {
		own.RuntimeDir = t.TempDir()
	}
	r := oneshot.New(&own)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestResultsAndErrorsAreThoseOfTheTable(t *testing.T) {
	testenv.Slow(t)
	stopped := func(err error) bool { _, ok := errors.AsType[*interrupt.Error](err); return ok }
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(errWhy)
	src := interrupt.New()
	for _, row := range []struct {
		name   string
		ctx    context.Context
		opts   oneshot.Options
		req    command.Request
		code   int
		stdout string
		is     []error
		as     func(error) bool
	}{
		{name: "exit 0", req: command.Request{Script: "echo hi"}, stdout: "hi\n"},
		{name: "exit 7", req: command.Request{Script: "echo hi; exit 7"}, code: 7, stdout: "hi\n"},
		{name: "set -e", req: command.Request{Script: "set -e; false; echo no"}, code: 1},
		{name: "a syntax error", req: command.Request{Script: "echo 'open"}, code: 2},
		{name: "not found", req: command.Request{Script: "no-such-command-here"}, code: 127},
		{name: "bash killed", req: command.Request{Script: "echo hi; kill -9 $$"}, code: 137, stdout: "hi\n"},
		{name: "Timeout", req: command.Request{Script: "echo hi; sleep 60", Timeout: 300 * time.Millisecond}, code: 124, stdout: "hi\n",
			is: []error{interrupt.ErrTimeout}, as: stopped},
		{name: "Options.Timeout", opts: oneshot.Options{Timeout: 300 * time.Millisecond}, req: command.Request{Script: "sleep 60"}, code: 124,
			is: []error{interrupt.ErrTimeout}, as: stopped},
		{name: "IdleTimeout", req: command.Request{Script: "echo hi; sleep 60", IdleTimeout: 300 * time.Millisecond}, code: 124, stdout: "hi\n",
			is: []error{interrupt.ErrIdle}, as: stopped},
		{name: "Source stopped", opts: oneshot.Options{Interrupts: src}, req: command.Request{Script: "echo hi; sleep 60",
			Stdout: writerFunc(func([]byte) { src.Stop(errWhy) })}, code: 130, stdout: "hi\n", is: []error{interrupt.ErrInterrupted, errWhy}, as: stopped},
		{name: "ctx over before", ctx: cancelled, req: command.Request{Script: "echo hi"}, code: -1, is: []error{errWhy}},
		{name: "empty", code: -1, is: []error{command.ErrEmptyScript}},
		{name: "NUL", req: command.Request{Script: "a\x00"}, code: -1, is: []error{command.ErrNUL}},
		{name: "a missing directory", req: command.Request{Script: "true", Dir: "/no/such"}, code: -1, is: []error{os.ErrNotExist},
			as: func(err error) bool { _, ok := errors.AsType[*transport.DirError](err); return ok }},
		{name: "no bash", opts: oneshot.Options{Bash: "/no/such/bash"}, req: command.Request{Script: "true"}, code: -1,
			as: func(err error) bool { _, ok := errors.AsType[*transport.NoBashError](err); return ok }},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := row.ctx
			if ctx == nil {
				ctx = testenv.Context(t)
			}
			res, err := runner(t, &row.opts).Do(ctx, row.req)
			assert.Equal(t, row.code, res.ExitCode)
			assert.Equal(t, row.stdout, res.Stdout.String())
			assert.Nil(t, res.Restart)
			if row.is == nil && row.as == nil {
				assert.NoError(t, err)
			}
			for _, want := range row.is {
				assert.ErrorIs(t, err, want)
			}
			if row.as != nil {
				assert.True(t, row.as(err), "%T: %v", err, err)
			}
		})
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestAFileThatCannotBeExecutedIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bash")
	require.NoError(t, os.WriteFile(path, []byte("no program\n"), 0o755))
	r := runner(t, &oneshot.Options{Bash: path})
	for range 2 {
		_, err := r.Run(testenv.Context(t), "true")
		_, ok := errors.AsType[*transport.StartError](err)
		require.True(t, ok, "%T: %v", err, err)
	}
}

func TestConcurrentRunsNeverMixResults(t *testing.T) {
	r := runner(t, nil)
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 5 {
				word := strings.Repeat("w", i+1)
				res, err := r.Run(testenv.Context(t), "echo "+word+"; exit "+"1")
				assert.NoError(t, err)
				assert.Equal(t, word+"\n", res.Stdout.String())
				assert.Equal(t, 1, res.ExitCode)
			}
		})
	}
	callers.Wait()
}

func TestLeftoversAreListedDoNotHoldTheCallUpAndEndWithClose(t *testing.T) {
	r := runner(t, nil)
	res, err := r.Run(testenv.Context(t), "sleep 1000 & setsid sleep 1001 & echo started; while ! pgrep -f 'sleep 100[0]' >/dev/null || ! pgrep -f 'sleep 100[1]' >/dev/null; do :; done")
	require.NoError(t, err)
	assert.Equal(t, "started\n", res.Stdout.String())
	require.Len(t, res.Receipt.Leftover, 2)
	require.NoError(t, r.Close())
	for _, p := range res.Receipt.Leftover {
		st, err := proc.Read(p.PID)
		assert.True(t, err != nil || st.Zombie() || st.Start != p.Start, "%v", p)
	}
}

func TestARunnerLeavesNoFilesBesideAnotherOne(t *testing.T) {
	base := t.TempDir()
	other := runner(t, &oneshot.Options{RuntimeDir: base})
	_, err := other.Run(testenv.Context(t), "true")
	require.NoError(t, err)
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(base, "limpet-*", "*", "*"))
		require.NoError(t, err)
		return found
	}
	before := files()
	big := ": " + strings.Repeat("x", 1<<18)
	r := runner(t, &oneshot.Options{RuntimeDir: base})
	_, err = r.Run(testenv.Context(t), big)
	require.NoError(t, err)
	_, err = r.Do(testenv.Context(t), command.Request{Script: big, Stdin: strings.NewReader("")})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, before, files())
}

func TestABigScriptRunsByteForByte(t *testing.T) {
	r := runner(t, nil)
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	res, err := r.Do(testenv.Context(t), command.Request{Script: "cat <<'E'\n" + text + "E\nexit 3", MergeStderr: true})
	require.NoError(t, err)
	assert.Equal(t, 3, res.ExitCode)
	assert.Equal(t, text, res.Stdout.String())
}

func TestStdinIsReadFromWhateverItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(path, []byte("from a file"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close() // Read only.
	r := runner(t, nil)
	for _, test := range []struct {
		name string
		in   io.Reader
		want string
	}{
		{"nothing", nil, ""},
		{"a file", f, "from a file"},
		{"a reader", strings.NewReader("a\x00b\xff"), "a\x00b\xff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := r.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: test.in})
			require.NoError(t, err)
			assert.Equal(t, test.want, res.Stdout.String())
		})
	}
}

func TestAReaderThatBlocksDoesNotHoldTheCallUp(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close() // Lets the copying goroutine go.
	res, err := runner(t, nil).Do(testenv.Context(t), command.Request{Script: "echo done", Stdin: in})
	require.NoError(t, err)
	assert.Equal(t, "done\n", res.Stdout.String())
}

func TestACommandThatDoesNotReadIsNotHeldUpByItsInput(t *testing.T) {
	res, err := runner(t, nil).Do(testenv.Context(t), command.Request{Script: "exit 4", Stdin: strings.NewReader(strings.Repeat("x", 8<<20))})
	require.NoError(t, err)
	assert.Equal(t, 4, res.ExitCode)
}

func TestUseAfterCloseIsErrClosed(t *testing.T) {
	r := runner(t, nil)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	_, err := r.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, interrupt.ErrClosed)
}

// A stopped script never runs its next command, however its child takes the
// signal.
func TestAStoppedScriptNeverRunsItsNextCommand(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{
		"echo >ready; sleep 50; touch X",
		`bash -c 'trap "exit 0" INT; echo >ready; sleep 50 & wait'; touch X`,
		`(bash -c 'trap "exit 0" INT; echo >ready; sleep 50 & wait'; touch X); touch X`,
		"trap '' INT TERM; echo >ready; sleep 50; touch X",
	} {
		for range 5 {
			dir := t.TempDir()
			r := runner(t, &oneshot.Options{Dir: dir, Ladder: interrupt.Ladder{{Signal: 2, Grace: 100 * time.Millisecond}, {Signal: 15, Grace: 100 * time.Millisecond}}})
			ctx, cancel := context.WithCancel(testenv.Context(t))
			done := make(chan error, 1)
			go func() {
				_, err := r.Run(ctx, script)
				done <- err
			}()
			testenv.AwaitFile(t, filepath.Join(dir, "ready"))
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			assert.NoFileExists(t, filepath.Join(dir, "X"), script)
		}
	}
}

// A program that runs in a session passes the session's mark on by accident.
func TestARunnerWithinASessionStillEndsWhatItStarted(t *testing.T) {
	env := append(os.Environ(), "LIMPET_SESSION=of-somebody-else")
	r := oneshot.New(&oneshot.Options{Env: env, RuntimeDir: t.TempDir()})
	res, err := r.Run(testenv.Context(t), "sleep 1000 & echo LIMPET_SESSION=$LIMPET_SESSION")
	require.NoError(t, err)
	mark := strings.TrimSpace(res.Stdout.String())
	assert.NotContains(t, mark, "somebody-else")
	require.NotEmpty(t, testenv.Marked(mark))
	require.NoError(t, r.Close())
	assert.Empty(t, testenv.Marked(mark))
}

func TestNothingIsLeftInTheRuntimeDirAfterClose(t *testing.T) {
	dir := t.TempDir()
	r := runner(t, &oneshot.Options{RuntimeDir: dir})
	_, err := r.Run(testenv.Context(t), "echo x; sleep 1000 &")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	found, err := filepath.Glob(filepath.Join(dir, "limpet-*", "*"))
	require.NoError(t, err)
	assert.Empty(t, found)
}

func TestADeletedRuntimeDirDoesNotBrickTheRunner(t *testing.T) {
	dir := t.TempDir()
	r := runner(t, &oneshot.Options{RuntimeDir: dir})
	_, err := r.Run(testenv.Context(t), "true")
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(dir, "limpet-*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.RemoveAll(found[0]))
	res, err := r.Run(testenv.Context(t), "echo again")
	require.NoError(t, err)
	assert.Equal(t, "again\n", res.Stdout.String())
}

func TestReceiptNamesTheSignal(t *testing.T) {
	res, err := runner(t, nil).Run(testenv.Context(t), "kill -TERM $$")
	require.NoError(t, err)
	assert.Equal(t, syscall.SIGTERM, res.Receipt.Signal)
	assert.Equal(t, 143, res.ExitCode)
}

func TestTheDefaultEnvironmentIsThatOfAShell(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "s")
	t.Setenv("HARMLESS", "1")
	t.Setenv("PAGER", "less")
	r := runner(t, nil)
	res, err := r.Run(testenv.Context(t), `echo "${OPENAI_API_KEY-none} $HARMLESS $PAGER"; $EDITOR x`)
	require.NoError(t, err)
	assert.Equal(t, "none 1 cat\n", res.Stdout.String())
	assert.Equal(t, 1, res.ExitCode)

	r = runner(t, &oneshot.Options{Env: os.Environ()})
	res, err = r.Run(testenv.Context(t), `echo "$OPENAI_API_KEY $PAGER"`)
	require.NoError(t, err)
	assert.Equal(t, "s less\n", res.Stdout.String())
}

func TestABadEntryOfTheEnvironmentIsRefused(t *testing.T) {
	for _, entry := range []string{"NAME", "=x", "A=secret\x00"} {
		r := runner(t, &oneshot.Options{Env: []string{"B=1", entry}})
		for range 2 {
			res, err := r.Run(testenv.Context(t), "true")
			_, ok := errors.AsType[*command.EnvError](err)
			assert.True(t, ok, "%q: %v", entry, err)
			assert.Equal(t, command.CodeUnknown, res.ExitCode)
		}
	}
}

func TestAnotherInterpreterIsNoBash(t *testing.T) {
	for name, text := range map[string]string{
		"another shell": "#!/bin/sh\nexit 7\n",
		"too old":       "#!/bin/sh\necho '3.2.57(1)-release'\n",
	} {
		path := filepath.Join(t.TempDir(), "bash")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		r := runner(t, &oneshot.Options{Bash: path})
		for range 2 {
			res, err := r.Run(testenv.Context(t), "true")
			_, ok := errors.AsType[*transport.StartError](err)
			require.True(t, ok, "%s: %T: %v", name, err, err)
			assert.ErrorContains(t, err, "Options.Bash")
			assert.Equal(t, command.CodeUnknown, res.ExitCode)
		}
	}
}

// A write to a process that does not read is given up in time, but that is no reason
// to cut its input.
func TestStdinIsWholeForACommandThatReadsLate(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	r := oneshot.New(&oneshot.Options{RuntimeDir: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	const size = 1 << 20 // More than a pipe takes.
	script := fmt.Sprintf("sleep %.1f; wc -c", (transport.WritePatience + 500*time.Millisecond).Seconds())
	res, err := r.Do(testenv.Context(t), command.Request{Script: script, Stdin: strings.NewReader(strings.Repeat("x", size))})
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintln(size), res.Stdout.String())
}
