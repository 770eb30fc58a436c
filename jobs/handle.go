package jobs

import (
	"context"
	"iter"
)

// Handle is a registry of jobs, in this program or in another one. A [*Registry] is the former; for the latter
// something else has the same methods, with the same errors and the same texts. The methods are safe for concurrent
// use. In another program each may also fail because the connection does, and text that is not UTF-8 may arrive
// changed, except in what Log, Poll and Follow return.
type Handle interface {
	// Get returns one job, and List those that a filter means, the oldest first.
	Get(id string) (Job, error)
	List(filter Filter) ([]Job, error)

	// Poll, Log and Search return parts of what a job has printed, History what has happened to it.
	Poll(id string, opts *PollOptions) (Polled, error)
	Log(id string, opts LogOptions) (Log, error)
	Search(id, pattern string, o SearchOptions) (Found, error)
	History(id string) ([]Event, error)

	// Follow returns what a job prints, as it comes.
	Follow(ctx context.Context, id string, offset int64) iter.Seq2[Chunk, error]

	// Wait waits for one of several jobs.
	Wait(ctx context.Context, o WaitOptions) (Waited, error)

	// Stop ends a job with all that it has started, StopAll those that a filter means.
	Stop(ctx context.Context, id string) (Stopped, error)
	StopAll(ctx context.Context, filter Filter) ([]Stopped, error)

	// Write, Submit and CloseStdin are about what a job reads, Resize about the terminal that it is on.
	Write(id string, p []byte) (int, error)
	Submit(id, text string) error
	CloseStdin(id string) error
	Resize(id string, size Size) error

	// Forget removes a job that has ended.
	Forget(id string) error
}

var _ Handle = (*Registry)(nil)
