package egress_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// Public addresses, which the world's Dial never really dials.
const (
	public4 = "93.184.215.14"
	public6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
)

// world is the network that a proxy sees, and the proxy.
type world struct {
	t     testing.TB
	proxy *egress.Proxy
	at    string // where the proxy listens

	mu      sync.Mutex
	names   map[string][]string // what names resolve to; others are not found
	servers map[string]string   // where ip:port is served; others refuse
	looked  []string
	dialed  []string
	denied  []string
}

// newWorld starts a proxy. The names below ok.test resolve to public4.
func newWorld(t testing.TB, rules egress.Rules, with ...func(*egress.Options)) *world {
	t.Helper()
	w := &world{t: t, names: map[string][]string{}, servers: map[string]string{}}
	o := &egress.Options{Resolver: w, Dial: w.dial, Denied: func(host string, port uint16, why string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.denied = append(w.denied, fmt.Sprintf("%s %d: %s", host, port, why))
	}}
	for _, set := range with {
		set(o)
	}
	var err error
	w.proxy, err = egress.New(rules, o)
	require.NoError(t, err)
	w.at = w.serve()
	t.Cleanup(func() { assert.NoError(t, w.proxy.Close()) })
	return w
}

// serve has the proxy serve another listener, until it is closed.
func (w *world) serve() (at string) {
	l := listen(w.t)
	served := make(chan error, 1)
	go func() { served <- w.proxy.Serve(l) }()
	w.t.Cleanup(func() {
		assert.NoError(w.t, w.proxy.Close())
		assert.NoError(w.t, <-served)
	})
	return l.Addr().String()
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // Who serves it may have done so.
	return l
}

func (w *world) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, "ip", network)
	w.looked = append(w.looked, host)
	found, known := w.names[host]
	if len(host) > 8 && host[len(host)-8:] == ".ok.test" && !known {
		found = []string{public4}
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, addr := range found {
		addrs = append(addrs, netip.MustParseAddr(addr))
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	server, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return new(net.Dialer).DialContext(ctx, network, server)
}

// resolve lets a name resolve to something else from now on.
func (w *world) resolve(name string, to ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = to
}

// put has a local address be served as a public one.
func (w *world) put(public, local string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[public] = local
}

// take returns a record of what happened, and forgets it.
func (w *world) take(record *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := *record
	*record = nil
	return taken
}

// client connects to the proxy.
func (w *world) client() *net.TCPConn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.at)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() }) // The test may have done so.
	require.NoError(w.t, conn.SetDeadline(time.Now().Add(testenv.Patience)))
	return conn.(*net.TCPConn)
}

// ask sends bytes and returns all that comes back.
func (w *world) ask(request string) string {
	w.t.Helper()
	conn := w.client()
	_, err := io.WriteString(conn, request)
	require.NoError(w.t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(w.t, err)
	require.NoError(w.t, conn.Close())
	return string(answer)
}

// socksName asks for a name.
func socksName(name string, port uint16) []byte {
	b := append([]byte{5, 1, 0, 3, byte(len(name))}, name...)
	return binary.BigEndian.AppendUint16(b, port)
}

// socksAddr asks for an address.
func socksAddr(addr string, port uint16) []byte {
	a := netip.MustParseAddr(addr)
	kind := byte(4)
	if a.Is4() {
		kind = 1
	}
	return binary.BigEndian.AppendUint16(append([]byte{5, 1, 0, kind}, a.AsSlice()...), port)
}

// socks speaks SOCKS up to the reply and returns its code.
func (w *world) socks(request []byte) (code byte, conn *net.TCPConn) {
	w.t.Helper()
	conn = w.client()
	_, err := conn.Write(append([]byte{5, 1, 0}, request...))
	require.NoError(w.t, err)
	var answer [12]byte
	_, err = io.ReadFull(conn, answer[:])
	require.NoError(w.t, err)
	require.Equal(w.t, []byte{5, 0, 5}, answer[:3])
	return answer[3], conn
}

// The codes of replies, RFC 1928.
const (
	granted     = 0
	failed      = 1
	notAllowed  = 2
	unreachable = 4
	refused     = 5 // by a host that is allowed, and where nothing is served
)

// code is what SOCKS says of a request that goes no further.
func (w *world) code(request []byte) byte {
	w.t.Helper()
	code, conn := w.socks(request)
	require.NoError(w.t, conn.Close())
	return code
}

// connect opens a tunnel by CONNECT.
func (w *world) connect(target string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	conn := w.client()
	_, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	require.NoError(w.t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, resp.StatusCode)
	return conn, r
}

// upstream is a server that gives its connections to the test.
func (w *world) upstream(public string) <-chan *net.TCPConn {
	l := listen(w.t)
	w.put(public, l.Addr().String())
	conns := make(chan *net.TCPConn, 8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(testenv.Patience)) // Against hangs alone.
			conns <- conn.(*net.TCPConn)
		}
	}()
	w.t.Cleanup(func() {
		assert.NoError(w.t, l.Close())
		<-done
		close(conns)
		for conn := range conns {
			_ = conn.Close() // The test did not want it.
		}
	})
	return conns
}

func next(t testing.TB, conns <-chan *net.TCPConn) *net.TCPConn {
	t.Helper()
	select {
	case conn := <-conns:
		t.Cleanup(func() { _ = conn.Close() }) // The test may have done so.
		return conn
	case <-time.After(testenv.Patience):
		require.FailNow(t, "nobody connected")
		return nil
	}
}

func send(t testing.TB, conn io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func receive(t testing.TB, r io.Reader, text string) {
	t.Helper()
	got := make([]byte, len(text))
	_, err := io.ReadFull(r, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// allows has ok.test and what is below it.
func allows(more ...string) egress.Rules {
	return egress.Rules{Allow: slices.Concat([]string{"ok.test", "*.ok.test"}, more)}
}

// rebinding calls before each dial.
func rebinding(dial func(context.Context, string, string) (net.Conn, error), before func()) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		before()
		return dial(ctx, network, address)
	}
}
