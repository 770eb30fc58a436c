package session_test

import (
	"strings"
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

func theJobs(t *testing.T, r *session.Registry) *jobs.Registry {
	t.Helper()
	registry, err := r.Jobs()
	require.NoError(t, err)
	return registry
}

// ended waits for a job to end and returns what it printed.
func ended(t *testing.T, r *session.Registry, id string) string {
	t.Helper()
	_, err := theJobs(t, r).Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{id}})
	require.NoError(t, err)
	log, err := theJobs(t, r).Log(id, jobs.LogOptions{})
	require.NoError(t, err)
	return log.Text
}

func TestAJobIsWhereItsSessionIs(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	run(t, s, "mkdir -p sub; cd sub; export E='a  b'; x=no")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: `echo "$PWD|$E|${x-none}|$OWN|${LIMPET_SESSION-none}"`, Env: []string{"OWN=o"}})
	require.NoError(t, err)
	assert.Equal(t, "s", job.Session)
	assert.Equal(t, s.Dir()+"|a  b|none|o|none\n", ended(t, r, job.ID))

	job, err = s.StartJob(testenv.Context(t), jobs.Spec{Command: "pwd", Dir: ".."})
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSuffix(s.Dir(), "/sub")+"\n", ended(t, r, job.ID))
}

func TestATerminalIsWhereItsSessionIs(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	run(t, s, "cd /tmp; export E=e MANPAGER=mine")
	term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Line: `echo "$PWD|$E|$TERM|${PAGER-none}|$MANPAGER"`})
	require.NoError(t, err)
	<-term.Done()
	text, err := term.Text(0, 1000)
	require.NoError(t, err)
	assert.Equal(t, "/tmp|e|xterm-256color|none|mine\n", text.Text)
}

func TestCloseEndsTheSessionsJobsAndTerminalsAndNoOthers(t *testing.T) {
	r := registry(t, nil)
	s, other := open(t, r, "s"), open(t, r, "other")
	mine, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	theirs, err := other.StartJob(testenv.Context(t), jobs.Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Argv: []string{"sleep", "1000"}})
	require.NoError(t, err)
	now := info(t, s)
	assert.Equal(t, 1, now.Jobs)
	assert.Equal(t, 1, now.Terminals)
	require.NoError(t, s.Close())
	assert.True(t, term.Info().State.Ended())
	job, err := theJobs(t, r).Get(mine.ID)
	require.NoError(t, err)
	assert.True(t, job.State.Finished())
	job, err = theJobs(t, r).Get(theirs.ID)
	require.NoError(t, err)
	assert.False(t, job.State.Finished())
}

func TestACommandThatIsHandedOverBecomesAJob(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, nil)
	s := open(t, r, "s")
	run(t, s, "x=1; f() { echo f; }")
	res, err := s.Do(testenv.Context(t), command.Request{
		Script: "echo begin; f; until [[ -e go ]]; do sleep 0.01; done; echo end", HandOver: true, Timeout: 500 * time.Millisecond,
	})
	background, ok := asBackground(err)
	require.True(t, ok, "%v", err)
	require.ErrorIs(t, err, shell.ErrTimeout)
	assert.Contains(t, res.Stdout.String(), "begin\nf\n")
	assert.Equal(t, "s", background.Job.Session)
	assert.Equal(t, "1", says(t, s, "echo $x"), "the session goes on")
	run(t, s, ": >go")
	assert.Contains(t, ended(t, r, background.Job.ID), "end\n")
}

func asBackground(err error) (*session.BackgroundError, bool) {
	b, ok := err.(*session.BackgroundError)
	return b, ok
}

func TestTheEndOfAJobIsToldOnceAndToItsSessionAlone(t *testing.T) {
	r := registry(t, nil)
	s, other := open(t, r, "s"), open(t, r, "other")
	run(t, other, "true")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "exit 3", Notify: true})
	require.NoError(t, err)
	var told []string
	testenv.Await(t, "the notice", func() bool {
		assert.Empty(t, other.Notices())
		told = append(told, s.Notices()...)
		return len(told) > 0
	})
	require.Len(t, told, 1)
	assert.Contains(t, told[0], job.ID)
	assert.Contains(t, told[0], "exit 3")
	assert.Empty(t, s.Notices())
}

func TestTheEndThatWasSeenIsNotTold(t *testing.T) {
	r := registry(t, nil)
	s, other := open(t, r, "s"), open(t, r, "other")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "true", Notify: true})
	require.NoError(t, err)
	testenv.Await(t, "the end", func() bool {
		j, err := theJobs(t, r).Get(job.ID)
		return err == nil && j.State.Finished()
	})
	other.Notices() // Whatever was queued by then.
	r.Seen(job.ID)
	_, err = theJobs(t, r).Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Empty(t, s.Notices())
}

func TestTheEndOfATerminalsProgramIsTold(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Line: "exit 4"})
	require.NoError(t, err)
	var told []string
	testenv.Await(t, "the notice", func() bool {
		told = append(told, s.Notices()...)
		return len(told) > 0
	})
	require.Len(t, told, 1)
	assert.Contains(t, told[0], term.ID())
	assert.Contains(t, told[0], "exit 4")

	term, err = s.StartTerminal(testenv.Context(t), terminal.Spec{Argv: []string{"sleep", "1000"}})
	require.NoError(t, err)
	require.NoError(t, term.Close())
	require.NoError(t, s.Close())
	assert.Empty(t, s.Notices(), "who ended it knows")
}

func TestNoticesAreBounded(t *testing.T) {
	s := open(t, registry(t, nil), "s")
	for i := range 60 {
		s.Notify(strings.Repeat("x", i))
		s.Notify(strings.Repeat("x", i)) // Not twice.
	}
	told := s.Notices()
	require.Len(t, told, 51)
	assert.Equal(t, "20 more notices were dropped", told[50])
}

func TestOfAWatchedJobMatchesAndTheEndAreTold(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "echo ERROR 1; until [[ -e go ]]; do sleep 0.01; done; exit 3", Watch: []string{"ERROR"}})
	require.NoError(t, err)
	var told []string
	testenv.Await(t, "the match", func() bool { told = append(told, s.Notices()...); return len(told) > 0 })
	assert.Contains(t, told[0], "matches \"ERROR\": ERROR 1")
	run(t, s, ": >go")
	testenv.Await(t, "the end", func() bool { told = append(told, s.Notices()...); return len(told) > 1 })
	require.Len(t, told, 2)
	assert.Contains(t, told[1], job.ID)
	assert.Contains(t, told[1], "exit 3")
	assert.Empty(t, s.Notices())
}

func TestACommandThatCannotBecomeAJobIsStopped(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, &session.Options{Jobs: &jobs.Options{MaxRunning: 1}})
	s := open(t, r, "s")
	_, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	res, err := s.Do(testenv.Context(t), command.Request{Script: "echo out; sleep 1000; touch never", HandOver: true, Timeout: 500 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrTimeout)
	require.ErrorIs(t, err, jobs.ErrTooMany)
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	assert.Equal(t, "out\n", res.Stdout.String())
	assert.Equal(t, "none", says(t, s, "ls never 2>/dev/null || echo none"))
}
