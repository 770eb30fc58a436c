package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// record is what was recorded, and fails while broken is set.
type record struct {
	mu     sync.Mutex
	lines  []session.Record
	overs  []session.Record // which come when they come
	broken error
}

func (r *record) take(_ context.Context, one session.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	if one.Kind == session.OverRecord {
		r.overs = append(r.overs, one)
	} else {
		r.lines = append(r.lines, one)
	}
	return nil
}

func (r *record) breaks(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

// brief is a line for each record.
func (r *record) brief() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, one := range r.lines {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", one.Session, one.Kind, one.Action.Kind, one.Action.Script))
		if one.Kind == session.EndRecord && one.Action.Kind == session.RunAction {
			line += fmt.Sprintf(": %d %q %s", one.ExitCode, one.Stdout.String(), one.Dir)
		}
		all = append(all, line)
	}
	return all
}

func TestAllThatIsDoneIsRecorded(t *testing.T) {
	var rec record
	r := registry(t, &session.Options{Record: rec.take})
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	_, err := s.Run(ctx, "cd /usr; echo hello; (exit 3)")
	require.NoError(t, err)
	_, err = s.Do(ctx, command.Request{Script: "echo once", Stdin: strings.NewReader("")})
	require.NoError(t, err)
	job, err := s.StartJob(ctx, jobs.Spec{Command: "true"})
	require.NoError(t, err)
	one, err := s.StartTerminal(ctx, terminal.Spec{Line: "cat"})
	require.NoError(t, err)
	require.NoError(t, s.Approve(ctx, one.Info().ID, "typed"))
	fork, err := s.Fork(ctx, "f")
	require.NoError(t, err)
	_, err = fork.Run(ctx, "pwd")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.Equal(t, []string{
		"s open",
		"s begin run cd /usr; echo hello; (exit 3)", `s end run cd /usr; echo hello; (exit 3): 3 "hello\n" /usr`,
		"s begin run echo once", `s end run echo once: 0 "once\n" /usr`,
		"s begin job true", "s end job true",
		"s begin terminal cat", "s end terminal cat",
		"s begin input typed",
		"f open", "f begin run pwd", `f end run pwd: 0 "/usr\n" /usr`,
		"s close",
	}, rec.brief())
	assert.Equal(t, job.ID, rec.lines[6].Started)
	assert.Equal(t, "/usr", rec.lines[5].Action.Dir)
	assert.Equal(t, one.Info().ID, rec.lines[8].Started)
	assert.Equal(t, one.Info().ID, rec.lines[9].Action.Input)
	ids := make(map[int64]int)
	for _, line := range rec.lines {
		assert.False(t, line.Time.IsZero())
		ids[line.ID]++
	}
	assert.Equal(t, map[int64]int{0: 3, 1: 2, 2: 2, 3: 2, 4: 2, 5: 1, 6: 2}, ids)
}

// A job, and a terminal whose program ends, are started long before they end.
func TestTheEndOfAJobAndOfATerminalIsRecorded(t *testing.T) {
	var rec record
	r := registry(t, &session.Options{Record: rec.take})
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	job, err := s.StartJob(ctx, jobs.Spec{Command: "exit 3"})
	require.NoError(t, err)
	long, err := s.StartJob(ctx, jobs.Spec{Command: "exec sleep 1000"})
	require.NoError(t, err)
	one, err := s.StartTerminal(ctx, terminal.Spec{Line: "exit 4"})
	require.NoError(t, err)
	over := func() map[string]string {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		all := make(map[string]string)
		for _, line := range rec.overs {
			assert.Equal(t, "s", line.Session)
			assert.False(t, line.Time.IsZero())
			assert.NotContains(t, all, line.Started, "told once")
			all[line.Started] = line.How
		}
		return all
	}
	testenv.Await(t, "both", func() bool { return len(over()) == 2 })
	assert.Equal(t, "exit 3", over()[job.ID])
	assert.Contains(t, over()[one.Info().ID], "exit 4")
	require.NoError(t, r.Close())
	assert.Contains(t, over(), long.ID, "Close waits until it is written down")
}

func TestWhatIsRefusedIsRecordedWithTheReason(t *testing.T) {
	var rec record
	a := &approver{heard: make(chan session.Action, 100)}
	r := registry(t, &session.Options{Record: rec.take, Approve: func(session.Approved) session.Approver { return a }})
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	_, err := s.Run(ctx, "no")
	require.ErrorIs(t, err, errNo)
	_, err = s.StartJob(ctx, jobs.Spec{Command: "no"})
	require.ErrorIs(t, err, errNo)
	require.ErrorIs(t, s.Approve(ctx, "term-x", "no"), errNo)
	assert.Equal(t, []string{"s open", "s refused run no", "s refused job no", "s refused input no"}, rec.brief())
	for _, line := range rec.lines[1:] {
		assert.ErrorIs(t, line.Err, errNo)
	}
}

// A command that runs on as a job has ended in the shell, and the record says which job it is.
func TestACommandThatBecomesAJobIsRecorded(t *testing.T) {
	testenv.Slow(t)
	var rec record
	r := registry(t, &session.Options{Record: rec.take})
	s := open(t, r, "s")
	_, err := s.Do(testenv.Context(t), command.Request{Script: "echo out; sleep 1000", HandOver: true, Timeout: 500 * time.Millisecond})
	handed, ok := errors.AsType[*session.BackgroundError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, handed.Job.ID, rec.lines[len(rec.lines)-1].Started)
}

func TestWhatCannotBeRecordedIsToldAndDone(t *testing.T) {
	var rec record
	r := registry(t, &session.Options{Record: rec.take})
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	rec.breaks(errors.New("the disk is full"))
	for range 3 {
		res, err := s.Run(ctx, "echo ran")
		require.NoError(t, err)
		assert.Equal(t, "ran\n", res.Stdout.String())
	}
	notices := s.Notices()
	require.Len(t, notices, 1, "it is told once")
	assert.Contains(t, notices[0], "cannot be recorded: the disk is full")
	rec.breaks(nil)
	_, err := s.Run(ctx, "true")
	require.NoError(t, err)
	rec.breaks(errors.New("again"))
	_, err = s.Run(ctx, "true")
	require.NoError(t, err)
	require.Len(t, s.Notices(), 1, "it has worked meanwhile")
}

func TestWhatMustBeRecordedIsRefusedBeforeItIsDone(t *testing.T) {
	var rec record
	r := registry(t, &session.Options{Record: rec.take, MustRecord: true})
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	rec.breaks(errors.New("the disk is full"))
	dir := testenv.TempDir(t)
	var refused *shell.RefusedError
	_, err := s.Run(ctx, "touch "+dir+"/ran")
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "the disk is full")
	_, err = s.StartJob(ctx, jobs.Spec{Command: "touch " + dir + "/ran"})
	require.ErrorAs(t, err, &refused)
	_, err = s.StartTerminal(ctx, terminal.Spec{Line: "touch " + dir + "/ran"})
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, s.Approve(ctx, "x", "y"), &refused)
	_, err = r.Open(ctx, "another", nil)
	require.ErrorContains(t, err, "the disk is full")
	assert.NoFileExists(t, dir+"/ran")
	rec.breaks(nil)
	res, err := s.Run(ctx, "echo on")
	require.NoError(t, err)
	assert.Equal(t, "on\n", res.Stdout.String())
}
