// Package jobs is a registry of background processes that survive the program which
// started them.
//
// The registry is a directory. Each job has one of its own in it, with what was asked
// for, who runs, what it prints and how it ended, written by a supervisor: a small
// process that stays with the job when the program is gone. So nothing is lost when
// the program crashes: [Open] finds every job as it is.
//
//	r, err := jobs.Open(dir, nil)
//	job, err := r.Start(ctx, jobs.Spec{Command: "make test", Notify: true})
//	...
//	got, err := r.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
//
// The way of a job, which is that of the files here: [Registry.Start] (start.go) writes
// the spec and starts the supervisor; state.go says what the files of a job mean;
// mind.go is the goroutine that looks after it, with watch.go and waiting.go, and puts what happens
// into the queue (queue.go); poll.go, log.go and wait.go are how callers look; stop.go ends it;
// retain.go forgets it. See docs/jobs.md for the files.
package jobs
