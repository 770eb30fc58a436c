package transporttest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// suite is what a check runs over.
type suite struct {
	transport transport.Transport        // nil if open makes the sessions
	open      func(t *testing.T) Session // nil: each is a shell of this program's
	traits    []Trait
	poll      time.Duration // not 0: without file events
	least     part          // what is checked
}

// hang bounds every call: whatever reaches it hangs.
const hang = 60 * time.Second

// sh is a shell, or a session, in a fresh directory whose calls must not hang.
type sh struct {
	Session
	t      *testing.T
	dir    string
	mark   string         // what its processes have in their environment
	ladder command.Ladder // of its commands, if it is not the shell that has it
	end    func()         // closes it, and checks that nothing of it is left; safe to call twice
}

// tempDir is a directory of the test's own, which belongs to whom the transport runs
// things as.
func (s suite) tempDir(t *testing.T) string {
	t.Helper()
	dir := testenv.TempDir(t)
	if s.give(t, dir) {
		testenv.LetPass(t, filepath.Dir(dir))
	}
	return dir
}

// runtimeDir is a directory for the files of shells. A sandbox does not show it.
func (s suite) runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(rundir.Default(true), "limpet-transporttest-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	testenv.LetPass(t, dir) // Whoever it is that uses the shells.
	return dir
}

// give gives a file to whom the transport runs things as, if that is another user.
func (s suite) give(t *testing.T, path string) bool {
	t.Helper()
	who := transport.UserOf(s.transport)
	if who != nil {
		require.NoError(t, os.Chown(path, int(who.UID), int(who.GID)))
	}
	return who != nil
}

// options are those of a shell in a fresh directory. The program's own may not
// be there where the transport starts things.
func (s suite) options(t *testing.T) *shell.Options {
	t.Helper()
	return &shell.Options{Dir: s.tempDir(t), Transport: s.transport, Poll: s.poll}
}

// start starts a shell that is closed with the test, or before by its end.
func (s suite) start(t *testing.T, edit ...func(*shell.Options)) *sh {
	t.Helper()
	opts := s.options(t)
	for _, e := range edit {
		e(opts)
	}
	var x *sh
	if s.open != nil {
		x = s.session(t, opts)
	} else {
		p, err := shell.Start(t.Context(), opts)
		require.NoError(t, err)
		x = &sh{Session: ofShell{p}, t: t, dir: opts.Dir}
	}
	x.end = sync.OnceFunc(func() {
		assert.NoError(t, x.Close())
		left := testenv.Marked(x.mark)
		assert.Empty(t, left, "processes that outlived Close: %s", testenv.Describe(left))
	})
	t.Cleanup(x.end)
	x.mark = ipc.SessionVar + "=" + strings.TrimSpace(x.run("echo $"+ipc.SessionVar).Stdout.String())
	return x
}

// file is a path in the shell's first directory.
func (x *sh) file(name string) string { return filepath.Join(x.dir, name) }

// do runs a request to its end, whichever that is.
func (x *sh) do(req command.Request) (command.Result, error) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	res, err := x.Do(ctx, req)
	require.NoError(x.t, ctx.Err(), "hangs: %.200s", req.Script)
	return res, err
}

// run runs a script that must not be stopped.
func (x *sh) run(script string) command.Result {
	x.t.Helper()
	res, err := x.do(command.Request{Script: script})
	require.NoError(x.t, err, "%.200s", script)
	return res
}

// want runs a script that must succeed and print stdout and nothing else.
func (x *sh) want(stdout, script string) command.Result {
	x.t.Helper()
	res := x.run(script)
	assert.Equal(x.t, stdout, res.Stdout.String(), script)
	assert.Empty(x.t, res.Stderr.String(), script)
	assert.Zero(x.t, res.ExitCode, script)
	return res
}

// stopped runs a request that must be stopped because of cause.
func (x *sh) stopped(cause error, req command.Request) (command.Result, *shell.InterruptError) {
	x.t.Helper()
	res, err := x.do(req)
	return res, x.interruption(cause, err, res)
}

func (x *sh) interruption(cause, err error, res command.Result) *shell.InterruptError {
	x.t.Helper()
	require.ErrorIs(x.t, err, cause, "exit code %d, stderr %q", res.ExitCode, res.Stderr.String())
	var stop *shell.InterruptError
	require.ErrorAs(x.t, err, &stop)
	assert.Empty(x.t, stop.Outcome.Left, "lived through it all")
	assert.Equal(x.t, res.Restart == nil, stop.Outcome.ShellSurvived, "Restart and Outcome disagree: %v, %v", res.Restart, stop.Outcome)
	return stop
}

// interruptAt runs a script until it has written a line to the file event, and
// interrupts it then.
func (x *sh) interruptAt(event, script string) (command.Result, *shell.InterruptError) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	var res command.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = x.Run(ctx, script)
	}()
	testenv.AwaitFile(x.t, x.file(event))
	x.settled()
	_, stop := x.Interrupt(ctx)
	require.NoError(x.t, stop)
	<-done
	require.NoError(x.t, ctx.Err(), "hangs: %.200s", script)
	return res, x.interruption(shell.ErrInterrupted, err, res)
}

// settled waits until the session starts no more processes: the event may have
// come before the script had started all of them.
func (x *sh) settled() {
	x.t.Helper()
	const looks = 5
	last, same := "", 0
	testenv.Await(x.t, "the script to have started all it starts", func() bool {
		now := testenv.Describe(testenv.Marked(x.mark))
		if same++; now != last {
			last, same = now, 0
		}
		return same >= looks
	})
}

// setState gives the shell what wantState finds again.
func (x *sh) setState() {
	x.t.Helper()
	x.want("", `v='a b'; export e=exported; arr=(1 "2 3"); fun() { echo "fun $1"; }; mkdir -p sub; cd sub; umask 027`)
}

// wantState checks that the state of an earlier command is still there.
func (x *sh) wantState() {
	x.t.Helper()
	res := x.want("a b|exported|2 3|fun x|"+x.file("sub")+"|0027|",
		`printf '%s|' "$v" "$(/bin/sh -c 'echo $e')" "${arr[1]}" "$(fun x)" "$PWD" "$(umask)"`)
	x.wantDir(x.file("sub"), res)
}

// saved has the shell save its state now. It does so by itself when it is idle for a moment, and
// before a script that may end it.
func (x *sh) saved() {
	x.t.Helper()
	require.NoError(x.t, x.Checkpoint(x.t.Context(), "saved"))
}

// pid returns bash's pid.
func (x *sh) pid() int { return x.printedPID("echo $$") }

// printedPID runs a script that prints the pid of a process of the session, and
// returns which pid that is here.
func (x *sh) printedPID(script string) int {
	x.t.Helper()
	there, err := strconv.Atoi(strings.TrimSpace(x.run(script).Stdout.String()))
	require.NoError(x.t, err)
	pid := testenv.PIDHere(x.mark, there)
	require.NotZero(x.t, pid, "there is no process %d", there)
	return pid
}

// wantOnly checks that of the session nobody but bash and n jobs live.
func (x *sh) wantOnly(n int) {
	x.t.Helper()
	left := testenv.Marked(x.mark)
	assert.Len(x.t, left, n+1, "bash and %d jobs, not: %s", n, testenv.Describe(left))
}
