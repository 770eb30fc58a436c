package jobs

import (
	"context"
	"iter"
)

// Handle is what is done with the jobs of a registry, wherever it is: a [*Registry] is one of this program,
// and that of another program is reached by something else that does the same, with the same errors and the
// same texts. Its methods are safe for concurrent use. Where it is elsewhere, each may also fail as the way
// there does, and text that is not UTF-8 may not arrive as it is, but for what Log, Poll and Follow return.
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
