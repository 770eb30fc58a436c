package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
)

// The pauses before a machine is dialled again, and how long that is tried.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second

	DefaultReconnect = 5 * time.Minute
)

// reconnection is under way for as long as somebody waits for it.
type reconnection struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	err     error // once it is done
}

// RoundTrip sends a request over the connection. If that is lost it is dialled again, and the request is sent again if it was not
// sent, or may be sent twice.
func (h *Host) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		l, err := h.connected(r.Context())
		if err != nil {
			return nil, err
		}
		var sent atomic.Bool
		resp, err := l.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			WroteHeaders: func() { sent.Store(true) },
		})))
		if err == nil {
			h.mu.Lock()
			h.outage, h.mute = time.Time{}, false
			h.mu.Unlock()
			resp.Body = &body{resp.Body, h, l}
			return resp, nil
		}
		if isStop(r) && errors.Is(context.Cause(r.Context()), wire.ErrUnreachable) { // Else the command has ended meanwhile.
			h.mu.Lock()
			h.mute = true
			h.mu.Unlock()
		}
		if err = h.lost(l, err); !errors.Is(err, ErrLost) || sent.Load() && !mayBeSentTwice(r) || h.opts.Reconnect < 0 {
			return nil, err
		}
		if r.GetBody != nil {
			b, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = b
		}
	}
}

// mayBeSentTwice reports whether a request does no harm when it is answered a second time, minutes later: it reads, or is about one command,
// which has an id, or one piece of its input, or of a file, which has an offset, or it has the same effect.
func mayBeSentTwice(r *http.Request) bool {
	path := r.URL.Path
	name, kept := strings.CutPrefix(path, "/v1"+keptPath)
	name = strings.TrimSuffix(name, runPath)
	switch {
	case kept && r.Method != http.MethodGet && !strings.Contains(name, "/"): // Whatever the session is called.
		return false
	case r.Method == http.MethodGet, strings.HasSuffix(path, "/commands"), strings.Contains(path, "/commands/"), strings.HasSuffix(path, "/follow"), strings.HasPrefix(path, transfer.Path):
		return true
	case strings.HasSuffix(path, "/jobs/stop"): // Of all jobs, and more of them may run the second time.
		return false
	case strings.Contains(path, "/terminals/term-"):
		return endsIn(path, "/wait", "/resize", "/close") // Not what types.
	case strings.Contains(path, "/jobs/"):
		return endsIn(path, "/list", "/get", "/poll", "/log", "/search", "/history", "/wait", "/stop")
	}
	return false
}

// isStop reports whether a request is that for the stop of a command, which is answered at once.
func isStop(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/commands/") && strings.HasSuffix(r.URL.Path, "/stop")
}

func endsIn(path string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(path, end) })
}

// lost is an error of a request, and notes it if that is since the connection is lost.
func (h *Host) lost(l link, err error) error {
	if err = l.lost(err); !errors.Is(err, ErrLost) {
		return err
	}
	h.mu.Lock()
	first := h.link == l && h.why == nil && !h.closed
	closed := h.closed
	if first {
		h.why, h.vain, h.failed = err, nil, nil
		if h.outage.IsZero() {
			h.outage = time.Now()
		}
	}
	h.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case first && h.opts.Reconnect >= 0 && h.opts.Lost != nil:
		h.opts.Lost(err)
	}
	return err
}

// Down returns why there is no connection now, as far as that is known; nil if there is one. It waits for nothing, and dials nothing.
func (h *Host) Down() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return errClosed
	case h.why == nil:
		return nil
	}
	return cmp.Or(h.failed, h.why)
}

