package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/session"
)

// maxMessage bounds a message of a client's: a script may have 1 MB, and more in JSON.
const maxMessage = 64 << 20

// How long calls may go on when the client has closed its end, which says goodbye, but may
// also be a script that has sent all of its questions; how long other questions may, which are
// answered at once, but on a busy machine; and how long it may take to be rid of a client that
// does not read.
const (
	farewell = time.Second
	answers  = 30 * time.Second
	parting  = 3 * time.Second
)

// ServeStdio serves one client, a message a line, until in ends, which is how a client says
// goodbye, or ctx does. Calls that are still running a second later are cancelled, and ServeStdio
// waits for them. To have them answered before that, fire an interrupt.Source when ctx is
// cancelled. ServeStdio returns nil when in or ctx has ended, and an error if the client cannot be
// read, if it does not read its answers, or if the server is closed. It closes in and out, unless a write to out hangs. Nothing else may write to out.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	if s.ctx.Err() != nil {
		return session.ErrClosed
	}
	whole := &wholeWrites{WriteCloser: out}
	transport := &stdio{
		IOTransport: mcp.IOTransport{Reader: newLineReader(in, whole), Writer: whole, MaxLineLength: -1},
		ctx:         ctx, answered: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	connected := make(chan *mcp.ServerSession, 1)
	if s.opts.RunOn {
		transport.left = sync.OnceFunc(func() {
			if client := <-connected; client != nil {
				s.leave(client)
			}
		})
	}
	client, err := s.mcp.Connect(ctx, transport, nil)
	connected <- client
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Wait() // How it ended changes nothing.
	}()
	<-transport.ended
	timer := time.NewTimer(parting)
	defer timer.Stop()
	select {
	case <-done:
		return transport.err
	case <-timer.C:
		return errNotRead
	}
}

// leave moves the commands of a client that has left to the background.
func (s *Server) leave(client *mcp.ServerSession) {
	for _, one := range s.queues.leave(client) {
		sess, err := s.sessions.Get(one.session)
		if err != nil {
			one.cancel()
			continue
		}
		// What runs there may be somebody else's, who does not go through this server.
		if info, _ := sess.Info(s.ctx); !one.runs(info) {
			one.cancel()
			continue
		}
		_ = sess.HandOver(s.ctx) // It has just ended, or is stopped with its call.
	}
}

var errNotRead = errors.New("mcpserver: the client does not read its answers, and was given up")

// stdio is a transport that has all questions answered before it says that there are no
// more: the SDK drops the answers otherwise.
type stdio struct {
	mcp.IOTransport
	mcp.Connection
	ctx context.Context // of ServeStdio

	mu       sync.Mutex
	open     map[jsonrpc.ID]string // questions without an answer, and their methods
	answered chan struct{}         // has a token when there may be none
	ended    chan struct{}         // closed when it is said that there are no more
	err      error                 // why, if not because in or ctx has ended; set before
	once     sync.Once
	left     func() // does what there is to do when the client has left; nil: nothing
}

// Connect implements [mcp.Transport].
func (t *stdio) Connect(ctx context.Context) (mcp.Connection, error) {
	t.open = make(map[jsonrpc.ID]string)
	var err error
	t.Connection, err = t.IOTransport.Connect(ctx)
	return t, err
}

// Read implements [mcp.Connection]. It ends with the context of ServeStdio, too.
func (t *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	message, err := t.Connection.Read(ctx)
	if err == nil {
		if question, ok := message.(*jsonrpc.Request); ok && question.IsCall() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.open[question.ID] = question.Method
		}
		return message, nil
	}
	t.awaitAnswers(farewell, func(string) bool { return true })
	if t.left != nil {
		t.left()
		t.awaitAnswers(parting, func(string) bool { return true })
	}
	t.awaitAnswers(answers-farewell, func(method string) bool { return method != callTool })
	t.once.Do(func() {
		if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && ctx.Err() == nil {
			t.err = fmt.Errorf("mcpserver: reading what the client sends: %w", err)
		}
		close(t.ended)
	})
	return nil, io.EOF
}

// Write implements [mcp.Connection].
func (t *stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	err := t.Connection.Write(ctx, message)
	if answer, ok := message.(*jsonrpc.Response); ok {
		t.mu.Lock()
		delete(t.open, answer.ID)
		t.mu.Unlock()
		select {
		case t.answered <- struct{}{}:
		default: // It looks anyway.
		}
	}
	return err
}

// callTool is the method by which tools are called.
const callTool = "tools/call"

// awaitAnswers waits until the questions of some methods are answered, but not for longer.
func (t *stdio) awaitAnswers(most time.Duration, of func(method string) bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for t.unanswered(of) {
		select {
		case <-t.answered:
		case <-timer.C:
			return
		}
	}
}

func (t *stdio) unanswered(of func(method string) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, method := range t.open {
		if of(method) {
			return true
		}
	}
	return false
}

// bounded returns a context that ends with the server, too: the SDK waits for calls when it
// is closed.
func (s *Server) bounded(ctx context.Context) (_ context.Context, free func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
