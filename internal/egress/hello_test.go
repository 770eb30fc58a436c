package egress_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
)

// tlsSite serves example.com:443, at public4.
func (w *world) tlsSite() *x509.CertPool {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.TLS.ServerName)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // Most clients here hang up after the handshake.
	server.StartTLS()
	w.t.Cleanup(server.Close)
	w.put(public4+":443", server.Listener.Addr().String())
	w.resolve("example.com", public4)
	w.resolve("www.example.com", public4)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

func TestHTTPSGoesThroughATunnel(t *testing.T) {
	w := newWorld(t, allows("example.com"))
	pool := w.tlsSite()
	browser := w.browser()
	browser.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	resp, err := browser.Get("https://example.com/")
	require.NoError(t, err)
	assert.Equal(t, "example.com", body(t, resp))
	_, err = browser.Get("https://evil.test/")
	assert.ErrorContains(t, err, "Forbidden")
	assert.Equal(t, []string{"evil.test 443: it is not in Net.Allow"}, w.take(&w.denied))
}

// handshake does one through a tunnel, with no look at the certificate.
func handshake(conn net.Conn, name string) error {
	client := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	return client.Handshake()
}

func TestATunnelMayNotLeadToAServerNameThatIsNotAllowed(t *testing.T) {
	rules := allows("example.com", "*.example.com", public4)
	rules.Deny = []string{"secret.example.com"}
	w := newWorld(t, rules)
	conns := w.upstream(public4 + ":443")
	w.resolve("example.com", public4)
	for name, why := range map[string]string{
		"evil.test":          "evil.test 443: it is not in Net.Allow (TLS server name in a tunnel to example.com:443)",
		"EVIL.test":          "evil.test 443: it is not in Net.Allow (TLS server name in a tunnel to example.com:443)",
		"badexample.com":     "badexample.com 443: it is not in Net.Allow (TLS server name in a tunnel to example.com:443)",
		"secret.example.com": `secret.example.com 443: Net.Deny has "secret.example.com" (TLS server name in a tunnel to example.com:443)`,
		"evil\x00.ok.test":   `"evil\x00.ok.test" 443: it has '\x00', which no host has (TLS server name in a tunnel to example.com:443)`,
	} {
		conn, _ := w.connect("example.com:443")
		server := next(t, conns)
		assert.ErrorContains(t, handshake(conn, name), "access denied", "%q", name)
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Empty(t, got, "nothing was passed on")
		assert.Equal(t, []string{why}, w.take(&w.denied))
	}
	code, conn := w.socks(socksName("example.com", 443))
	require.EqualValues(t, granted, code)
	assert.ErrorContains(t, handshake(conn, "evil.test"), "access denied")
	code, conn = w.socks(socksAddr(public4, 443))
	require.EqualValues(t, granted, code)
	assert.ErrorContains(t, handshake(conn, "evil.test"), "access denied")
}

func TestATunnelMayLeadToAnyServerNameThatIsAllowedOrNone(t *testing.T) {
	w := newWorld(t, allows("example.com", "*.example.com", public4))
	w.tlsSite()
	for _, name := range []string{"example.com", "www.example.com", "Example.COM", "a.ok.test"} {
		conn, _ := w.connect("example.com:443")
		assert.NoError(t, handshake(conn, name), name)
	}
	conn, _ := w.connect(public4 + ":443")
	assert.NoError(t, handshake(conn, public4), "an address as a server name is sent as none")
	conn, _ = w.connect("example.com:443")
	assert.NoError(t, handshake(conn, ""))
	assert.Empty(t, w.take(&w.denied))
}

func TestAClientHelloInPiecesIsRead(t *testing.T) {
	w := newWorld(t, allows("example.com"))
	w.tlsSite()
	conn, _ := w.connect("example.com:443")
	assert.NoError(t, handshake(pieces{conn}, "example.com"))
	conn, _ = w.connect("example.com:443")
	assert.ErrorContains(t, handshake(pieces{conn}, "evil.test"), "access denied")
}

