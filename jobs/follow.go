package jobs

import (
	"context"
	"iter"
	"time"

	"github.com/limpet-sh/limpet/internal/watch"
)

// Chunk is output of a job, in its order.
type Chunk struct {
	Offset  int64  // of the first byte
	Data    []byte // raw
	Dropped int64  // bytes between the last Chunk and this one, which were not kept; at the end there may be no Data behind them
}

// Follow returns what a job prints, from an offset on, as it comes, without a gap that
// is not told and without anything twice. It ends behind the last byte that the job
// printed before its end; or with an error, that of ctx for one. Any number may follow
// a job: it does not wait for them.
func (r *Registry) Follow(ctx context.Context, id string, offset int64) iter.Seq2[Chunk, error] {
	const op = "follow"
	return func(yield func(Chunk, error) bool) {
		j, err := r.find(op, id)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		events := watch.Shared.Watch(j.dir)
		defer events.Close()
		every := doubt
		if events.Err != nil {
			every = r.opts.Poll
		}
		timer := time.NewTimer(every)
		defer timer.Stop()
		var missed int64
		fail := func(err error) { yield(Chunk{}, &Error{Op: op, ID: id, Err: err}) }
		for {
			f, err := j.read()
			if err != nil {
				fail(j.unreadable(err))
				return
			}
			for offset < f.log.End {
				b, at, err := f.log.Read(offset, scanAtOnce)
				if err != nil {
					fail(err)
					return
				}
				missed += at - offset // All of it, where the log has rolled on under us.
				offset = at + int64(len(b))
				if len(b) > 0 {
					if !yield(Chunk{Offset: at, Data: b, Dropped: missed}, nil) {
						return
					}
					missed = 0
				}
			}
			if state, _ := f.state(); state.Finished() {
				if missed > 0 {
					yield(Chunk{Offset: offset, Dropped: missed}, nil)
				}
				return
			}
			timer.Reset(every)
			select {
			case <-events.C:
			case <-timer.C:
			case <-ctx.Done():
				fail(context.Cause(ctx))
				return
			case <-r.closing:
				fail(errClosed)
				return
			}
		}
	}
}
