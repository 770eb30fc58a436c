package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestATunnelCarriesBothWays(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn, r := w.connect("A.ok.test.:80")
	server := next(t, conns)
	big := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB, both ways at once.
	var both sync.WaitGroup
	for _, from := range []io.Writer{conn, server} {
		both.Go(func() {
			_, err := io.WriteString(from, big)
			assert.NoError(t, err)
		})
	}
	both.Go(func() {
		got := make([]byte, len(big))
		_, err := io.ReadFull(server, got)
		assert.NoError(t, err)
		assert.True(t, big == string(got))
	})
	receive(t, r, big)
	both.Wait()
}

func TestTheEndOfOneDirectionLeavesTheOther(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn, r := w.connect("a.ok.test:80")
	server := next(t, conns)
	send(t, conn, "question")
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	assert.Equal(t, "question", string(got))
	send(t, server, "answer")
	require.NoError(t, server.Close())
	got, err = io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(got))

	conn, r = w.connect("a.ok.test:80") // And the other way round.
	server = next(t, conns)
	require.NoError(t, server.CloseWrite())
	_, err = r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	send(t, conn, "more")
	require.NoError(t, conn.Close())
	got, err = io.ReadAll(server)
	require.NoError(t, err)
	assert.Equal(t, "more", string(got))
}

func TestAConnectionThatCannotBeHalfClosedEndsTheTunnel(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return struct{ net.Conn }{conn}, err
		}
	})
	conns := w.upstream(public4 + ":80")
	conn, r := w.connect("a.ok.test:80")
	server := next(t, conns)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err := server.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
	_, err = r.ReadByte()
	assert.Error(t, err)
}

func TestAResetEndsBothDirections(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) { o.MaxConns = 1 })
	conns := w.upstream(public4 + ":80")
	_, _ = w.connect("a.ok.test:80") // It stays open.
	server := next(t, conns)
	require.NoError(t, server.SetLinger(0))
	require.NoError(t, server.Close())
	_, _ = w.connect("a.ok.test:80") // There is room again.
}

func TestATunnelWithoutActivityEnds(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) { o.IdleTimeout = 20 * time.Millisecond })
	conns := w.upstream(public4 + ":80")
	_, r := w.connect("a.ok.test:80")
	server := next(t, conns)
	_, err := r.ReadByte()
	assert.Error(t, err)
	_, err = server.Read(make([]byte, 1))
	assert.Error(t, err)
}

func TestCloseEndsTunnels(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	_, r := w.connect("a.ok.test:80")
	_, socks := w.socks(socksName("a.ok.test", 80))
	plain := w.client()
	send(t, plain, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
	servers := []*net.TCPConn{next(t, conns), next(t, conns), next(t, conns)}
	idle := w.client()

	require.NoError(t, w.proxy.Close())
	for _, conn := range []io.Reader{r, socks, idle} {
		_, err := conn.Read(make([]byte, 1))
		assert.Error(t, err)
	}
	for _, server := range servers {
		_, err := io.Copy(io.Discard, server)
		if err != nil { // The request that was not answered may be reset.
			assert.ErrorIs(t, err, syscall.ECONNRESET)
		}
	}
	require.NoError(t, w.proxy.Close(), "again")
	_, err := net.Dial("tcp", w.at)
	assert.Error(t, err, "nobody listens")
}

func TestCloseEndsLookupsAndDials(t *testing.T) {
	waits := stuckIn(t, func(begun chan struct{}) *world {
		return newWorld(t, allows(), func(o *egress.Options) { o.Resolver = stuck{begun} })
	})
	require.NoError(t, waits.proxy.Close())
	waits = stuckIn(t, func(begun chan struct{}) *world {
		return newWorld(t, allows(), func(o *egress.Options) { o.Dial = stuck{begun}.dial })
	})
	require.NoError(t, waits.proxy.Close())
}

// stuckIn asks for a host and returns when the lookup or the dial has begun.
func stuckIn(t *testing.T, start func(begun chan struct{}) *world) *world {
	t.Helper()
	begun := make(chan struct{}, 1)
	w := start(begun)
	send(t, w.client(), "CONNECT a.ok.test:80 HTTP/1.1\r\n\r\n")
	<-begun
	return w
}

// stuck is a network where nothing ever comes back.
type stuck struct{ begun chan struct{} }

func (s stuck) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	s.begun <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.begun <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestALookupAndADialThatTakeTooLongAreGivenUp(t *testing.T) {
	for what, set := range map[string]func(*egress.Options){
		"a.ok.test:80 cannot be resolved in time\n": func(o *egress.Options) { o.Resolver = stuck{make(chan struct{}, 1)} },
		"a.ok.test:80 cannot be reached in time\n":  func(o *egress.Options) { o.Dial = stuck{make(chan struct{}, 1)}.dial },
	} {
		w := newWorld(t, allows(), set, func(o *egress.Options) { o.DialTimeout = 20 * time.Millisecond })
		answer := w.ask("CONNECT a.ok.test:80 HTTP/1.1\r\n\r\n")
		assert.Contains(t, answer, "HTTP/1.1 504 Gateway Timeout\r\n")
		assert.Contains(t, answer, what)
	}
}

func TestAnAddressThatDoesNotAnswerLeavesTimeForTheNext(t *testing.T) {
	testenv.Slow(t)
	w := newWorld(t, allows(), func(o *egress.Options) {
		dial := o.Dial
		o.DialTimeout = 600 * time.Millisecond
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, address)
		}
	})
	w.resolve("a.ok.test", public6, public4)
	conns := w.upstream(public4 + ":80")
	_, _ = w.connect("a.ok.test:80")
	next(t, conns)
}

