package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
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

// Client reaches the sessions of another program. Its methods are safe for concurrent use.
// Disconnect it.
type Client struct {
	// Follow, if not nil, is called when the program that has the session has handed it to another one
	// (ErrMoved), or is gone (ErrGone). It reports whether the other one was found, which Dial then leads
	// to: what was asked for is asked for there. It is called by several goroutines. Set it before the first
	// call.
	Follow func(ctx context.Context) bool

	// Away is how long this client may be away, when its connection is lost, before it comes back to a command. So long the command's input stays
	// open: later it ends, and what comes of the command is an error. 0 means 30 s. Set it before the first call.
	Away time.Duration

	http      *jsonhttp.Client
	dial      func(ctx context.Context) (net.Conn, error)
	transport http.RoundTripper // of http, for who speaks another protocol to the same program
	patience  time.Duration     // for an answer that takes no time by its nature, to a call that has no context
	noted     time.Duration     // for the other program to take note of the stop of a command
}

// The patience of a client. Where a connection is dialled again when it is lost, a call waits for that: it is longer than
// host.DefaultReconnect then.
const (
	patienceHere  = 30 * time.Second
	patienceThere = 6 * time.Minute
)

// The patience of a client for the answer to a stop, for which a person may wait who has pressed Ctrl-C.
const (
	notedHere  = 5 * time.Second
	notedThere = 2 * time.Second
)

// slowError is the cause of the end of a call whose answer has taken longer than the patience.
func slowError(patience time.Duration) error {
	return fmt.Errorf("%w: it has not answered within %v", ErrUnreachable, patience)
}

// NewClient returns a client. Dial makes a connection each time that one is needed; nothing is
// done before the first call.
func NewClient(dial func(ctx context.Context) (net.Conn, error)) *Client {
	c := NewClientOver(jsonhttp.NewDirect(dial), nil)
	c.dial, c.patience, c.noted = dial, patienceHere, notedHere
	return c
}

// NewClientOver is NewClient for a transport that makes its connections itself. Where one of them is lost, its error must be
// one that is ErrUnreachable. Said makes errors again of answers, by [Said]; nil is that.
func NewClientOver(transport http.RoundTripper, said func(answer []byte) error) *Client {
	if said == nil {
		said = Said
	}
	c := &Client{transport: transport, patience: patienceThere, noted: notedThere}
	c.http = jsonhttp.NewClient(c.transport, jsonhttp.Errors{Gone: ErrGone, Unreachable: ErrUnreachable, Closed: errClientClosed, Said: said})
	return c
}

// Said makes an error again of an answer that is one; nil if it makes no sense.
func Said(answer []byte) error {
	var f failure
	switch {
	case json.Unmarshal(answer, &f) != nil || f.Error == "":
		return nil
	case f.Tree == nil:
		return errors.New(f.Error)
	case f.Value != nil:
		return &partly{f.Tree.unpack(), f.Value}
	}
	return f.Tree.unpack()
}

// Disconnect ends all calls, with ErrClosed, and no session. It is safe to call twice, and beside
// everything else.
func (c *Client) Disconnect() { c.http.Close() }

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

// call asks, and reads the answer into a value. A connection that just ends is tried again: a command is
// asked for by its id; what else may be done twice then does no harm, or says so.
func (c *Client) call(ctx context.Context, method, path string, content, value any) error {
	a, err := c.open(ctx, jsonhttp.Request{Method: method, Path: path, Content: content, Again: true})
	if err != nil {
		return err
	}
	return a.Decode(value)
}

// callOnce is call of the program that is reached now, and of no other.
func (c *Client) callOnce(ctx context.Context, method, path string, content, value any) error {
	return c.http.Call(ctx, jsonhttp.Request{Method: method, Path: path, Content: content, Again: true}, value)
}

// Forward sends a request of another program on as it is, and returns its answer, which may be an error; the caller closes it. The
// path is what is behind /v1. It does not follow a session that has moved: that is for who asks.
func (c *Client) Forward(ctx context.Context, method, path string, body []byte) (*jsonhttp.Answer, error) {
	return c.http.Do(ctx, jsonhttp.Request{Method: method, Path: path, Content: body, Again: true})
}

// CloseIdleConnections closes those that nobody uses, and those that are in use once they are not, if Dial leads elsewhere now.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// mostMoves bounds how often a client follows a session, for one call.
const mostMoves = 5

// open asks. A session that has moved is followed: there nothing was done. So is one whose program is gone, if it
// may be asked again.
func (c *Client) open(ctx context.Context, r jsonhttp.Request) (*jsonhttp.Answer, error) {
	for moves := 0; ; moves++ {
		a, err := c.http.Open(ctx, r)
		moved := errors.Is(err, ErrMoved) || r.Again && errors.Is(err, ErrGone)
		if !moved || c.Follow == nil || moves == mostMoves || !c.Follow(ctx) {
			return a, err
		}
		c.http.CloseIdleConnections() // They lead to the old one.
	}
}

// below is the path of a session.
func below(name string) string { return "/sessions/" + url.PathEscape(name) }
