package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/session"
)

// ErrAttached means that another agent uses the session already.
var ErrAttached = errors.New("another agent uses the session")

var errNoConnections = errors.New("an agent needs a connection of its own, and there is but one to that machine")

// agentProtocol is what is spoken on a connection from then on: the Model Context Protocol, a message a line.
const agentProtocol = "mcp"

// attach is the body of mcp.
type attach struct {
	Alone   bool            `json:"alone,omitempty"` // not beside another agent
	Options json.RawMessage `json:"options,omitempty"`
}

// postAgent hands the connection over to an agent, until one of the two ends it.
func (h *Handler) postAgent(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in attach
	if err := jsonhttp.Decode(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	if h.Agent == nil {
		return nil, fmt.Errorf("the program that keeps it serves no agents, as it is not limpet; limpet session upgrade %s has it kept by limpet", s.Name())
	}
	leave, err := h.gate.enter(r.Context(), 0) // While the session is handed on nobody comes.
	if err != nil {
		return nil, err
	}
	err = h.arrives(s.Name(), in.Alone)
	leave()
	if err != nil {
		return nil, err
	}
	defer h.attached.Done()
	gone := sync.OnceFunc(func() { h.leaves(s.Name()) })
	defer gone()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	defer conn.Close()                // It has all by then, or cannot be written to.
	_ = conn.SetDeadline(time.Time{}) // A connection has deadlines.
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", agentProtocol); err != nil {
		return nil, nil // They are gone.
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(h.agentLife, func() { cancel(context.Cause(h.agentLife)) })()
	h.Agent(ctx, s, in.Options, &agentConn{conn, &untilEnd{buffered.Reader, gone}})
	return nil, nil
}

// arrives counts an agent of a session, unless it wants to be alone and is not, or the handler is closed.
func (h *Handler) arrives(name string, alone bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return session.ErrClosed
	case alone && h.agents[name] > 0:
		return ErrAttached
	}
	h.agents[name]++
	h.attached.Add(1)
	return nil
}

// leaves stops counting an agent, as soon as its connection has no more input. What it has asked for may still run.
func (h *Handler) leaves(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agents[name]--
}

// untilEnd calls end when the Reader has no more to read, or fails.
type untilEnd struct {
	io.Reader
	end func()
}

func (r *untilEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.end()
	}
	return n, err
}

// EndAgents refuses new agents, closes the connections of those that there are, and waits until they are served no more.
func (h *Handler) EndAgents() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.endAgents(session.ErrClosed)
	h.attached.Wait()
}

// Attached reports whether an agent uses the session of that name.
func (h *Handler) Attached(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.agents[name] > 0
}

// agentConn is a connection of which some was read before.
type agentConn struct {
	net.Conn
	r io.Reader
}

func (c *agentConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite says that nothing more comes, where that can be said.
func (c *agentConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Agent is the connection of an agent, which speaks the Model Context Protocol on it. CloseWrite says that nothing
// more comes; what was asked before is still answered.
type Agent interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Agent returns a connection for an agent, to whom calls that name no session mean this one. The options are for who
// serves agents there. With alone the error is ErrAttached if there is one already. ctx bounds the dial alone. Close it.
func (s *Session) Agent(ctx context.Context, alone bool, options any) (Agent, error) {
	for moves := 0; ; moves++ {
		agent, err := s.agent(ctx, alone, options)
		if !errors.Is(err, ErrMoved) || s.c.Follow == nil || moves == mostMoves || !s.c.Follow(ctx) {
			return agent, err
		}
	}
}

// agent is Agent of the program that is reached now.
func (s *Session) agent(ctx context.Context, alone bool, options any) (Agent, error) {
	const op = "attach an agent to"
	fail := func(err error) (Agent, error) { return nil, s.worded(ctx, op, err) }
	o, err := json.Marshal(options)
	if err != nil {
		return nil, s.fail(op, err)
	}
	body, err := json.Marshal(attach{alone, o})
	if err != nil {
		return nil, s.fail(op, err)
	}
	if s.c.dial == nil {
		return fail(errNoConnections)
	}
	conn, err := s.c.dial(ctx)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrGone, err))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // It ends what waits.
	req, err := http.NewRequest(http.MethodPost, "http://limpet/v1"+below(s.name)+"/mcp", bytes.NewReader(body))
	if err != nil {
		_ = conn.Close() // Nothing was written.
		return fail(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", agentProtocol)
	r := bufio.NewReader(conn)
	var resp *http.Response
	if err = req.Write(conn); err == nil {
		resp, err = http.ReadResponse(r, req)
	}
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // Nobody has it.
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrGone, err)
		}
		return fail(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return &agentConn{conn, r}, nil
	}
	defer conn.Close() // As above.
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostSmall))
	if err == nil {
		err = Said(answer)
	}
	if err == nil {
		err = fmt.Errorf("%w: its answer is %s", ErrUnreachable, resp.Status)
	}
	return fail(err)
}
