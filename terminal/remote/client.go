package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/terminal"
)

// The times that a server has to answer: patience, and closePatience to end a program. What
// takes long by its nature has a context.
const (
	patience      = 30 * time.Second
	closePatience = time.Minute
)

// Client reaches the terminals of another program. Its methods are safe for concurrent
// use. Close it.
type Client struct {
	pid  int
	way  Way
	http *jsonhttp.Client
}

// Way is how a program is reached that serves its terminals by a [Handler] below a path.
type Way struct {
	// Transport has connections to that program, whatever host they are asked for.
	Transport http.RoundTripper
	Path      string

	// Said reads an answer that is an error of a program in between, which has a protocol of its own. It
	// returns nil for one of this protocol. A nil Said reads none.
	Said func(answer []byte) error

	// Patience is how long a call waits for its answer; zero means 30 s, and a minute to end a program.
	Patience time.Duration

	// Resumes says that the Transport connects again by itself when a connection is lost. A [Viewer] then
	// goes on at the offset where it was, a recording with the screen as it is, and what can be asked twice is asked again.
	Resumes bool
}

var (
	errClientClosed = fmt.Errorf("the connection is %w", terminal.ErrClosed)
	errSlow         = fmt.Errorf("%w: it does not answer", ErrUnreachable)
)

// Dial reaches the program that is the owner in the records of a registry's directory. ctx
// bounds the dial alone. The error is ErrGone if the program is gone, and ErrUnreachable if
// it lives and does not serve its terminals.
func Dial(ctx context.Context, dir, owner string) (*Client, error) {
	fail := func(err error) (*Client, error) {
		return nil, &terminal.Error{Op: "reach the program that has the terminal", Err: err}
	}
	if err := checkOwner(owner); err != nil {
		return fail(err)
	}
	sweep(dir)
	transport := jsonhttp.Dialing(func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, dir, owner+socketExt) })
	transport.DisableKeepAlives = true // Nothing is left open, and no call meets a connection that just ends.
	c := Below(transport, "")
	var hi hello
	err := c.call(ctx, "", "", http.MethodGet, "", nil, &hi)
	switch {
	case err == nil && (hi.Version != version || hi.Owner != owner):
		err = fmt.Errorf("%w: it speaks version %d of the protocol, and this program version %d", ErrUnreachable, hi.Version, version)
	case errors.Is(err, ErrGone) && alive(dir, owner):
		err = ErrUnreachable
	}
	if err != nil {
		_ = c.Close() // Nothing was done by it.
		return fail(err)
	}
	c.pid = hi.PID
	return c, nil
}

// Below returns a client of a program that serves its terminals by a [Handler] at a path. The transport's
// connections are to reach that program, whatever host they are asked for. Nothing is done before the first
// call; ErrGone and ErrUnreachable are errors of those.
func Below(transport http.RoundTripper, path string) *Client {
	return Way{Transport: transport, Path: path}.Client()
}

// Client is Below for a Way. An error of the Transport that is ErrUnreachable keeps its text.
func (w Way) Client() *Client {
	read := said
	if w.Said != nil {
		read = func(answer []byte) error {
			if err := w.Said(answer); err != nil {
				return err
			}
			return said(answer)
		}
	}
	return &Client{way: w, http: jsonhttp.NewClient(w.Transport, jsonhttp.Errors{Gone: ErrGone, Unreachable: ErrUnreachable, Closed: errClientClosed, Said: read})}
}

// PID is that of the program; 0 if the client is not of [Dial].
func (c *Client) PID() int { return c.pid }

// Close ends all calls and viewers, with ErrClosed. It is safe to call twice, and beside
// everything else.
func (c *Client) Close() error {
	c.http.Close()
	return nil
}

// List returns what is known of the program's terminals, the oldest first.
func (c *Client) List(ctx context.Context) ([]terminal.Info, error) {
	var list []terminal.Info
	err := c.call(ctx, "list", "", http.MethodGet, "/terminals", nil, &list)
	return list, err
}