func TestNoMoreThanMaxConnsAreServedAtOnce(t *testing.T) {
	const most = 3
	var now, peak atomic.Int32
	w := newWorld(t, allows(), func(o *egress.Options) {
		o.MaxConns = most
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			for n := now.Add(1); ; {
				if p := peak.Load(); n <= p || peak.CompareAndSwap(p, n) {
					break
				}
			}
			conn, err := dial(ctx, network, address)
			if err != nil {
				now.Add(-1)
				return nil, err
			}
			return &counted{TCPConn: conn.(*net.TCPConn), closed: func() { now.Add(-1) }}, nil
		}
	})
	conns := w.upstream(public4 + ":80")
	var all sync.WaitGroup
	for range 12 {
		client := w.client()
		all.Go(func() {
			_, err := io.WriteString(client, "CONNECT a.ok.test:80 HTTP/1.1\r\n\r\n")
			assert.NoError(t, err)
			_ = client.CloseWrite() // The other side may have gone.
			answer, err := io.ReadAll(client)
			assert.NoError(t, err)
			assert.Contains(t, string(answer), "HTTP/1.1 200 ")
		})
	}
	for range 12 {
		assert.NoError(t, next(t, conns).Close()) // The end of the tunnel frees a slot.
	}
	all.Wait()
	assert.LessOrEqual(t, peak.Load(), int32(most))
}

// counted tells when it is closed.
type counted struct {
	*net.TCPConn
	once   sync.Once
	closed func()
}

func (c *counted) Close() error {
	c.once.Do(c.closed)
	return c.TCPConn.Close()
}

func TestCloseEndsThoseWhoWaitForASlot(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) { o.MaxConns = 1 })
	conns := w.upstream(public4 + ":80")
	_, _ = w.connect("a.ok.test:80")
	next(t, conns)
	waiting := w.client()
	send(t, waiting, "CONNECT a.ok.test:80 HTTP/1.1\r\n\r\n")
	require.NoError(t, w.proxy.Close())
	_, err := waiting.Read(make([]byte, 1))
	assert.Error(t, err)
}

func TestSeveralListenersCanBeServed(t *testing.T) {
	w := newWorld(t, allows())
	first := w.at
	w.at = w.serve()
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
	w.at = first
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
}

func TestServeAfterCloseClosesItsListener(t *testing.T) {
	p, err := egress.New(egress.Rules{}, nil)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	l := listen(t)
	require.ErrorIs(t, p.Serve(l), net.ErrClosed)
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestServeReturnsWhenItsListenerFails(t *testing.T) {
	p, err := egress.New(egress.Rules{}, nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	l := listen(t)
	require.NoError(t, l.Close())
	assert.ErrorIs(t, p.Serve(l), net.ErrClosed)
	broken := errors.New("broken")
	assert.ErrorIs(t, p.Serve(&scripted{Listener: listen(t), errs: []error{broken}}), broken)
}

func TestServeGoesOnWhenDescriptorsAreBack(t *testing.T) {
	w := newWorld(t, allows())
	l := &scripted{Listener: listen(t), errs: []error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, syscall.ECONNABORTED}}
	served := make(chan error, 1)
	go func() { served <- w.proxy.Serve(l) }()
	w.at = l.Addr().String()
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
	require.NoError(t, w.proxy.Close())
	assert.NoError(t, <-served)
}

// scripted fails first.
type scripted struct {
	net.Listener
	errs []error
}

func (s *scripted) Accept() (net.Conn, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	return s.Listener.Accept()
}
