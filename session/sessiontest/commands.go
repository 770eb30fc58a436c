package sessiontest

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

func stateStays(t *testing.T, s session.Handle) {
	run(t, s, "cd /tmp; x=1; f() { echo f; }; export E=e")
	assert.Equal(t, "/tmp 1 f e", says(t, s, "echo $PWD $x $(f) $(sh -c 'echo $E')"))
}

func resultIsWhole(t *testing.T, s session.Handle) {
	before := time.Now()
	res := run(t, s, "cd /usr; echo out; echo err >&2; true | (exit 4) | (exit 3)")
	assert.Equal(t, 3, res.ExitCode)
	assert.Equal(t, "out\n", res.Stdout.String())
	assert.Equal(t, "err\n", res.Stderr.String())
	assert.EqualValues(t, 4, res.Stdout.Total)
	assert.Equal(t, "/usr", res.Dir)
	assert.Equal(t, []int{0, 4, 3}, res.Receipt.Pipeline)
	assert.Nil(t, res.Restart)
	assert.Positive(t, res.Elapsed)
	assert.WithinRange(t, res.Started, before, time.Now())
	assert.EqualError(t, res.Err(), "command: exit status 3: err")
}

func signalsAreExitCodes(t *testing.T, s session.Handle) {
	res := run(t, s, "bash -c 'kill -TERM $$'")
	assert.Equal(t, 143, res.ExitCode)
	assert.Equal(t, syscall.SIGTERM, res.Receipt.Signal)
}

func leftoversAreNamed(t *testing.T, s session.Handle) {
	testenv.NeedProc(t)
	res := run(t, s, "sleep 1000 & echo $!")
	require.Len(t, res.Receipt.Leftover, 1)
	left := res.Receipt.Leftover[0]
	assert.Equal(t, strings.TrimSpace(res.Stdout.String()), fmt.Sprint(left.PID))
	assert.NotZero(t, left.Start)
	assert.Equal(t, "sleep 1000", left.Command)
}

func requestsHoldForOne(t *testing.T, s session.Handle) {
	run(t, s, "export A=a B=b; cd /")
	res, err := s.Do(testenv.Context(t), command.Request{
		Script: "echo $PWD $A ${B-none} $C", Dir: "tmp", Env: []string{"A=x", "C=c d"}, Unset: []string{"B"},
	})
	require.NoError(t, err)
	assert.Equal(t, "/tmp x none c d\n", res.Stdout.String())
	assert.Equal(t, "/ a b", says(t, s, "echo $PWD $A $B $C"))
}

func cannotRun(t *testing.T, s session.Handle) {
	do := func(req command.Request) error {
		res, err := s.Do(testenv.Context(t), req)
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
		require.Error(t, err)
		return err
	}
	for _, row := range []struct {
		req command.Request
		is  error
	}{
		{command.Request{Script: " \n"}, command.ErrEmptyScript},
		{command.Request{Script: "a\x00b"}, command.ErrNUL},
		{command.Request{Script: "true", Dir: "a\x00b"}, command.ErrNUL},
		{command.Request{Script: "true", HandOver: true, Stdin: strings.NewReader("")}, command.ErrHandOver},
		{command.Request{Script: "true", Env: []string{"PPID=1"}}, command.ErrReadonly},
	} {
		err := do(row.req)
		require.ErrorIs(t, err, row.is)
		assert.EqualError(t, err, row.req.Validate().Error())
	}
	var env *command.EnvError
	require.ErrorAs(t, do(command.Request{Script: "true", Env: []string{"1a=b"}}), &env)
	assert.Equal(t, "1a", env.Name)
	require.ErrorIs(t, env, command.ErrNoIdentifier)
	var ladder *command.LadderError
	require.ErrorAs(t, do(command.Request{Script: "true", Ladder: command.Ladder{{Signal: syscall.SIGSTOP}}}), &ladder)
	assert.Equal(t, &command.LadderError{Step: 0, Reason: "after a SIGSTOP no program can obey"}, ladder)
	run(t, s, "readonly mine=1")
	err := do(command.Request{Script: "true", Env: []string{"mine=2"}}) // bash finds this one.
	require.ErrorAs(t, err, &env)
	require.ErrorIs(t, err, command.ErrReadonly)
	assert.Equal(t, "mine", env.Name)
}

func noDirectory(t *testing.T, s session.Handle) {
	_, err := s.Do(testenv.Context(t), command.Request{Script: "true", Dir: "/no/such/dir"})
	var dir *shell.DirError
	require.ErrorAs(t, err, &dir)
	assert.Equal(t, "/no/such/dir", dir.Dir)
	require.ErrorIs(t, err, syscall.ENOENT)
	assert.ErrorContains(t, err, `cannot start in directory "/no/such/dir": no such file or directory`)
}

func manyCallers(t *testing.T, s session.Handle) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			res, err := s.Run(testenv.Context(t), fmt.Sprintf("own=%d; n=$((n+1)); echo $own", i))
			if assert.NoError(t, err) {
				assert.Equal(t, fmt.Sprintln(i), res.Stdout.String())
			}
		})
	}
	all.Wait()
	assert.Equal(t, "20", says(t, s, "echo $n"))
}

func busy(t *testing.T, s session.Handle) {
	slow := begun(testenv.Context(t), t, s, command.Request{Script: "sleep 1000"})
	_, err := s.Do(testenv.Context(t), command.Request{Script: "echo ran", TurnTimeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrBusy)
	ran, err := s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	assert.True(t, ran)
	_, err = slow.ended(t)
	require.ErrorIs(t, err, shell.ErrInterrupted)
}

func exitIsAStatus(t *testing.T, s session.Handle) {
	run(t, s, "cd /tmp; x=1")
	assert.Equal(t, 7, run(t, s, "x=2; exit 7").ExitCode)
	assert.Equal(t, "/tmp 2", says(t, s, "echo $PWD $x"))
	assert.Equal(t, 3, run(t, s, "set -e; (exit 3); echo never").ExitCode)
	assert.Equal(t, "/tmp 2", says(t, s, "echo $PWD $x"))
}

func killedBash(t *testing.T, s session.Handle) {
	run(t, s, "x=1")
	require.NoError(t, s.Checkpoint(testenv.Context(t), "one")) // A kill loses what was not saved.
	res, err := s.Run(testenv.Context(t), "bash -c 'kill -9 $PPID'")
	var dead *shell.DeadError
	require.ErrorAs(t, err, &dead)
	assert.Equal(t, syscall.SIGKILL, dead.Signal)
	assert.NotEmpty(t, dead.Argv)
	assert.EqualError(t, err, "bash was killed by signal 9 (killed) and did not say how the command ended")
	require.NotNil(t, res.Restart)
	assert.NotEmpty(t, res.Restart.Reason)
	assert.Equal(t, "1", says(t, s, "echo $x"))
}
