package jsonhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// Direct is a transport that writes a request and reads its answer on the goroutine that asks. net/http's Transport has two
// goroutines for each connection, and waking them takes as long as a short command. It has no TLS, no proxies and no answers of
// status 1xx. It is safe for concurrent use.
type Direct struct {
	dial func(ctx context.Context) (net.Conn, error)

	mu     sync.Mutex
	idle   []*direct   // the last one was used last
	sweep  *time.Timer // runs while there are idle connections, and closes those that are idle for idleFor
	closes bool        // no connection stays open until the next request
}

// NewDirect returns a transport that connects by a function. Nothing is done before the first request.
func NewDirect(dial func(ctx context.Context) (net.Conn, error)) *Direct { return &Direct{dial: dial} }

// mostHeader bounds the header of an answer, in bytes.
const mostHeader = 1 << 20

// direct is a connection of a Direct.
type direct struct {
	net.Conn
	from  io.LimitedReader // the connection
	r     *bufio.Reader    // of from
	w     *bufio.Writer
	used  bool // it has carried an answer
	since time.Time
}

// noAnswerError is that of a request to which nothing at all was answered.
type noAnswerError struct{ error }

func (e *noAnswerError) Unwrap() error { return e.error }

// RoundTrip implements [http.RoundTripper]. The program may have closed an idle connection. A request that may be sent twice
// (Request.Again) is then sent over another connection; any other request is sent over a new one.
func (t *Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	_, again := r.Header["Idempotency-Key"]
	for {
		c, err := t.take(r.Context(), again)
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // Nothing was read of it.
			}
			return nil, err
		}
		resp, err := t.exchange(c, r)
		if err == nil {
			return resp, nil
		}
		_ = c.Close() // It is of no more use.
		_, mute := errors.AsType[*noAnswerError](err)
		if !mute || !c.used || r.Context().Err() != nil || r.ContentLength != 0 && r.GetBody == nil {
			return nil, err
		}
		if r.GetBody != nil {
			r = r.Clone(r.Context())
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// take returns an idle connection, if one may be used, or a new one.
func (t *Direct) take(ctx context.Context, idle bool) (*direct, error) {
	t.mu.Lock()
	t.closes = false
	if n := len(t.idle); idle && n > 0 {
		c := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		return c, nil
	}
	t.mu.Unlock()
	conn, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &direct{Conn: conn, w: bufio.NewWriter(conn)}
	c.from.R = conn
	c.r = bufio.NewReader(&c.from)
	return c, nil
}

// exchange sends a request, and reads the header of the answer. The end of the request's context ends it, and reads of the body.
func (t *Direct) exchange(c *direct, r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // It fails if the connection is closed.
	resp, err := c.exchange(r)
	if err != nil {
		if !stop() {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	body := &directBody{body: resp.Body, end: func(whole bool) {
		if stop() && whole && !resp.Close && c.r.Buffered() == 0 {
			t.put(c)
			return
		}
		_ = c.Close() // What came is known.
	}}
	if resp.Body == http.NoBody {
		body.over(io.EOF)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

func (c *direct) exchange(r *http.Request) (*http.Response, error) {
	c.from.N = mostHeader
	err := r.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	// The answer may have come before all was sent: that it is too much.
	if _, failed := c.r.Peek(1); failed != nil {
		if err == nil {
			err = failed
		}
		return nil, &noAnswerError{err}
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	resp, failed := http.ReadResponse(c.r, r)
	switch {
	case failed != nil && c.from.N <= 0:
		return nil, fmt.Errorf("the header of its answer has more than %d bytes", mostHeader)
	case failed != nil:
		return nil, failed
	}
	resp.Close = resp.Close || err != nil // The rest of the request would be taken for the next one.
	c.from.N = math.MaxInt64
	return resp, nil
}

// put keeps a connection for the next request.
func (t *Direct) put(c *direct) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closes || len(t.idle) >= idleConnections {
		_ = c.Close() // Nothing is under way.
		return
	}
	c.used, c.since = true, time.Now()
	t.idle = append(t.idle, c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleFor, t.closeOld)
	}
}

// closeOld closes the connections that were idle for idleFor.
func (t *Direct) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.idle) > 0 && time.Since(t.idle[0].since) >= idleFor {
		_ = t.idle[0].Close() // Nothing is under way.
		t.idle = t.idle[1:]
	}
	if len(t.idle) == 0 {
		t.sweep = nil
		return
	}
	t.sweep.Reset(idleFor - time.Since(t.idle[0].since))
}

// CloseIdleConnections closes those that nobody uses, and those that are in use once they are not, unless there is another
// request before that.
func (t *Direct) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closes = true
	for _, c := range t.idle {
		_ = c.Close() // Nothing is under way.
	}
	t.idle = nil
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
}

// directBody is the body of an answer. Close is safe beside Read.
type directBody struct {
	body io.Reader
	end  func(whole bool) // is called once, when the body was read, or is not wanted
	once sync.Once
	err  error // of Read, once there is one
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.body.Read(p)
	if err != nil {
		b.over(err)
	}
	return n, err
}

func (b *directBody) over(err error) {
	b.err = err
	b.once.Do(func() { b.end(errors.Is(err, io.EOF)) })
}

func (b *directBody) Close() error {
	b.once.Do(func() { b.end(false) })
	return nil
}
