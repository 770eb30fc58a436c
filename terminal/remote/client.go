package remote

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
	"syscall"
	"time"

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
	owner string
	pid   int
	http  *http.Client
	life  context.Context
	end   context.CancelCauseFunc
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
	c := &Client{owner: owner}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return socket.Dial(ctx, dir, owner+socketExt)
		},
		DisableCompression: true,
		DisableKeepAlives:  true, // Nothing is left open, and no call meets a connection that just ends.
	}}
	var said hello
	err := c.call(ctx, "", "", http.MethodGet, "", nil, &said)
	switch {
	case err == nil && (said.Version != version || said.Owner != owner):
		err = fmt.Errorf("%w: it speaks version %d of the protocol, and this program version %d", ErrUnreachable, said.Version, version)
	case errors.Is(err, ErrGone) && alive(dir, owner):
		err = ErrUnreachable
	}
	if err != nil {
		_ = c.Close() // Nothing was done by it.
		return fail(err)
	}
	c.pid = said.PID
	return c, nil
}

// PID is that of the program.
func (c *Client) PID() int { return c.pid }

// Close ends all calls and viewers, with ErrClosed. It is safe to call twice, and beside
// everything else.
func (c *Client) Close() error {
	c.end(errClientClosed)
	return nil
}

// List returns what is known of the program's terminals, the oldest first.
func (c *Client) List(ctx context.Context) ([]terminal.Info, error) {
	var list []terminal.Info
	err := c.call(ctx, "list", "", http.MethodGet, "/terminals", nil, &list)
	return list, err
}

// Terminal returns the terminal with the ID. That there is one is found out by its methods.
func (c *Client) Terminal(id string) *Terminal { return &Terminal{c: c, id: id} }

// call asks, and reads the answer into a value.
func (c *Client) call(ctx context.Context, op, id, method, path string, content any, value any) error {
	return c.within(ctx, patience, op, id, method, path, content, value)
}

// within is call with another patience; 0 is any.
func (c *Client) within(ctx context.Context, most time.Duration, op, id, method, path string, content any, value any) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errSlow)
		defer cancel()
	}
	resp, err := c.open(ctx, op, id, method, path, content)
	if err != nil {
		return err
	}
	defer resp.close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return resp.broken(err)
	}
	if err := json.Unmarshal(b, value); err != nil {
		return fault(op, id, fmt.Errorf("%w: its answer makes no sense: %w", ErrUnreachable, err))
	}
	return nil
}

// opened is an answer whose body is to be read. It is closed by close.
type opened struct {
	*http.Response
	ctx    context.Context
	op, id string
	free   func()
}

// open asks. What is no success is an error. The content is bytes, or goes as JSON.
func (c *Client) open(ctx context.Context, op, id, method, path string, content any) (*opened, error) {
	var send []byte
	switch content := content.(type) {
	case nil:
	case []byte:
		send = content
	default:
		b, err := json.Marshal(content)
		if err != nil {
			return nil, fault(op, id, err)
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
		return nil, fault(op, id, err)
	}
	resp, err := c.http.Do(req)
	o := &opened{Response: resp, ctx: ctx, op: op, id: id, free: free}
	if err != nil {
		defer free() // Behind: it is a cause, too.
		return nil, o.broken(err)
	}
	if resp.StatusCode == http.StatusOK {
		return o, nil
	}
	defer o.close()
	var said wireError
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostBody))
	if err != nil {
		return nil, o.broken(err)
	}
	if err := json.Unmarshal(b, &said); err != nil || said.Error == "" {
		said.Error = fmt.Sprintf("its answer is %s: %.200q", resp.Status, b)
	}
	failed := said.unpack()
	if said.Op == "" {
		failed = fault(op, id, failed)
	}
	if said.Written > 0 {
		failed = &partial{failed, said.Written}
	}
	return nil, failed
}

func (o *opened) close() {
	o.free()           // First: it ends a read that waits.
	_ = o.Body.Close() // It was read, or is not wanted.
}

// broken says why a connection broke.
func (o *opened) broken(err error) error {
	switch cause := context.Cause(o.ctx); {
	case cause != nil:
		err = cause
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		err = ErrGone
	default:
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return fault(o.op, o.id, err)
}

func fault(op, id string, err error) error {
	if op == "" {
		return err
	}
	return &terminal.Error{Op: op, ID: id, Err: err}
}

// partial is the error of a write of which some was typed.
type partial struct {
	error
	written int
}

func (p *partial) Unwrap() error { return p.error }
