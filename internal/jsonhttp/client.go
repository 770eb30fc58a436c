package jsonhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Errors are what a [Client] says is wrong with a connection, and how it reads what the other program says.
type Errors struct {
	Gone        error // the other program is gone
	Unreachable error // it lives, as far as is known, and does not answer
	Closed      error // the client was closed

	// Said makes an error of an answer that is one; nil if it makes no sense.
	Said func(answer []byte) error
}

// Client asks another program. Its methods are safe for concurrent use. Close it.
type Client struct {
	errors    Errors
	http      *http.Client
	transport http.RoundTripper
	life      context.Context
	end       context.CancelCauseFunc
}

// mostAnswer bounds an answer that is read as a whole.
const mostAnswer = 64 << 20

// The connections that a client keeps which nobody uses.
const (
	idleConnections = 4
	idleFor         = 30 * time.Second
)

// Dialing is a transport that connects by a function, and needs no name of a host.
func Dialing(dial func(ctx context.Context) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression:  true,
		IdleConnTimeout:     idleFor,
		MaxIdleConnsPerHost: idleConnections,
	}
}

// NewClient returns a client. Nothing is done before it is asked for something.
func NewClient(transport http.RoundTripper, e Errors) *Client {
	c := &Client{errors: e, transport: transport, http: &http.Client{Transport: transport}}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// Close ends all that is under way, with the Errors' Closed. It is safe to call twice, and beside everything
// else.
func (c *Client) Close() {
	c.end(c.errors.Closed)
	c.CloseIdleConnections()
}

// Request is one request. Content is nil for none, bytes that are sent as they are, also in pieces ([][]byte), or a value that is sent as
// JSON.
type Request struct {
	Method, Path string
	Content      any

	// Again allows net/http to send the request a second time, if a connection that was idle turns out to be
	// closed. Leave it out where doing it twice does harm.
	Again bool
}

// Answer is one whose body is to be read. It is closed by Close.
type Answer struct {
	*http.Response
	c    *Client
	ctx  context.Context
	free func()
}

// Open sends a request. A status other than 200 is an error. The caller closes the answer.
func (c *Client) Open(ctx context.Context, r Request) (*Answer, error) {
	a, err := c.Do(ctx, r)
	if err != nil || a.StatusCode == http.StatusOK {
		return a, err
	}
	defer a.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostAnswer))
	if err != nil {
		return nil, a.Broken(err)
	}
	if err := c.errors.Said(b); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: its answer is %s: %.200q", c.errors.Unreachable, a.Status, b)
}

// sentError is that of a request which was sent and not answered.
type sentError struct{ error }

func (e *sentError) Unwrap() error { return e.error }

// Sent reports whether an error is that of a request which was sent, and not answered: the other program may have done what it
// asks for.
func Sent(err error) bool {
	_, sent := errors.AsType[*sentError](err)
	return sent
}

// trace notes whether a request was sent and not answered, also where net/http sends it again, over another connection, in vain.
func trace(ctx context.Context, sent *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders:         func() { sent.Store(true) },
		GotFirstResponseByte: func() { sent.Store(false) },
	})
}

// Do sends a request. An answer that is an error is one like others. The caller closes it. See [Sent] for errors.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	if c.life.Err() != nil {
		return nil, context.Cause(c.life)
	}
	var send [][]byte
	switch content := r.Content.(type) {
	case nil:
	case []byte:
		send = [][]byte{content}
	case [][]byte:
		send = content
	default:
		b, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		send = [][]byte{b}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	free := func() {
		stop()
		cancel(nil)
	}
	var sent atomic.Bool
	req, err := http.NewRequestWithContext(trace(ctx, &sent), r.Method, "http://limpet/v1"+r.Path, http.NoBody)
	if err != nil {
		free()
		return nil, err
	}
	setBody(req, send)
	if r.Again {
		req.Header["Idempotency-Key"] = []string{} // It is not sent, and says so to net/http.
	}
	resp, err := c.http.Do(req)
	a := &Answer{Response: resp, c: c, ctx: ctx, free: free}
	if err != nil {
		defer free() // Behind: it is a cause, too.
		if err = a.Broken(err); sent.Load() {
			err = &sentError{err}
		}
		return nil, err
	}
	return a, nil
}

// setBody has a request send some pieces.
func setBody(r *http.Request, pieces [][]byte) {
	for _, piece := range pieces {
		r.ContentLength += int64(len(piece))
	}
	if r.ContentLength == 0 {
		return
	}
	r.GetBody = func() (io.ReadCloser, error) {
		if len(pieces) == 1 {
			return io.NopCloser(bytes.NewReader(pieces[0])), nil
		}
		readers := make([]io.Reader, len(pieces))
		for i, piece := range pieces {
			readers[i] = bytes.NewReader(piece)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	r.Body, _ = r.GetBody() // It cannot fail.
}

// Call sends a request, and reads the answer into a value.
func (c *Client) Call(ctx context.Context, r Request, value any) error {
	a, err := c.Open(ctx, r)
	if err != nil {
		return err
	}
	return a.Decode(value)
}

// CloseIdleConnections closes those that nobody uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Decode reads the answer into a value, and closes it.
func (a *Answer) Decode(value any) error {
	defer a.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostAnswer))
	if err != nil {
		return a.Broken(err)
	}
	if err := json.Unmarshal(b, value); err != nil {
		return fmt.Errorf("%w: its answer makes no sense: %w", a.c.errors.Unreachable, err)
	}
	return nil
}

// Close lets go of it. It is safe to call twice.
func (a *Answer) Close() {
	a.free()           // First: it ends a read that waits.
	_ = a.Body.Close() // It was read, or is not wanted.
}

// Number is one of the header; 0 if there is none.
func (a *Answer) Number(name string) int64 {
	n, _ := strconv.ParseInt(a.Header.Get(name), 10, 64) // 0, as said.
	return n
}

// Broken says why a connection broke: the cause of a context, the Errors' Gone, or Unreachable. An error of the transport that
// is Unreachable already stays what it is.
func (a *Answer) Broken(err error) error {
	if asked, ok := errors.AsType[*url.Error](err); ok {
		err = asked.Err // The address says nothing.
	}
	switch cause := context.Cause(a.ctx); {
	case cause != nil:
		return cause
	case errors.Is(err, a.c.errors.Unreachable):
		return err
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return a.c.errors.Gone
	case strings.Contains(err.Error(), "http: server closed idle connection"): // It has no name in net/http: the program was gone before it was asked.
		return a.c.errors.Gone
	}
	return fmt.Errorf("%w: %w", a.c.errors.Unreachable, err)
}
