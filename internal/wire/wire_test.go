package wire_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
	"github.com/limpet-sh/limpet/shell"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a supervisor sleeps for a second when it exits.
	os.Exit(testenv.Main(m))
}

// pipes is a listener whose connections are pipes within the program.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func listenPipes() *pipes { return &pipes{conns: make(chan net.Conn), over: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.over:
		return nil, net.ErrClosed
	}
}

// sessions are those of a registry. The one named s stays when it is closed, as that of a program
// does that has this one alone.
type sessions struct {
	r   *session.Registry
	own *session.Session
}

func (s *sessions) Get(_ context.Context, name string) (session.Handle, error) {
	if name == s.own.Name() {
		return s.own, nil
	}
	one, err := s.r.Get(name)
	if err != nil {
		return nil, err
	}
	return one, nil
}

func (s *sessions) List(context.Context) ([]session.Info, error) { return s.r.List(), nil }

// served is a program with a session s that others reach.
type served struct {
	sessions *sessions
	handler  *wire.Handler
	dial     func(ctx context.Context) (net.Conn, error)
	dir      string // of the socket
}

// serve serves a session by a way, for the time of a test.
func serve(t *testing.T, way string) *served {
	t.Helper()
	r, err := session.New(&session.Options{Shell: &shell.Options{Dir: testenv.TempDir(t), RuntimeDir: testenv.TempDir(t)}})
	require.NoError(t, err)
	own, err := r.Open(testenv.Context(t), "s", nil)
	require.NoError(t, err)
	s := &served{sessions: &sessions{r, own}}
	handler := wire.NewHandler(s.sessions, wire.Hello{Version: "test", PID: os.Getpid()})
	s.handler = handler
	server := socket.NewServer(handler, wire.Refuse)
	switch way {
	case "pipe":
		l := listenPipes()
		s.dial = l.dial
		server.Serve(l)
	case "socket":
		s.dir = testenv.TempDir(t)
		l, err := socket.Listen(s.dir, "s")
		require.NoError(t, err)
		s.dial = func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, s.dir, "s") }
		server.Serve(l)
	}
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		handler.Close()
		server.Close(session.ErrClosed)
	})
	return s
}

// client returns one that ends with the test, before what it reaches.
func (s *served) client(t *testing.T) *wire.Client {
	t.Helper()
	c := wire.NewClient(s.dial)
	t.Cleanup(c.Disconnect)
	return c
}

func TestASessionThatNobodyKeepsIsNotUpgraded(t *testing.T) {
	_, err := serve(t, "pipe").client(t).Session("s").Upgrade(testenv.Context(t), wire.Upgrade{})
	require.ErrorContains(t, err, `session "s" is not one that is kept: there is nothing to upgrade`)
}

func TestASessionElsewhereKeepsThePromises(t *testing.T) {
	testenv.Slow(t)
	for _, way := range []string{"pipe", "socket"} {
		run := sessiontest.Run
		if way == "pipe" {
			run = sessiontest.RunCore
		}
		t.Run(way, func(t *testing.T) {
			run(t, func(t *testing.T) session.Handle { return serve(t, way).client(t).Session("s") })
		})
	}
}
