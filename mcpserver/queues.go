package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/session"
)

// queues are the commands that calls have sent to sessions, in which they run one at a time. A
// client may give a call up without a word, and the next one would wait behind its command: some
// hosts do so after a minute, or at an Esc. The zero value is ready.
type queues struct {
	mu   sync.Mutex
	of   map[string][]*queued // by the name of the session; the first is the one that runs
	over chan struct{}        // closed when the next turn is over; nil if nobody waits for that
}

// queued is a command of a call.
type queued struct {
	session, command, result string
	caller                   string // as its request says
	client                   *mcp.ServerSession
	began                    time.Time // when the turn came
	doubted                  bool      // its client may have given it up
	left                     bool      // its client has left, and nobody reads its answer
	cancel                   func()    // ends its call
}

// runs reports whether the command is what its session runs, as that says.
func (q *queued) runs(info session.Info) bool {
	return info.Running == q.command && info.Holder == q.caller
}

// begin notes a command down.
func (q *queues) begin(one *queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = make(map[string][]*queued)
	}
	one.began = time.Now()
	q.of[one.session] = append(q.of[one.session], one)
}

// end takes a command out that has ended, or did not run. It reports whether its client may have
// given it up.
func (q *queues) end(one *queued) (doubted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.of[one.session]
	i := slices.Index(rest, one)
	if i < 0 {
		return one.doubted // It was ended before.
	}
	rest = slices.Delete(rest, i, i+1)
	if i == 0 && len(rest) > 0 {
		rest[0].began = time.Now()
	}
	if q.of[one.session] = rest; len(rest) == 0 {
		delete(q.of, one.session)
	}
	if q.over != nil {
		close(q.over)
		q.over = nil
	}
	return one.doubted
}

// first returns the command that runs in a session, if there is one.
func (q *queues) first(session string) (one queued, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if list := q.of[session]; len(list) > 0 {
		return *list[0], true
	}
	return queued{}, false
}

// doubt notes that a client makes another call in a session while its command runs there: who makes one
// call after the other has given the first up.
func (q *queues) doubt(session string, client *mcp.ServerSession, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if list := q.of[session]; len(list) > 0 && list[0].client == client && time.Since(list[0].began) >= after {
		list[0].doubted = true
	}
}

// leave notes that a client has left, and returns its commands that run, as far as is known here. Those that wait
// for their turn are cancelled: nothing of them is to be begun.
func (q *queues) leave(client *mcp.ServerSession) (running []queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range q.of {
		for i, one := range list {
			switch {
			case one.client != client:
			case i == 0:
				one.left = true
				running = append(running, *one)
			default:
				one.left = true
				one.cancel()
			}
		}
	}
	return running
}

// hasLeft reports whether the client of a command has left.
func (q *queues) hasLeft(one *queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return one.left
}

// free waits until no command of a call runs in a session.
func (q *queues) free(ctx context.Context, session string) bool {
	for {
		q.mu.Lock()
		if len(q.of[session]) == 0 {
			q.mu.Unlock()
			return true
		}
		if q.over == nil {
			q.over = make(chan struct{})
		}
		over := q.over
		q.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return false
		}
	}
}

// turn waits for the turn of a call that runs no command in a session, but asks its shell. The error
// is that of a session that is busy.
func (c *call) turn(ctx context.Context, sess *session.Session) error {
	defer c.waits(ctx, sess)()
	limited, cancel := context.WithTimeout(ctx, c.server.opts.TurnTimeout)
	defer cancel()
	const pause = 50 * time.Millisecond // between two looks at what another caller runs
	for c.server.queues.free(limited, sess.Name()) && limited.Err() == nil {
		if info, _ := sess.Info(ctx); info.Running == "" {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-limited.Done():
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return c.busy(ctx, sess)
}

// busy says what a session does for so long that a call did nothing.
func (c *call) busy(ctx context.Context, sess session.Handle) error {
	queues, name := &c.server.queues, sess.Name()
	queues.doubt(name, c.request.Session, 0)
	one, ok := queues.first(name)
	if info, _ := sess.Info(ctx); info.Running != "" && !(ok && one.runs(info)) { // A session by name has other callers, too.
		return fmt.Errorf("session %s is in use: %s. Nothing was run. Call again later, or use another session name, which runs beside it", name, held(info))
	}
	if !ok {
		return fmt.Errorf("session %s was busy, and is free by now: nothing was run; call again", name)
	}
	return fmt.Errorf("session %s is busy for %.0f s with: %s (result %s). Nothing was run. "+
		"Call again later, end that by interrupt, or use another session name, which runs beside it",
		name, time.Since(one.began).Seconds(), brief(one.command), one.result)
}
