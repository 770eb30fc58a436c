package jobs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// waits returns what a job waits for, as soon as that is a certain thing.
func waits(t *testing.T, r *jobs.Registry, id, what string) jobs.Waiting {
	t.Helper()
	var found *jobs.Waiting
	testenv.Await(t, "a "+what, func() bool {
		job, err := r.Get(id)
		require.NoError(t, err)
		found = job.Waits
		return found != nil && found.For == what
	})
	return *found
}

// told waits for the next event.
func told(t *testing.T, r *jobs.Registry) jobs.Event {
	t.Helper()
	select {
	case event := <-r.Events():
		return event
	case <-testenv.Context(t).Done():
		t.Fatal("no event comes")
	}
	panic("unreachable")
}

// Who looks at a job sees what it asks for, and who started it with Notify is told, once for each question.
func TestAJobThatAsksIsNoticedAndTold(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `read -rsp 'secret: ' x; echo; read -rp 'name? ' y; read -rp 'really? ' z; echo bye`, PTY: true, Notify: true})
	assert.Nil(t, job.Waits)
	for _, question := range []struct{ what, text string }{
		{jobs.ForPassword, "bash waits for a password (echo is off)"}, {jobs.ForLine, "bash waits for a line of input"}, {jobs.ForLine, "bash waits for a line of input"},
	} {
		event := told(t, r)
		assert.Equal(t, jobs.Waits, event.Kind)
		assert.Equal(t, question.text, event.Why)
		require.NotNil(t, event.Job.Waits)
		assert.Equal(t, question.what, event.Job.Waits.For)
		w := waits(t, r, job.ID, question.what)
		assert.NotZero(t, w.PID)
		assert.WithinDuration(t, time.Now(), w.Since, testenv.Patience)
		_, err := r.Write(job.ID, []byte("text\n"))
		require.NoError(t, err)
	}
	assert.Equal(t, jobs.Completed, told(t, r).Kind)
	job = end(t, r, job.ID)
	assert.Nil(t, job.Waits)
	history, err := r.History(job.ID)
	require.NoError(t, err)
	var kinds []jobs.EventKind
	for _, event := range history {
		kinds = append(kinds, event.Kind)
	}
	assert.Equal(t, []jobs.EventKind{jobs.Started, jobs.Waits, jobs.Waits, jobs.Waits, jobs.Ended}, kinds)
}

// What a job prints beside its question does not make it another one.
func TestAQuestionIsToldOnce(t *testing.T) {
	testenv.NeedProc(t)
	testenv.Slow(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `for i in 1 2 3; do sleep 1.5; echo tick $i; done & read -r x; wait`, PTY: true, Notify: true})
	assert.Equal(t, jobs.Waits, told(t, r).Kind)
	until(t, r, job.ID, "tick 3")
	waits(t, r, job.ID, jobs.ForLine)
	_, err := r.Write(job.ID, []byte("\n"))
	require.NoError(t, err)
	assert.Equal(t, jobs.Completed, told(t, r).Kind)
}

// One that begins to read long after its last word is noticed as well, and one that goes on by itself is not.
func TestAJobIsLookedAtAfterASilence(t *testing.T) {
	testenv.NeedProc(t)
	testenv.Slow(t)
	r := open(t, nil)
	late := start(t, r, jobs.Spec{Command: `sleep 1.5; read -r x`, PTY: true})
	sleeps := start(t, r, jobs.Spec{Command: `sleep 1000`, PTY: true})
	piped := start(t, r, jobs.Spec{Command: `read -r x`, Stdin: true})
	waits(t, r, late.ID, jobs.ForLine)
	for _, id := range []string{sleeps.ID, piped.ID} {
		job, err := r.Get(id)
		require.NoError(t, err)
		assert.Nil(t, job.Waits, "%s", job.Command)
	}
}

// A program may give up by itself, without a word, and do something else.
func TestAJobThatGoesOnByItselfWaitsNoMore(t *testing.T) {
	testenv.NeedProc(t)
	testenv.Slow(t)
	dir := t.TempDir()
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `until [[ -e go ]]; do read -rst 1 x; done; exec sleep 1000`, Dir: dir, PTY: true})
	w := waits(t, r, job.ID, jobs.ForPassword)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	testenv.Await(t, "it to be seen", func() bool {
		now, err := r.Get(job.ID)
		require.NoError(t, err)
		return now.Waits == nil && proc.Name(w.PID) == "sleep"
	})
	now, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Running, now.State)
}

// The next owner of a job does not tell again what the one before has told.
func TestAQuestionIsToldOnceThoughTheRegistryIsOpenedAgain(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := t.TempDir()
	r, err := jobs.Open(dir, nil)
	require.NoError(t, err)
	job := start(t, r, jobs.Spec{Command: `read -r x; read -r y`, PTY: true, Notify: true, Lifetime: jobs.Detached})
	assert.Equal(t, jobs.Waits, told(t, r).Kind)
	require.NoError(t, r.Close())

	r = openIn(t, dir, nil)
	waits(t, r, job.ID, jobs.ForLine)
	_, err = r.Write(job.ID, []byte("\n"))
	require.NoError(t, err)
	testenv.Await(t, "the next question", func() bool { return count(t, r, job.ID, jobs.Waits) == 2 })
	_, err = r.Write(job.ID, []byte("\n"))
	require.NoError(t, err)
	end(t, r, job.ID)
	assert.Equal(t, 2, count(t, r, job.ID, jobs.Waits))
}

// count returns how many events of a kind the history of a job has.
func count(t *testing.T, r *jobs.Registry, id string, kind jobs.EventKind) (n int) {
	t.Helper()
	history, err := r.History(id)
	require.NoError(t, err)
	for _, event := range history {
		if event.Kind == kind {
			n++
		}
	}
	return n
}
