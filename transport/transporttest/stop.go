package transporttest

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

// short is a timeout for what would go on for ever.
const short = 300 * time.Millisecond

// hasty is a ladder for members that obey nothing but SIGKILL.
var hasty = interrupt.Ladder{
	{Signal: 2, Grace: 200 * time.Millisecond},
	{Signal: 15, Grace: 200 * time.Millisecond},
	{Signal: 9, Grace: time.Second},
}

// 7. `while :; do :; done` times out and the session keeps its state.
func busyLoop(t *testing.T, s suite) {
	x := s.start(t)
	x.setState()
	pid := x.pid()
	for _, script := range []string{
		"while :; do :; done",
		"f() { while :; do :; done; }; f",
		"until false; do [[ a == b ]]; done",
		"for ((;;)); do echo x >/dev/null; done",
	} {
		res, stop := x.stopped(shell.ErrTimeout, command.Request{Script: script, Timeout: short})
		assert.Equal(t, command.CodeTimeout, res.ExitCode)
		assert.True(t, stop.Outcome.ShellSurvived, script)
		x.wantState()
	}
	assert.Equal(t, pid, x.pid(), "it is another bash")
}

// 7, 12. It does not matter at which moment a command is stopped: bash lives
// on, with its state and its jobs. Each round stops a little later than the one
// before, from before the first fork to long after the last.
func anyMoment(t *testing.T, s suite) {
	rounds := testenv.Repeats(5, 20, 40)
	x := s.start(t)
	x.setState()
	x.want("", "sleep 900 &")
	replaced := 0
	for _, script := range []string{
		"sleep 50 | sleep 51 | cat",
		"while :; do /bin/true; done",
		"while :; do /bin/true | cat; done",
		"(while :; do /bin/true; done)",
		"while :; do w=$(/bin/true); done",
		"(sleep 50)",
		"while :; do :; done",
	} {
		for i := range rounds {
			res, _ := x.stopped(shell.ErrTimeout, command.Request{Script: script, Timeout: time.Duration(i+1) * 12 * time.Millisecond / time.Duration(rounds)})
			if res.Restart != nil {
				replaced++
				t.Logf("stopped in round %d: %s: %v", i, script, res.Restart)
				x.run("sleep 900 &")
			}
			x.wantState()
		}
	}
	assert.Zero(t, replaced, "stops that cost a bash and its jobs: see docs/adr/0003")
}

// 7. A program that ignores SIGINT, as one does that a script started with "&" or
// nohup, stops its commands as any other: they do not inherit that.
func deafProgram(t *testing.T, s suite) {
	signal.Ignore(syscall.SIGINT)
	t.Cleanup(func() { signal.Reset(syscall.SIGINT) })
	x := s.start(t)
	x.setState()
	_, stop := x.stopped(shell.ErrTimeout, command.Request{Script: "sleep 50; touch X", Timeout: short})
	assert.True(t, stop.Outcome.ShellSurvived)
	x.wantState()
}

