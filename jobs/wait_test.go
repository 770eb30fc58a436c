package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
)

func TestAWaitEndsWithTheFirstOfSeveralJobs(t *testing.T) {
	r := open(t, nil)
	slow := start(t, r, jobs.Spec{Command: "sleep 1000"})
	quick := start(t, r, jobs.Spec{Command: "read x; exit 4", Stdin: true})
	require.NoError(t, r.Submit(quick.ID, ""))
	w := wait(t, r, jobs.WaitOptions{IDs: []string{slow.ID, quick.ID}})
	assert.Equal(t, jobs.WaitExited, w.Reason)
	assert.Equal(t, quick.ID, w.Job.ID)
	assert.Equal(t, 4, w.Job.Exit.Code)

	// Without names: any that runs now.
	done := make(chan jobs.Waited, 1)
	go func() {
		w, err := r.Wait(context.Background(), jobs.WaitOptions{})
		assert.True(t, err == nil || errors.Is(err, jobs.ErrNotFound), "%v", err)
		done <- w
	}()
	_, err := r.Stop(testenv.Context(t), slow.ID)
	require.NoError(t, err)
	select { // It may have been slower than the stop: then nothing ran, which is an error.
	case w = <-done:
		assert.Contains(t, []string{slow.ID, ""}, w.Job.ID)
	case <-time.After(testenv.Patience):
		t.Fatal("it waits for ever")
	}
	// One that has ended: at once.
	w = wait(t, r, jobs.WaitOptions{IDs: []string{quick.ID}})
	assert.Equal(t, jobs.WaitExited, w.Reason)
}

func TestAWaitForAPatternFindsWhatWasAndWhatComes(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `echo "listening on 8080"; read x; printf '\e[32mready\e[0m: '; read x; exit 3`, Stdin: true})
	m := until(t, r, job.ID, `on (\d+)$`)
	assert.Equal(t, jobs.Match{Number: 1, Offset: 0, Text: "listening on 8080"}, m)
	m = until(t, r, job.ID, `on (\d+)$`)
	assert.EqualValues(t, 0, m.Offset, "what was printed before counts")
	require.NoError(t, r.Submit(job.ID, ""))
	m = until(t, r, job.ID, `^ready: $`)
	assert.EqualValues(t, 18, m.Offset, "a prompt has no newline")
	require.NoError(t, r.Submit(job.ID, ""))
	w := wait(t, r, jobs.WaitOptions{IDs: []string{job.ID}, Pattern: "listening", From: 1})
	assert.Equal(t, jobs.WaitExited, w.Reason, "and its end, where nothing comes")
	assert.Nil(t, w.Match)
	w = wait(t, r, jobs.WaitOptions{IDs: []string{job.ID}, Pattern: "ready"})
	assert.Equal(t, jobs.WaitMatched, w.Reason, "a match is found though the job has ended")
}

func TestAWaitForSilence(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "seq 1 100; sleep 1000"})
	w := wait(t, r, jobs.WaitOptions{IDs: []string{job.ID}, Silence: 50 * time.Millisecond})
	assert.Equal(t, jobs.WaitSilent, w.Reason)
	assert.GreaterOrEqual(t, w.Job.Quiet, 50*time.Millisecond)
}

func TestAWaitForAPort(t *testing.T) {
	r := open(t, nil)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	job := start(t, r, jobs.Spec{Command: fmt.Sprintf(`read x; exec python3 -c "
import socket
s = socket.create_server(('localhost', %d))
s.accept(); s.accept()"`, port), Stdin: true})
	done := make(chan jobs.Waited, 1)
	go func() {
		w, err := r.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}, Port: fmt.Sprint(port)})
		assert.NoError(t, err)
		done <- w
	}()
	require.NoError(t, r.Submit(job.ID, ""))
	assert.Equal(t, jobs.WaitPort, (<-done).Reason)
}

func TestAWaitIsClampedAndSaysSo(t *testing.T) {
	r := open(t, &jobs.Options{MaxWait: 30 * time.Millisecond})
	job := start(t, r, jobs.Spec{Command: "sleep 1000"})
	for _, row := range []struct {
		asked, took time.Duration
		clamped     bool
	}{{0, 30 * time.Millisecond, false}, {time.Hour, 30 * time.Millisecond, true}, {time.Millisecond, time.Millisecond, false}} {
		w, err := r.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}, Timeout: row.asked})
		require.NoError(t, err)
		assert.Equal(t, jobs.WaitTimeout, w.Reason)
		assert.Equal(t, row.took, w.Timeout)
		assert.Equal(t, row.clamped, w.Clamped)
		assert.GreaterOrEqual(t, w.Took, row.took)
		assert.Equal(t, job.ID, w.Job.ID)
		assert.Equal(t, jobs.Running, w.Job.State)
	}
}

func TestAWaitEndsAtAnInterrupt(t *testing.T) {
	source := interrupt.New()
	r := open(t, &jobs.Options{Interrupts: source})
	job := start(t, r, jobs.Spec{Command: "sleep 1000"})
	reason := errors.New("the user has something better to do")
	done := make(chan error, 1)
	go func() {
		w, err := r.Wait(context.Background(), jobs.WaitOptions{IDs: []string{job.ID}})
		assert.Equal(t, jobs.WaitInterrupted, w.Reason)
		done <- err
	}()
	source.Stop(reason)
	err := <-done
	assert.ErrorIs(t, err, jobs.ErrInterrupted)
	assert.ErrorIs(t, err, reason)
	source.Clear()

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = r.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
	assert.ErrorIs(t, err, context.Canceled)
	job, err = r.Get(job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Running, job.State, "the job runs on")
}

func TestAWaitSaysWhatItCannotWaitFor(t *testing.T) {
	r := open(t, nil)
	ctx := testenv.Context(t)
	for want, o := range map[string]jobs.WaitOptions{
		"there is no such job that runs":   {},
		`"job-nobody": there is no such":`: {IDs: []string{"job-nobody"}},
		"missing closing )":                {Pattern: "("},
		"no number from 1 to 65535":        {Port: "http"},
		"negative":                         {Silence: -1},
	} {
		_, err := r.Wait(ctx, o)
		if want[0] == '"' {
			assert.ErrorIs(t, err, jobs.ErrNotFound)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
	job := start(t, r, jobs.Spec{Command: "read x", Stdin: true})
	done := make(chan error, 1)
	go func() {
		_, err := r.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}, Pattern: "never", Timeout: testenv.Patience})
		done <- err
	}()
	require.NoError(t, r.Close())
	if err := <-done; err != nil { // It may have seen the end of the job, which Close stops.
		assert.ErrorIs(t, err, jobs.ErrClosed)
	}
	_, err := r.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
	assert.ErrorIs(t, err, jobs.ErrClosed)
}
