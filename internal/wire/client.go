package wire

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
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// What is wrong with a connection, for errors.Is.
var (
	// ErrGone means that the program that has the session is gone.
	ErrGone = errors.New("the program that has the session is gone")

	// ErrUnreachable means that it lives, as far as is known, and does not answer.
	ErrUnreachable = errors.New("the program that has the session cannot be asked")
)

var errClientClosed = fmt.Errorf("the connection is %w", session.ErrClosed)

// idleConnection is how long a connection is kept that nobody uses.
const idleConnection = 30 * time.Second

// Client reaches the sessions of another program. Its methods are safe for concurrent use.
// Disconnect it.
type Client struct {
	// Follow, if not nil, is called when the program that has the session has handed it to another one
	// (ErrMoved), or is gone (ErrGone). It reports whether the other one was found, which Dial then leads
	// to: what was asked for is asked for there. It is called by several goroutines. Set it before the first
	// call.
	Follow func(ctx context.Context) bool

	http      *http.Client
	transport *http.Transport
	life      context.Context
	end       context.CancelCauseFunc
}

// NewClient returns a client. Dial makes a connection each time that one is needed; nothing is
// done before the first call.
func NewClient(dial func(ctx context.Context) (net.Conn, error)) *Client {
	c := &Client{transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression:  true,
		IdleConnTimeout:     idleConnection,
		MaxIdleConnsPerHost: 4,
	}}
	c.http = &http.Client{Transport: c.transport}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// Disconnect ends all calls, with ErrClosed, and no session. It is safe to call twice, and beside
// everything else.
func (c *Client) Disconnect() {
	c.end(errClientClosed)
	c.transport.CloseIdleConnections()
}

// Hello asks the program what it is.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	var said Hello
	err := c.callOnce(ctx, http.MethodGet, "", nil, &said)
	if err == nil && (said.Protocol[0] > Version || said.Protocol[1] < Version) {
		err = fmt.Errorf("%w: it is limpet %s and speaks versions %d to %d of the protocol, and this one speaks %d", ErrUnreachable, said.Version, said.Protocol[0], said.Protocol[1], Version)
	}
	return said, err
}

// List returns what is known of the program's sessions.
func (c *Client) List(ctx context.Context) ([]session.Info, error) {
	var list []session.Info
	err := c.call(ctx, http.MethodGet, "/sessions", nil, &list)
	return list, err
}

// Session returns the session of that name. That there is one is found out by its methods.
func (c *Client) Session(name string) *Session { return &Session{c: c, name: name} }

// call asks, and reads the answer into a value.
func (c *Client) call(ctx context.Context, method, path string, content, value any) error {
	resp, err := c.open(ctx, method, path, content)
	if err != nil {
		return err
	}
	return resp.read(value)
}

// callOnce is call of the program that is reached now, and of no other.
func (c *Client) callOnce(ctx context.Context, method, path string, content, value any) error {
	resp, err := c.openOnce(ctx, method, path, content)
	if err != nil {
		return err
	}
	return resp.read(value)
}

// mostMoves bounds how often a client follows a session, for one call.
const mostMoves = 5

// open asks. What is no success is an error. The content is bytes, or goes as JSON. A session that has
// moved is followed: there nothing was done.
func (c *Client) open(ctx context.Context, method, path string, content any) (*opened, error) {
	for moves := 0; ; moves++ {
		resp, err := c.openOnce(ctx, method, path, content)
		if err == nil || c.Follow == nil || moves == mostMoves || !isOneOf(err, ErrMoved, ErrGone) || !c.Follow(ctx) {
			return resp, err
		}
		c.transport.CloseIdleConnections() // They lead to the old one.
	}
}

// opened is an answer whose body is to be read. It is closed by close.
type opened struct {
	*http.Response
	ctx  context.Context
	free func()
}

// openOnce is open of the program that is reached now.
func (c *Client) openOnce(ctx context.Context, method, path string, content any) (*opened, error) {
	var send []byte
	switch content := content.(type) {
	case nil:
	case []byte:
		send = content
	default:
		b, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		send = b
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	free := func() {
		stop()
		cancel(nil)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://limpet/v1"+path, bytes.NewReader(send))
	if err != nil {
		free()
		return nil, err
	}
	// A connection that just ends is tried again. A command is asked for by its id; what else may be
	// done twice then does no harm, or says so.
	req.Header["Idempotency-Key"] = []string{}
	resp, err := c.http.Do(req)
	o := &opened{Response: resp, ctx: ctx, free: free}
	if err != nil {
		defer free() // Behind: it is a cause, too.
		return nil, o.broken(err)
	}
	if resp.StatusCode == http.StatusOK {
		return o, nil
	}
	defer o.close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostReply))
	if err != nil {
		return nil, o.broken(err)
	}
	var said failure
	if json.Unmarshal(b, &said) != nil || said.Error == "" {
		return nil, fmt.Errorf("%w: its answer is %s: %.200q", ErrUnreachable, resp.Status, b)
	}
	if said.Tree == nil {
		return nil, errors.New(said.Error)
	}
	return nil, said.Tree.unpack()
}

// read reads the answer into a value, and closes it.
func (o *opened) read(value any) error {
	defer o.close()
	b, err := io.ReadAll(io.LimitReader(o.Body, mostReply))
	if err != nil {
		return o.broken(err)
	}
	if err := json.Unmarshal(b, value); err != nil {
		return fmt.Errorf("%w: its answer makes no sense: %w", ErrUnreachable, err)
	}
	return nil
}

func (o *opened) close() {
	o.free()           // It ends a read that waits.
	_ = o.Body.Close() // It was read, or is not wanted.
}

// broken says why a connection broke.
func (o *opened) broken(err error) error {
	switch cause := context.Cause(o.ctx); {
	case cause != nil:
		return cause
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return ErrGone
	case strings.Contains(err.Error(), "http: server closed idle connection"): // It has no name in net/http: the program was killed before it was asked.
		return ErrGone
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// below is the path of a session.
func below(name string) string { return "/sessions/" + url.PathEscape(name) }