// pieces writes a byte at a time.
type pieces struct{ net.Conn }

func (p pieces) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := p.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

func TestWhatIsNotTLSDoesNotGoToItsPort(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":443")
	for _, text := range []string{
		"SSH-2.0-OpenSSH\r\n", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "\x16\x03\x01\x00\x04\x02\x00\x00\x00", "\x80\x2e\x01\x00\x02\x00\x15",
		"\x16\x03\x01\xff\xff\x01\x00\x00\x00", "\x15\x03\x01\x00\x02\x02\x00",
	} {
		conn, r := w.connect("a.ok.test:443")
		server := next(t, conns)
		send(t, conn, text)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Empty(t, got)
		got, err = io.ReadAll(server)
		require.NoError(t, err)
		assert.Empty(t, got, "%q was passed on", text)
		assert.Equal(t, []string{"a.ok.test 443: what was sent is not TLS, and Net.SkipSNI is not set"}, w.take(&w.denied), "%q", text)
	}
}

func TestATunnelThatIsOpenedAndClosedIsNotReported(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":443")
	for _, text := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"} {
		conn, _ := w.connect("a.ok.test:443")
		server := next(t, conns)
		send(t, conn, text)
		require.NoError(t, conn.Close())
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
	assert.Empty(t, w.take(&w.denied))
}

func TestSkipSNILooksIntoNothing(t *testing.T) {
	rules := allows()
	rules.SkipSNI = true
	w := newWorld(t, rules)
	conns := w.upstream(public4 + ":443")
	conn, _ := w.connect("a.ok.test:443")
	send(t, conn, "SSH-2.0-")
	server := next(t, conns)
	receive(t, server, "SSH-2.0-")
	send(t, server, "SSH-2.0-")
	require.NoError(t, conn.Close())
}

func TestTunnelsToOtherPortsMayCarryAnything(t *testing.T) {
	w := newWorld(t, allows("a.ok.test:22"))
	conns := w.upstream(public4 + ":22")
	conn, r := w.connect("a.ok.test:22")
	server := next(t, conns)
	send(t, server, "the server speaks first")
	receive(t, r, "the server speaks first")
	send(t, conn, "\x16\x03\x01")
	receive(t, server, "\x16\x03\x01")
}

func TestTheLogHasHostsAndNoContent(t *testing.T) {
	var logged bytes.Buffer
	w := newWorld(t, allows(), func(o *egress.Options) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	for _, request := range []string{
		"GET http://evil.test/SECRET HTTP/1.1\r\nHost: evil.test\r\nX: SECRET\r\n\r\nSECRET",
		"GET http://a.ok.test/SECRET HTTP/1.1\r\nHost: a.ok.test\r\nX: SECRET\r\n\r\nSECRET",
		"GET SECRET\r\n\r\n", "GET http://a.ok.test/ HTTP/1.1\r\nSECRET\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x03\x06SECRET", "SECRET", "\x05\x02SECRET",
	} {
		conn := w.client()
		send(t, conn, request)
		_ = conn.CloseWrite() // The other side may have gone.
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err)
	}
	conns := w.upstream(public4 + ":80")
	client := w.client()
	send(t, client, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
	send(t, next(t, conns), "SECRET\r\n\r\n")
	answer, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.NotContains(t, string(answer), "SECRET")

	conns = w.upstream(public4 + ":443")
	conn, _ := w.connect("a.ok.test:443")
	server := next(t, conns)
	send(t, conn, "SECRET")
	_, err = io.Copy(io.Discard, server)
	require.NoError(t, err)
	require.NoError(t, w.proxy.Close())
	assert.Contains(t, logged.String(), "level=INFO msg=refused host=evil.test port=80 why=")
	assert.Contains(t, logged.String(), `level=INFO msg="cannot be reached" host=a.ok.test port=80`)
	assert.NotContains(t, strings.ToUpper(logged.String()), "SECRET")
}
