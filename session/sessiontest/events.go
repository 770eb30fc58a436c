package sessiontest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// watcher sees the events of a session as they come.
type watcher struct {
	t    *testing.T
	s    session.Handle
	seq  int64
	left []session.Event
}

// next is the next event, which is waited for.
func (w *watcher) next() session.Event {
	w.t.Helper()
	if len(w.left) == 0 {
		list, err := w.s.Events(testenv.Context(w.t), w.seq)
		require.NoError(w.t, err)
		require.NotEmpty(w.t, list)
		w.left = list
	}
	one := w.left[0]
	w.left = w.left[1:]
	require.Equal(w.t, w.seq+1, one.Seq, "nothing is left out")
	w.seq = one.Seq
	return one
}

// Who watches sees what begins, what it prints while it runs, and how it ends; who comes later sees what is remembered.
func eventsAreSeen(t *testing.T, s session.Handle) {
	ctx := testenv.Context(t)
	_, err := s.Run(ctx, "cd /; echo early")
	require.NoError(t, err)
	w := &watcher{t: t, s: s}
	began := w.next()
	assert.Equal(t, session.BeginEvent, began.Kind)
	assert.Equal(t, "cd /; echo early", began.Script)
	assert.NotEmpty(t, began.Dir)
	assert.Equal(t, s.Name(), began.Session)
	printed := w.next()
	assert.Equal(t, session.OutputEvent, printed.Kind)
	assert.Equal(t, "early\n", string(printed.Text))
	assert.Zero(t, printed.Missed)
	ended := w.next()
	assert.Equal(t, session.EndEvent, ended.Kind)
	assert.Equal(t, "/", ended.Dir)
	assert.Positive(t, ended.Elapsed)
	assert.Zero(t, ended.ExitCode)
	for _, one := range []session.Event{printed, ended} {
		assert.Equal(t, began.Command, one.Command)
		assert.False(t, one.Time.IsZero())
	}

	fifo := testenv.TempDir(t) + "/fifo"
	over := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, command.Request{Script: "mkfifo " + fifo + "; echo now; echo err >&2; cat " + fifo + "; exit 3"})
		over <- err
	}()
	second := w.next()
	assert.Equal(t, session.BeginEvent, second.Kind)
	assert.Equal(t, "/", second.Dir)
	assert.Greater(t, second.Command, began.Command)
	seen := map[bool]string{}
	for len(seen[false]) < len("now\n") || len(seen[true]) < len("err\n") { // While it runs: it waits for the fifo.
		one := w.next()
		require.Equal(t, session.OutputEvent, one.Kind)
		seen[one.Stderr] += string(one.Text)
	}
	assert.Equal(t, map[bool]string{false: "now\n", true: "err\n"}, seen)
	_, err = s.Interrupt(ctx)
	require.NoError(t, err)
	last := w.next()
	assert.Equal(t, session.EndEvent, last.Kind)
	assert.Equal(t, 130, last.ExitCode)
	assert.NotEmpty(t, last.Error)
	require.Error(t, <-over)
}

// Who watches is told what the Result of a command says beside its exit code, and of a command that has not ended nothing of the kind.
func receiptsAreSeen(t *testing.T, s session.Handle) {
	w := &watcher{t: t, s: s}
	ends := func() *session.Receipt {
		t.Helper()
		for {
			one := w.next()
			if one.Kind == session.EndEvent {
				require.NotNil(t, one.Receipt)
				return one.Receipt
			}
			assert.Nil(t, one.Receipt)
		}
	}
	res := run(t, s, "true | (exit 4) | (exit 3)")
	got := ends()
	assert.Equal(t, []int{0, 4, 3}, got.Pipeline)
	assert.Equal(t, res.Receipt.User, got.User)
	assert.Equal(t, res.Receipt.System, got.System)
	assert.Equal(t, []string{"pipeline 0|4|3"}, got.Lines())

	run(t, s, "bash -c 'kill -TERM $$'")
	got = ends()
	assert.Equal(t, syscall.SIGTERM, got.Signal)
	assert.Equal(t, []string{"ended by signal 15 (terminated)"}, got.Lines())

	res = run(t, s, "set -e; exec 9>/dev/null")
	require.NotEmpty(t, res.Receipt.NotKept)
	got = ends()
	assert.Equal(t, res.Receipt.NotKept, got.NotKept)
	assert.Equal(t, []string{"not kept: " + strings.Join(res.Receipt.NotKept, "; ")}, got.Lines())

	res, err := s.Run(testenv.Context(t), "bash -c 'kill -9 $PPID'")
	require.Error(t, err)
	require.NotNil(t, res.Restart)
	got = ends()
	assert.Equal(t, res.Restart.String(), got.Restart)
	assert.Contains(t, got.Lines(), got.Restart)

	testenv.NeedProc(t)
	res = run(t, s, "sleep 1000 &")
	require.Len(t, res.Receipt.Leftover, 1)
	got = ends()
	left := res.Receipt.Leftover[0]
	assert.Equal(t, []session.LeftProcess{{PID: left.PID, Command: left.Command}}, got.Leftover)
	assert.Equal(t, []string{"left running: " + left.String()}, got.Lines())
}