// ListAll returns what is known of all terminals of the program's registry: also of those that other programs
// had which are gone. A program of an older version returns those of List.
func (c *Client) ListAll(ctx context.Context) ([]terminal.Info, error) {
	var list []terminal.Info
	err := c.call(ctx, "list", "", http.MethodGet, "/terminals?all=1", nil, &list)
	return list, err
}

// Forget removes what is written down of a terminal whose program has ended: see [terminal.Registry.Forget]. The error is
// ErrOlder if the other program cannot do it.
func (c *Client) Forget(ctx context.Context, id string) error {
	t := c.Terminal(id)
	return c.call(ctx, "forget", id, http.MethodPost, t.path("/forget"), nil, &struct{}{})
}

// Terminal returns the terminal with the ID. That there is one is found out by its methods.
func (c *Client) Terminal(id string) *Terminal { return &Terminal{c: c, id: id} }

// patience is how long a call waits for its answer.
func (c *Client) patience() time.Duration { return cmp.Or(c.way.Patience, patience) }

// call asks, and reads the answer into a value.
func (c *Client) call(ctx context.Context, op, id, method, path string, content any, value any) error {
	return c.within(ctx, c.patience(), op, id, method, path, content, value)
}

// within is call with another patience; 0 is any.
func (c *Client) within(ctx context.Context, most time.Duration, op, id, method, path string, content any, value any) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errSlow)
		defer cancel()
	}
	return c.again(ctx, repeatable(method, path), func() error {
		return fault(op, id, c.http.Call(ctx, jsonhttp.Request{Method: method, Path: c.way.Path + path, Content: content}, value))
	})
}

// again calls do until it succeeds, at most once more than there are resumePauses, while its error is ErrUnreachable. It calls do once if the
// Transport does not connect again, or if do may not be done twice.
func (c *Client) again(ctx context.Context, may bool, do func() error) error {
	for tries := 0; ; tries++ {
		err := do()
		if !may || !c.way.Resumes || !errors.Is(err, ErrUnreachable) || tries == len(resumePauses) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(resumePauses[tries]):
		case <-ctx.Done():
			return err
		}
	}
}

// repeatable reports whether it does no harm to ask for something twice.
func repeatable(method, path string) bool {
	return method == http.MethodGet || strings.HasSuffix(path, "/wait") || strings.HasSuffix(path, "/resize") || strings.HasSuffix(path, "/close")
}

// opened is an answer whose body is to be read. It is closed by Close.
type opened struct {
	*jsonhttp.Answer
	op, id string
	free   func() // frees what bounds it; nil if nothing does
}

// close is Close, and frees what bounds the answer.
func (o *opened) close() {
	o.Close()
	if o.free != nil {
		o.free()
	}
}

// open asks for an answer that is no JSON. What is no success is an error.
func (c *Client) open(ctx context.Context, op, id, path string) (*opened, error) {
	a, err := c.http.Open(ctx, jsonhttp.Request{Method: http.MethodGet, Path: c.way.Path + path})
	if err != nil {
		return nil, fault(op, id, err)
	}
	return &opened{Answer: a, op: op, id: id}, nil
}

// broken says why a connection broke.
func (o *opened) broken(err error) error { return fault(o.op, o.id, o.Broken(err)) }

// said makes an error of an answer that is one.
func said(answer []byte) error {
	var said wireError
	if json.Unmarshal(answer, &said) != nil || said.Error == "" {
		return nil
	}
	err := said.unpack()
	if said.Written > 0 {
		err = &partial{err, said.Written}
	}
	return err
}

// fault says with what it was that something went wrong. What another program says may have it.
func fault(op, id string, err error) error {
	if _, ok := errors.AsType[*terminal.Error](err); ok || op == "" || err == nil {
		return err
	}
	if p, ok := errors.AsType[*partial](err); ok {
		return &partial{fault(op, id, p.error), p.written}
	}
	return &terminal.Error{Op: op, ID: id, Err: err}
}

// partial is the error of a write of which some was typed.
type partial struct {
	error
	written int
}

func (p *partial) Unwrap() error { return p.error }