// nextCommands are scripts that write a line to the file ready, wait for ever,
// and would then touch X.
var nextCommands = []string{
	"echo >ready; sleep 50; touch X",
	"echo >ready; sleep 50 && touch X",
	"echo >ready; sleep 50 || touch X",
	"echo >ready; ! sleep 50; touch X",
	"echo >ready\nsleep 50\ntouch X",
	"echo >ready; if sleep 50; then touch X; else touch X; fi",
	"echo >ready; while sleep 50; do touch X; done; touch X",
	"until { echo >ready; sleep 50; }; do touch X; done; touch X",
	"for i in 1 2 3; do echo >ready; sleep 50; touch X; done",
	"f() { echo >ready; sleep 50; touch X; }; f; touch X",
	"(echo >ready; sleep 50; touch X); touch X",
	"{ echo >ready; sleep 50; touch X; } | cat; touch X",
	"echo >ready; sleep 50 | cat; touch X",
	"echo >ready; sleep 50 | sleep 51 | sleep 52; touch X",
	"w=$(echo >ready; sleep 50; touch X); touch X",
	"echo >ready; eval 'sleep 50; touch X'; touch X",
	"echo 'echo >ready; sleep 50; touch X' >s; . ./s; touch X",
	"bash -c 'echo >ready; sleep 50; touch X'; touch X",
	"bash -c 'echo >ready; sleep 50; exit 0'; touch X",
	"mkfifo p; echo >ready; read line <p; touch X",
	"sleep 50 & echo >ready; wait; touch X",
	"sleep 50 & echo >ready; wait $!; touch X",
	"{ sleep 50; touch X; } & echo >ready; wait; touch X",
	"cat <(echo >ready; sleep 50; touch X); touch X",
	"time { echo >ready; sleep 50; }; touch X",
	"exec 9>lock; echo >ready; sleep 50 9>&-; touch X",
	"set -e; echo >ready; sleep 50; touch X",
	"trap 'true' ERR DEBUG; echo >ready; sleep 50; touch X",
	"trap '' INT; echo >ready; sleep 50; touch X",
	"trap '' INT TERM; echo >ready; sleep 50; touch X",
	"trap '' INT QUIT TERM HUP; echo >ready; while :; do :; done; touch X",
	"trap 'true' INT; echo >ready; sleep 50; touch X",
	"trap 'true' INT TERM; echo >ready; while :; do :; done; touch X",
	// A child that deals with the signal and exits: bash would go on.
	`bash -c 'trap "exit 0" INT; echo >ready; sleep 50 & wait'; touch X`,
	`bash -c 'trap "exit 3" INT TERM; echo >ready; while :; do :; done'; touch X`,
	`bash -c 'trap "exit 0" INT; echo >ready; sleep 50 & wait' | cat; touch X`,
	`for i in 1 2; do bash -c 'trap "exit 0" INT; echo >ready; sleep 50 & wait'; touch X; done`,
	`bash -c 'trap "" INT; echo >ready; while :; do :; done'; touch X`,
	`bash -c 'trap "" INT TERM; echo >ready; while :; do :; done'; touch X`,
	`setsid -w bash -c 'echo >ready; sleep 50'; touch X`,
	`bash -c 'echo >ready; kill -STOP $$; while :; do :; done'; touch X`,
	`env -i /bin/sh -c 'echo >ready; sleep 50; :'; touch X`,
	// The same, where another shell would go on.
	stub + `(bash stub; touch X); touch X`,
	stub + `{ bash stub; touch X; } | cat; touch X`,
	stub + `w=$(bash stub; touch X); touch X`,
	stub + `bash -c 'bash stub; touch X; sleep 5'; touch X`,
	stub + `sh -c 'bash stub; touch X; sleep 5'; touch X`,
	stub + `bash -c '(bash stub; touch X); touch X; sleep 5'; touch X`,
	`(trap '' INT TERM; echo >ready; sleep 50; touch X); touch X`,
	`bash -c 'trap "" INT TERM; echo >ready; sleep 50; touch X'; touch X`,
	`(echo >ready; kill -STOP $BASHPID; :); touch X`,
}

// stub makes a script that deals with SIGINT and exits, as ping does.
const stub = `echo "trap 'exit 0' INT; echo >ready; sleep 50 & wait" >stub; `

// 8. `sleep 50; touch X`: after the stop X never appears. A script that was
// stopped never runs its next command, whatever it waits in and however that
// takes the signal; and what earlier commands set is there afterwards, even
// when bash had to be replaced.
func noNextCommand(t *testing.T, s suite) {
	for i, script := range s.some(nextCommands) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel() // Most of it is waiting for what obeys no signal.
			t.Log(script)
			x := s.start(t, func(o *shell.Options) { o.Ladder = hasty })
			x.setState()
			x.want("", "cd ..")
			x.interruptAt("ready", script)
			// Nobody lives who could do it later, and bash does something else.
			assert.Empty(t, others(x), script)
			assert.NoFileExists(t, x.file("X"), script)
			x.run("trap - INT TERM HUP QUIT ERR DEBUG; set +e; cd sub")
			x.wantState()
		})
	}
	x := s.start(t)
	_, _ = x.stopped(shell.ErrTimeout, command.Request{Script: "sleep 50; touch X", Timeout: short})
	assert.NoFileExists(t, x.file("X"))
	x.want("fine\n", "echo fine")
}

// others names what lives of the session besides bash.
func others(x *sh) string {
	bash := x.pid()
	for _, st := range testenv.Marked(x.mark) {
		if st.PID != bash {
			return testenv.Describe(testenv.Marked(x.mark))
		}
	}
	return ""
}

// 9. A stop ends the command's whole tree, pipelines and those who left by
// setsid included.
func wholeTree(t *testing.T, s suite) {
	x := s.start(t)
	x.want("", "sleep 900 &") // An earlier job is none of it.
	for _, script := range []string{
		"echo >ready; sleep 1000 | sleep 1001 | cat",
		"setsid sleep 1000 & echo >ready; wait",
		"setsid -f sleep 1000; echo >ready; sleep 1001",
		"(sleep 1000 & sleep 1001 &) ; echo >ready; sleep 1002",
		"nohup sleep 1000 >/dev/null 2>&1 & disown; echo >ready; sleep 1001",
		"(setsid bash -c '(setsid sleep 1000 &) ; sleep 1001' &) ; echo >ready; sleep 1002",
		"bash -c 'bash -c \"sleep 1000 & sleep 1001\" & echo >ready; sleep 1002'",
		"for i in {1..30}; do sleep 1000 & done; echo >ready; wait",
		"coproc sleep 1000; echo >ready; cat <&${COPROC[0]}",
		"trap : INT; sleep 1000 & echo >ready; wait",
		"trap : INT; for i in 1 2 3; do (while :; do sleep 1000; done) & done; echo >ready; wait",
	} {
		_, stop := x.interruptAt("ready", script)
		assert.NotEmpty(t, stop.Outcome.Signalled, script)
		assert.True(t, stop.Outcome.ShellSurvived, script)
		x.wantOnly(1)
		x.run("rm ready")
	}
	// Also when bash has to be replaced: the earlier job is still known.
	earlier := 1
	if slices.Contains(s.traits, EndsWithBash) {
		earlier = 0
	}
	for _, script := range []string{
		"sleep 1000 & echo >ready; wait",
		"for i in 1 2 3; do (while :; do sleep 1000; done) & done; echo >ready; wait",
	} {
		x.run("trap : INT") // Bash itself has it from here on.
		_, stop := x.interruptAt("ready", script)
		assert.False(t, stop.Outcome.ShellSurvived, script)
		x.wantOnly(earlier)
		x.run("rm ready; trap - INT")
	}
}

