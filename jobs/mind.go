package jobs

import (
	"os"
	"time"

	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/internal/watch"
)

// doubt is how often a job is looked at without an event: a supervisor that was killed
// raises none.
const (
	doubt  = time.Second
	seldom = time.Minute // where its end is told otherwise
)

// look starts to look after a job, until it is over. With Options.Brief nobody would wait
// for what it finds: recover has looked once.
func (r *Registry) look(j *job) {
	if !r.opts.Brief {
		r.work.Go(func() { r.mind(j) })
	}
}

// settle records the end of a job that has ended, also in the place of a killed
// supervisor. ran reports whether an earlier look found it running.
func (r *Registry) settle(j *job, f *files, ran bool) {
	state, exit := f.state()
	if !state.Finished() {
		return
	}
	if f.exit == nil && f.present.Elsewhere == "" {
		r.recordLoss(j, f, ran)
		if recorded, err := j.read(); err == nil {
			*f = recorded
			_, exit = f.state()
		}
	}
	r.completed(j, f)
	r.setOver(j, exit)
	if f.killed && len(f.orphans) == 0 && len(f.members()) == 0 { // One that forks while it is looked for may be missed once.
		supervisor.Tidy(j.dir)
	}
}

// mind is the life of a job as its owner sees it: whenever something is new, match what
// it has printed, tell the end.
func (r *Registry) mind(j *job) {
	events := watch.Shared.Watch(j.dir)
	defer events.Close()
	every, ended := doubt, (<-chan struct{})(nil)
	if handle := j.supervised(); handle != nil {
		every, ended = seldom, handle.Done() // That is told.
	}
	if _, err := os.Stat(j.dir); events.Err != nil && err == nil { // Else it was forgotten just now.
		r.opts.Logger.Warn("limpet: polling for news of a job", "job", j.spec.ID, "interval", r.opts.Poll, "err", events.Err)
		every = r.opts.Poll
	}
	patterns, _ := compile(j.spec.Watch) // They were compiled before.
	m := &matcher{r: r, j: j, patterns: patterns}
	ran, unreadable := false, false
	var asked *supervisor.Waiting
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		f, err := j.read()
		select {
		case <-j.gone:
			return
		default:
		}
		if err != nil {
			if !unreadable {
				r.opts.Logger.Warn("limpet: a job cannot be read", "job", j.spec.ID, "err", err)
			}
			unreadable = true // It is said once.
		} else {
			state, _ := f.state()
			ran = ran || state == Running
			m.match(&f, state.Finished())
			asked = r.tellWait(j, &f, asked)
			r.settle(j, &f, ran)
			if state.Finished() && !f.present.Supervisor && len(f.orphans) == 0 {
				j.release() // The job may be kept for long, and its supervisor has ended.
				r.retire.soon()
				return
			}
		}
		timer.Reset(m.next(every))
		select {
		case <-events.C:
		case <-timer.C:
		case <-ended:
			ended, every = nil, doubt // If the supervisor was killed, nobody reports on its orphans.
		case <-j.gone:
			return
		case <-r.closing:
			return
		}
	}
}

// recordLoss writes down that a job has ended unseen, so that it does not change any
// more. One that ran at the last look has ended just now. Of others it is not known when:
// somebody may have seen them run long after they had said their last.
func (r *Registry) recordLoss(j *job, f *files, ran bool) {
	j.mu.Lock()
	stopped := j.stopped
	j.mu.Unlock()
	exit := supervisor.Exit{Code: -1, Unknown: true, Killed: f.killed, Stopped: stopped, Output: f.log.End}
	if ran {
		exit.EndedNow()
	}
	if !f.started {
		_, e := f.state()
		exit = supervisor.Exit{Code: -1, Failed: e.Why, Ended: j.spec.Created}
	}
	r.recordExit(j, exit)
}

// recordExit writes down how a job ended, in the place of its supervisor.
func (r *Registry) recordExit(j *job, exit supervisor.Exit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.gone:
		return // Its directory is being removed.
	default:
	}
	if err := supervisor.WriteExit(j.dir, exit); err != nil {
		r.opts.Logger.Warn("limpet: the end of a job could not be written down", "job", j.spec.ID, "err", err)
	}
}

// completed puts the end of a job into the queue, if it is to be told and was not.
func (r *Registry) completed(j *job, f *files) {
	memo := j.remembered()
	if !memo.Told && (j.spec.Notify || memo.Off) {
		job := r.present(j, f)
		r.queue.push(Event{Kind: Completed, Time: r.opts.now(), Job: &job}, j)
	}
}

// saw notes that the caller knows of the end of a job.
func (r *Registry) saw(j *job, job Job) {
	if r.opts.ReadOnly || !job.State.Finished() {
		return
	}
	r.setOver(j, job.Exit) // mind may be late.
	if j.remembered().Told {
		return
	}
	r.remember(j, func(m *memo) { m.Told = true })
	r.queue.withdraw(j)
}

// present is the job as callers get it.
func (r *Registry) present(j *job, f *files) Job {
	job := f.job(r.opts.now())
	if f.exit == nil && job.State == Lost { // It is about to be recorded.
		j.mu.Lock()
		job.Exit.Stopped = j.stopped
		j.mu.Unlock()
	}
	if j.remembered().Off {
		job.Watch = nil
	}
	return job
}

// tellOf puts an event about a job into the queue.
func (r *Registry) tellOf(j *job, event Event) {
	f, err := j.read()
	if err != nil {
		return // It was forgotten.
	}
	job := r.present(j, &f)
	event.Time, event.Job = r.opts.now(), &job
	r.note(j, event)
	r.queue.push(event, j)
}
