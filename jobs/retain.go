package jobs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// retirement forgets what has finished long enough ago, and tells when the breaker is
// released. Its goroutine ends with close.
type retirement struct {
	r    *Registry
	wake chan struct{}
	done chan struct{}
	work sync.WaitGroup
}

// retireEvery is how often what has finished is looked at, at least.
const retireEvery = time.Minute

func newRetirement(r *Registry) *retirement {
	return &retirement{r: r, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (t *retirement) start() { t.work.Go(t.loop) }

// soon has a look taken: a job has finished, or the breaker was opened.
func (t *retirement) soon() {
	select {
	case t.wake <- struct{}{}:
	default: // It knows.
	}
}

func (t *retirement) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.done:
			return
		}
		t.r.releaseBreaker()
		timer.Reset(t.next(t.r.expire()))
	}
}

// next is when to look again, if the next job expires after the given time.
func (t *retirement) next(expires time.Duration) time.Duration {
	next := min(expires, retireEvery)
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if due := t.r.breaker.due(); !due.IsZero() {
		next = min(next, due.Sub(t.r.opts.now()))
	}
	return max(next, time.Millisecond)
}

func (t *retirement) close() {
	close(t.done)
	t.work.Wait()
}

// expire forgets the finished jobs that are too old, or too many, and returns when the
// next one will be too old.
func (r *Registry) expire() (next time.Duration) {
	type finished struct {
		j     *job
		ended time.Time
	}
	var over []finished
	now := r.opts.now()
	for _, j := range r.all() {
		if !j.isReady() || j.running() {
			continue
		}
		f, err := j.read()
		if err != nil {
			continue
		}
		job := f.job(now)
		if !job.State.Finished() || job.Leftover || f.exit == nil || r.owed(j) {
			continue // Without a record it may only be that it cannot be seen from here.
		}
		ended := job.Exit.Ended
		switch seen := j.remembered().Seen; {
		case seen == 0 && ended.IsZero():
			ended = now // It is being noted that it was seen.
		case time.Unix(0, seen).After(ended) && !time.Unix(0, seen).After(now): // Else the clock was set back since.
			ended = time.Unix(0, seen) // It ended while no program was there.
		}
		over = append(over, finished{j, ended})
	}
	slices.SortFunc(over, func(a, b finished) int {
		return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.j.spec.ID, b.j.spec.ID))
	})
	next = r.opts.Retain
	for i, one := range over {
		left := one.j.spec.Retain - now.Sub(one.ended)
		if len(over)-i <= r.opts.MaxFinished && left > 0 {
			next = min(next, left)
			continue
		}
		r.drop(one.j) // What is in the queue of it is still told.
	}
	return next
}

// owed reports whether the end of a job is still to be put into the queue.
func (r *Registry) owed(j *job) bool {
	memo := j.remembered()
	return (j.spec.Notify || memo.Off) && !memo.Told && !r.queue.has(j)
}

// drop removes a job and its directory. Whoever waits for it is told that it is gone.
func (r *Registry) drop(j *job) {
	r.mu.Lock()
	delete(r.jobs, j.spec.ID)
	r.mu.Unlock()
	j.release()
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.gone:
		return // Somebody else has just forgotten it.
	default:
	}
	close(j.gone)
	// First what makes it a job: who is killed here leaves nothing that looks like one.
	err := os.Remove(filepath.Join(j.dir, specFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // It was not even made.
	}
	if err := errors.Join(err, os.RemoveAll(j.dir)); err != nil {
		r.opts.Logger.Warn("limpet: a job could not be removed", "dir", j.dir, "err", err)
	}
}