// connected returns a link that is not known to be lost. It waits for one; ctx bounds that.
func (h *Host) connected(ctx context.Context) (link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.closed:
			return nil, errClosed
		case h.why == nil:
			return h.link, nil
		case h.opts.Reconnect < 0:
			return nil, h.why
		case h.vain != nil && time.Since(h.triedAt) < longestPause:
			return nil, h.vain // Whoever asks again at once has the same answer.
		}
		if h.again == nil {
			h.again = h.reconnect()
		}
		r := h.again
		r.waiting++
		h.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
		}
		h.mu.Lock()
		if r.waiting--; r.waiting == 0 {
			r.cancel() // Nobody waits for it.
		}
		select {
		case <-r.done:
			if r.err != nil && !errors.Is(r.err, context.Canceled) { // Else those who waited before are gone, or it is closed.
				return nil, r.err
			}
		default:
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// reconnect dials again, beside the caller, who holds mu.
func (h *Host) reconnect() *reconnection {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reconnection{done: make(chan struct{}), cancel: cancel}
	before := h.link
	h.beside.Go(func() {
		defer cancel()
		before.close() // First: a command that hangs shall not be there twice.
		l, hello, err := h.dialAgain(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil {
			h.link, h.hello, h.why, h.dialled = l, hello, nil, time.Now()
		}
		if err != nil && ctx.Err() == nil {
			h.vain, h.triedAt = err, time.Now()
		}
		r.err, h.again = err, nil
		close(r.done)
	})
	return r
}

// dialAgain dials until the same machine is reached, or that cannot be any more.
func (h *Host) dialAgain(ctx context.Context) (link, connect.Hello, error) {
	var none connect.Hello
	o, before := h.opts, h.Hello()
	o.Person = false // Nobody expects a question now.
	h.mu.Lock()
	began := h.outage // It may have been had since, but no answer.
	pause := max(firstPause-time.Since(h.dialled), 0)
	h.mu.Unlock()
	if since := time.Since(began); since > firstPause {
		pause = min(max(pause, since/4), longestPause) // One that is lost again and again is dialled less often.
	}
	for next := firstPause; ; next = min(2*next, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, none, ctx.Err()
		}
		l, hello, err := dialLink(ctx, h.to, o)
		if err == nil {
			if why := other(before, hello); why != nil {
				l.close()
				err := &Error{Op: "reach", Target: h.target, Err: fmt.Errorf("%w: %w", ErrLost, why), Remedy: "dial it anew, if that is the one"}
				h.mu.Lock()
				h.failed = err
				h.mu.Unlock()
				return nil, none, err
			}
			return l, hello, nil
		}
		h.mu.Lock()
		h.failed = err
		h.mu.Unlock()
		if !heals(err) || time.Since(began) >= h.opts.Reconnect || ctx.Err() != nil {
			return nil, none, &Error{Op: "reach", Target: h.target, Err: fmt.Errorf("%w, and cannot be had again: %w", ErrLost, err)}
		}
		pause = next/2 + rand.N(next/2) // Others may have lost theirs, too.
	}
}

// other compares two answers to a dial, and returns why the later one is not of the same machine, or of the same boot of it; nil if it is. It
// compares the machine IDs first, as another machine also has another boot ID.
func other(before, now connect.Hello) error {
	known := before.Machine != "" && now.Machine != ""
	switch {
	case known && now.Machine != before.Machine:
		return errors.New("another machine answers there: the name leads to several, or to another one than before")
	case now.Boot != before.Boot && !known:
		return errors.New("the machine was started again, or another one answers there")
	case now.Boot != before.Boot:
		return errors.New("the machine was started again, and what was kept there is gone")
	case now.Place != before.Place:
		return errors.New("another machine, or container, answers there")
	}
	return nil
}

// heals reports whether an error of a dial may be another one the next time, without anybody's doing.
func heals(err error) bool {
	for _, final := range []error{ErrNoBash, ErrNoProgram, ErrPart, ErrNoPlace, ErrSpoiled, errForeign, exec.ErrNotFound} {
		if errors.Is(err, final) {
			return false
		}
	}
	if errors.As(err, new(*versionError)) {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return true
	}
	for _, one := range remedies {
		if one.final && strings.Contains(e.Said, one.said) {
			return false
		}
	}
	return true
}