// Who watches is shown the beginning of a script that is longer than all that is remembered, and misses no other event by it.
func longScript(t *testing.T, s session.Handle) {
	w := &watcher{t: t, s: s}
	run(t, s, "echo before")
	for range 3 {
		assert.Zero(t, w.next().Cut)
	}
	script := "echo long\n: '" + strings.Repeat("\u00e9", 1<<20) + "'"
	run(t, s, script)
	list, err := s.Events(testenv.Context(t), 0)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	assert.EqualValues(t, 1, list[0].Seq, "what was before is remembered")
	began := w.next()
	assert.Equal(t, session.BeginEvent, began.Kind)
	assert.LessOrEqual(t, len(began.Script), 64<<10)
	assert.GreaterOrEqual(t, len(began.Script), 64<<10-1)
	assert.True(t, strings.HasPrefix(script, began.Script), "no rune is cut")
	assert.Equal(t, len(script)-len(began.Script), began.Cut)
	assert.Equal(t, "long\n", string(w.next().Text))
	assert.Equal(t, session.EndEvent, w.next().Kind)
}

// What was refused before it had its turn, and a wait that is given up, are nothing that happens.
func whatIsRefusedIsNoEvent(t *testing.T, s session.Handle) {
	_, err := s.Run(testenv.Context(t), "true")
	require.NoError(t, err)
	_, err = s.Do(testenv.Context(t), command.Request{Script: "echo \x00"})
	require.ErrorIs(t, err, command.ErrNUL)
	list, err := s.Events(testenv.Context(t), 0)
	require.NoError(t, err)
	last := list[len(list)-1]
	assert.Equal(t, session.EndEvent, last.Kind)
	assert.Equal(t, list[0].Command, last.Command)
	_, err = s.Run(testenv.Context(t), "false")
	require.NoError(t, err)
	list, err = s.Events(testenv.Context(t), last.Seq)
	require.NoError(t, err)
	assert.Equal(t, "false", list[0].Script)
	w := &watcher{t: t, s: s, seq: last.Seq, left: list}
	w.next()
	assert.Equal(t, 1, w.next().ExitCode)

	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	ended := make(chan error, 1)
	go func() { _, err := s.Events(ctx, w.seq); ended <- err }()
	cancel(gaveUp)
	require.ErrorIs(t, <-ended, gaveUp)
	list, err = s.Events(testenv.Context(t), 1<<40)
	require.NoError(t, err, "the numbers of another program begin anew")
	assert.NotEmpty(t, list)
}

// What a person may want to know who watches no command: a line that a job is watched for, and the end of a job. It is told however much
// was printed since, by numbers of events, which leave out the others.
func noticesAreTold(t *testing.T, s session.Handle) {
	ctx := testenv.Context(t)
	job, err := s.StartJob(ctx, jobs.Spec{Command: "echo ready at 80; exit 3", Watch: []string{"ready"}})
	require.NoError(t, err)
	var told []session.Event
	for seq := int64(0); len(told) < 2; {
		list, err := s.Noticed(ctx, seq)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, one := range list {
			assert.Greater(t, one.Seq, seq)
			seq = one.Seq
		}
		told = append(told, list...)
	}
	require.Len(t, told, 2)
	kinds := make(map[session.NoticeKind]string)
	for _, one := range told {
		assert.Equal(t, session.NoticeEvent, one.Kind)
		assert.Equal(t, s.Name(), one.Session)
		assert.False(t, one.Time.IsZero())
		require.NotNil(t, one.Notice)
		assert.Equal(t, job.ID, one.Notice.About)
		kinds[one.Notice.Kind] = one.Notice.Text
	}
	assert.Contains(t, kinds[session.JobMatched], "printed line 1: ready at 80")
	assert.Contains(t, kinds[session.JobEnded], "has ended: exit 3")

	// Those who watch are told, too, among the commands.
	_, err = s.Run(ctx, "for i in {1..20000}; do echo $i; done")
	require.NoError(t, err)
	again, err := s.Noticed(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, told, again)
	list, err := s.Events(ctx, told[0].Seq-1)
	require.NoError(t, err)
	assert.Equal(t, session.NoticeEvent, list[0].Kind)

	gaveUp := errors.New("gave up")
	short, cancel := context.WithCancelCause(ctx)
	cancel(gaveUp)
	_, err = s.Noticed(short, told[1].Seq)
	require.ErrorIs(t, err, gaveUp, "what is no notice is not told")
}
