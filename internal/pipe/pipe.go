// Package pipe carries HTTP/2 over one pair of pipes, such as the standard input and output of a program on another
// machine:
//
//	near                                     far
//	Client -- requests, pings --> stdin      Serve(conn, handler)
//	       <-- answers, pings --- stdout
//
// Both sides notice when nothing comes any more: each asks the other to answer when it has heard nothing for a while, and
// gives up when it still hears nothing. Any byte counts as a sign of life, since the answer may wait behind others on a slow
// line.
package pipe

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSilent means that nothing was heard from the other side for too long.
var ErrSilent = errors.New("nothing was heard from there for too long")

// Times say when a connection counts as dead. The zero value of each is a good default.
type Times struct {
	Ping    time.Duration // the other side is asked to answer when nothing was heard for so long; 0 means 10 s
	Silence time.Duration // and it is given up when nothing was heard for so long; 0 means 40 s
}

func (t Times) withDefaults() Times {
	const ping, silence = 10 * time.Second, 40 * time.Second
	if t.Ping == 0 {
		t.Ping = ping
	}
	if t.Silence == 0 {
		t.Silence = silence
	}
	return t
}

// Bounds of what the other side may send.
const (
	mostHeader  = 32 << 10
	mostStreams = 1000
	mostFrame   = 512 << 10
)

// Conn is a pair of pipes as a net.Conn. Its methods are safe for concurrent use. Close it.
type Conn struct {
	from  io.Reader // what comes by in, and may be buffered
	in    *os.File
	out   *os.File
	times Times

	heard atomic.Bool // since the last tick
	once  sync.Once
	over  chan struct{} // closed when it is
	cause error         // once over is closed
}

// ticks is how often in the time of Times.Silence a Conn looks whether something was heard. It counts how often it was not,
// so that a program which was stopped meanwhile, and read nothing, does not take that for a silence.
const ticks = 8

// New returns the connection of two pipes, which it closes. From reads what comes by in, and may have buffered some of it;
// nil means in itself. The pipes must be ones that os has in its poller: those of os.Pipe, or whose descriptor does not
// block.
func New(from io.Reader, in, out *os.File, times Times) *Conn {
	c := &Conn{from: from, in: in, out: out, times: times.withDefaults(), over: make(chan struct{})}
	if from == nil {
		c.from = in
	}
	go c.listen()
	return c
}

// listen closes the connection when nothing was heard for too long. It ends with the connection.
func (c *Conn) listen() {
	tick := time.NewTicker(c.times.Silence / ticks)
	defer tick.Stop()
	for silent := 0; silent < ticks; silent++ {
		select {
		case <-tick.C:
		case <-c.over:
			return
		}
		if c.heard.Swap(false) {
			silent = -1
		}
	}
	c.fail(ErrSilent)
}

// fail closes the connection for a reason. The first counts.
func (c *Conn) fail(why error) {
	c.once.Do(func() {
		c.cause = why
		_ = c.in.Close()  // It is the end.
		_ = c.out.Close() // As above; what was written is in the pipe.
		close(c.over)
	})
}

// Close closes both pipes. It is safe to call twice.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.over }

// Err returns why the connection is closed: io.EOF if the other side has, ErrSilent, net.ErrClosed if this side has, or
// what reading and writing said. Nil while it is open.
func (c *Conn) Err() error {
	select {
	case <-c.over:
		return c.cause
	default:
		return nil
	}
}

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		c.heard.Store(true)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.fail(err)
	}
	return n, err
}

func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.fail(err)
	}
	return n, err
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are those of the pipes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.SetReadDeadline(t), c.out.SetWriteDeadline(t))
}
func (c *Conn) SetReadDeadline(t time.Time) error  { return c.in.SetReadDeadline(t) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

// LocalAddr and RemoteAddr say that it is a pipe.
func (c *Conn) LocalAddr() net.Addr  { return addr{} }
func (c *Conn) RemoteAddr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// http2 is what both sides speak. The pings of net/http give up on an answer of their own, which may be late behind others: that
// is left to listen.
func (c *Conn) http2() (*http.Protocols, *http.HTTP2Config) {
	const never = 24 * time.Hour
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p, &http.HTTP2Config{
		MaxConcurrentStreams: mostStreams, StrictMaxConcurrentRequests: true,
		MaxReadFrameSize: mostFrame, // One of 16 KiB costs as much time as its bytes do.
		SendPingTimeout:  c.times.Ping, PingTimeout: never,
	}
}

// Client returns a client of the program at the other end. Closing it closes the connection. More requests at once than the
// other side takes wait for their turn.
func Client(ctx context.Context, c *Conn) (*http.ClientConn, error) {
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return c, nil },
		DisableCompression: true, MaxResponseHeaderBytes: mostHeader,
	}
	t.Protocols, t.HTTP2 = c.http2()
	return t.NewClientConn(ctx, "http", "limpet:80")
}

// ErrOf is Err after an error of a client of the connection. Net/http fails the requests of a connection that it gives up, as
// when the other side breaks the protocol, before it closes that connection: then ErrOf waits for the close. It waits for
// nothing else, and returns nil after an error that is of one request alone.
func (c *Conn) ErrOf(client *http.ClientConn) error {
	if client.Err() != nil {
		<-c.over
	}
	return c.Err()
}

// Serve answers requests until the connection is closed, or ctx ends, and waits for the handlers, whose requests end then.
// It returns Conn.Err, or the cause of ctx. A handler must read the whole body of a request, at once: of bodies that nobody
// reads net/http takes so much that it has no room for others.
func Serve(ctx context.Context, c *Conn, handler http.Handler) error {
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	var under handlers
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if under.enter() {
				defer under.all.Done()
				handler.ServeHTTP(w, r)
			}
		}),
		MaxHeaderBytes: mostHeader, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return life },
	}
	server.Protocols, server.HTTP2 = c.http2()
	defer context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })()
	err := server.Serve(&single{conn: c})
	<-c.over
	end(errors.Join(c.cause, err))
	_ = server.Close() // It has nothing left.
	under.end()
	return c.cause
}

// handlers are those that run. The zero value has none.
type handlers struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

// enter counts one more, unless no more may begin.
func (h *handlers) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.all.Add(1)
	}
	return !h.ended
}

// end waits for them. No more begin.
func (h *handlers) end() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.all.Wait()
}

// single is a listener with one connection. It ends with that.
type single struct {
	conn *Conn
	took bool
}

func (l *single) Accept() (net.Conn, error) {
	if l.took {
		<-l.conn.over
		return nil, net.ErrClosed
	}
	l.took = true
	return l.conn, nil
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return addr{} }