// 10. Members that ignore INT and TERM are dead by the ladder's grace plus a
// second. That is logged; what is asserted is that they are killed when the ladder is at
// its end.
func stubbornMembers(t *testing.T, s suite) {
	const loop = `trap "" INT TERM HUP; echo >ready; while :; do :; done`
	x := s.start(t, func(o *shell.Options) { o.Ladder = hasty })
	x.setState()
	x.want("", "cd ..")
	for _, script := range []string{
		"bash -c '" + loop + "'",
		"bash -c '" + loop + "' | cat",
		"cat <(bash -c '" + loop + "')",
		"setsid bash -c '" + loop + "' & wait",
		"(" + loop + ")",
		"(setsid bash -c '" + loop + "' &) ; while :; do :; done",
		"bash -c '" + loop + " & wait' & wait",
		"bash -c 'trap \"\" INT TERM; echo >ready; kill -STOP $$; while :; do :; done'",
	} {
		began := time.Now()
		_, stop := x.interruptAt("ready", script)
		t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), stop.Outcome)
		if stop.Outcome.ShellSurvived || !slices.Contains(s.traits, EndsWithBash) {
			assert.NotEmpty(t, stop.Outcome.Killed, script)
		}
		x.wantOnly(0)
		x.run("rm ready; cd sub")
		x.wantState()
		x.run("cd ..")
	}
}

// 11. A timeout returns the partial output, 124, and says what became of the
// processes.
func partialOutput(t *testing.T, s suite) {
	x := s.start(t)
	res, stop := x.stopped(shell.ErrTimeout,
		command.Request{Script: "echo out; echo err >&2; printf half; sleep 1000", Timeout: time.Second})
	assert.Equal(t, "out\nhalf", res.Stdout.String())
	assert.Equal(t, "err\n", res.Stderr.String())
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	require.Len(t, stop.Outcome.Signalled, 1)
	assert.Equal(t, "sleep 1000", stop.Outcome.Signalled[0].Command)
	assert.Empty(t, stop.Outcome.Killed)
	assert.Contains(t, stop.Error(), "1 process signalled")

	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	res, err := x.Run(ctx, "echo out; sleep 1000")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotErrorIs(t, err, shell.ErrTimeout, "the caller's deadline is not our limit")
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	x.want("fine\n", "echo fine")
}

// 13. Cancelling ends the command within 200 ms and leaves no orphan. The time is
// logged; what is asserted is that the call returns long before the command would end.
func cancelled(t *testing.T, s suite) {
	x := s.start(t)
	for _, script := range []string{"echo >ready; sleep 1000", "sleep 1000 & echo >ready; sleep 1001", "echo >ready; while :; do :; done"} {
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err := x.Run(ctx, script)
			t.Logf("back %v after the cancel: %s", time.Since(at).Round(time.Microsecond), script)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, command.CodeInterrupted, res.ExitCode)
		}()
		testenv.AwaitFile(t, x.file("ready"))
		at = time.Now()
		cancel()
		select {
		case <-done:
		case <-time.After(hang):
			require.FailNow(t, "a cancelled command goes on", script)
		}
		x.wantOnly(0)
		require.NoError(t, os.Remove(x.file("ready")))
	}
}

// 14. An idle timeout is separate from the total one.
func idleTimeout(t *testing.T, s suite) {
	x := s.start(t)
	res, stop := x.stopped(shell.ErrIdle, command.Request{Script: "echo out; sleep 1000", IdleTimeout: short})
	assert.NotErrorIs(t, stop, shell.ErrTimeout)
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	assert.Equal(t, "out\n", res.Stdout.String())

	// Output on either stream counts, and the total is longer than the limit.
	const idle = 1500 * time.Millisecond
	res, err := x.do(command.Request{
		Script: "for i in {1..5}; do sleep 0.4; if ((i % 2)); then echo $i; else echo $i >&2; fi; done", IdleTimeout: idle,
	})
	require.NoError(t, err)
	assert.Greater(t, res.Elapsed, idle)

	_, stop = x.stopped(shell.ErrTimeout,
		command.Request{Script: "while :; do echo x; sleep 0.05; done", Timeout: short, IdleTimeout: hang})
	assert.NotErrorIs(t, stop, shell.ErrIdle)
	x.want("fine\n", "echo fine")
}
