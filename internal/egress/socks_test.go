package egress_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
)

func TestSOCKSConnectsToANameThatIsAllowed(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	code, conn := w.socks(socksName("a.ok.test", 80))
	require.EqualValues(t, granted, code)
	server := next(t, conns)
	send(t, conn, "ping")
	receive(t, server, "ping")
	send(t, server, "pong")
	receive(t, conn, "pong")
	assert.Empty(t, w.take(&w.denied))
}

func TestGoSpeaksSOCKSToIt(t *testing.T) {
	w := newWorld(t, allows())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Host) }))
	defer server.Close()
	w.put(public4+":80", server.Listener.Addr().String())
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5h", Host: w.at})}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://a.ok.test/")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "a.ok.test", string(body))
	_, err = client.Get("http://evil.test/")
	assert.ErrorContains(t, err, "not allowed by ruleset")
}

func TestANameWithANULIsRefused(t *testing.T) {
	w := newWorld(t, allows())
	assert.EqualValues(t, notAllowed, w.code(socksName("evil\x00.ok.test", 80)))
	assert.Empty(t, w.take(&w.looked))
	assert.Equal(t, []string{`"evil\x00.ok.test" 80: it has '\x00', which no host has`}, w.take(&w.denied))
}

func TestWhatIsNoHostNameIsRefusedBeforeItIsMatched(t *testing.T) {
	w := newWorld(t, allows())
	for _, name := range []string{
		"", ".", "..", ".ok.test", "a..ok.test", "a.ok.test..", "-a.ok.test", "a-.ok.test",
		"\x00.ok.test", "a\x00", "a.ok.test\x00", "a b.ok.test", "a\t.ok.test", "a.ok.test\n", "\r\n.ok.test", "a.ok.test\r\nHost: x",
		"evil.test%00.ok.test", "evil%2etest.ok.test", "user@a.ok.test", "evil.test/.ok.test", "evil.test#.ok.test", "evil.test?.ok.test",
		`evil.test\.ok.test`, "evil.test:80.ok.test", "a.ok.test:80", "[a].ok.test", "*.ok.test", "a,b.ok.test", "a;b.ok.test", "a'b.ok.test",
		"\x7f.ok.test", "\x80.ok.test", "é.ok.test", "a.o\u212a.test", "a\u3002ok.test", "a.ok.test\u200b",
		strings.Repeat("a", 64) + ".ok.test", strings.Repeat("a.", 124) + "ok.test",
	} {
		assert.EqualValues(t, notAllowed, w.code(socksName(name, 80)), "%q", name)
		assert.Empty(t, w.take(&w.looked), "%q", name)
		denied := w.take(&w.denied)
		require.Len(t, denied, 1, "%q", name)
		assert.Regexp(t, `^[ -~]{1,300}$`, denied[0], "it is fit to print")
	}
}

func TestAnAddressIsRefusedUnlessItIsListed(t *testing.T) {
	w := newWorld(t, allows("8.8.8.8", public6, "9.9.9.9:53"))
	for _, request := range [][]byte{
		socksAddr("8.8.8.8", 80), socksAddr(public6, 443), socksAddr("9.9.9.9", 53),
		socksName("8.8.8.8", 80), socksName("8.8.8.8.", 80), socksName(strings.ToUpper(public6), 80), socksAddr("::ffff:8.8.8.8", 80),
	} {
		assert.EqualValues(t, refused, w.code(request), "%q", request)
		assert.Len(t, w.take(&w.dialed), 1)
	}
	assert.Empty(t, w.take(&w.looked))
	for _, request := range [][]byte{
		socksAddr("8.8.4.4", 80), socksAddr("8.8.8.8", 22), socksAddr("9.9.9.9", 80), socksAddr("2606:2800::1", 80),
		socksAddr("127.0.0.1", 80), socksAddr("0.0.0.0", 80), socksAddr("::", 80), socksAddr("::1", 80), socksAddr("169.254.169.254", 80),
		socksAddr("::ffff:127.0.0.1", 80), socksAddr("64:ff9b::808:808", 80),
		socksName("127.0.0.1", 80), socksName("::1", 80), socksName("[::1]", 80), socksName("fe80::1%eth0", 80),
	} {
		assert.EqualValues(t, notAllowed, w.code(request), "%q", request)
		assert.Empty(t, w.take(&w.dialed))
	}
}

func TestAnAddressInAnOddNotationIsNoName(t *testing.T) {
	w := newWorld(t, allows("8.8.8.8"))
	for _, name := range []string{
		"0x7f.1", "0x7f.0.0.1", "0x7F000001", "2130706433", "127.1", "127.0.1", "0177.0.0.1", "017700000001", "00.00.00.00", "0",
		"127.0.0.01", "8.8.8.010", "0x8.8.8.8", "8.8.2056", "134744072", "1.2.3.4.5", "a.ok.test.1", "a.ok.test.0x1", "a.ok.test.0x",
	} {
		assert.EqualValues(t, notAllowed, w.code(socksName(name, 80)), name)
		assert.Empty(t, w.take(&w.looked), name)
	}
}

func TestSOCKSSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t, allows())
	w.resolve("gone.ok.test")
	for want, request := range map[byte][]byte{
		unreachable: socksName("gone.ok.test", 80),
		refused:     socksName("a.ok.test", 80),
		notAllowed:  socksName("evil.test", 80),
		7:           {5, 2, 0, 1, 8, 8, 8, 8, 0, 80}, // BIND
		8:           {5, 1, 0, 2, 8, 8, 8, 8, 0, 80},
		failed:      {5, 1, 1, 1, 8, 8, 8, 8, 0, 80},
	} {
		assert.Equal(t, want, w.code(request), "%q", request)
	}
	assert.EqualValues(t, 7, w.code([]byte{5, 3, 0, 1, 8, 8, 8, 8, 0, 80}), "UDP ASSOCIATE")
	assert.EqualValues(t, failed, w.code([]byte{4, 1, 0, 1, 8, 8, 8, 8, 0, 80}))
}

func TestSOCKSWithAuthenticationAloneIsRefused(t *testing.T) {
	w := newWorld(t, allows())
	for _, greeting := range []string{"\x05\x01\x02", "\x05\x02\x01\x02", "\x05\x00"} {
		assert.Equal(t, "\x05\xff", w.ask(greeting), "%q", greeting)
	}
	assert.Equal(t, "\x05\x00\x05\x02", w.ask("\x05\x02\x02\x00" + string(socksName("evil.test", 80)))[:4], "one of several will do")
}

func TestWhatFollowsTheRequestAtOnceIsNotLost(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn := w.client()
	send(t, conn, "\x05\x01\x00"+string(socksName("a.ok.test", 80))+"early")
	receive(t, next(t, conns), "early")

	conn = w.client()
	send(t, conn, "CONNECT a.ok.test:80 HTTP/1.1\r\nHost: a.ok.test\r\nContent-Length: 3\r\n\r\nearly")
	receive(t, next(t, conns), "early")
}

func TestHalfARequestIsNotServed(t *testing.T) {
	w := newWorld(t, allows())
	whole := "\x05\x01\x00" + string(socksName("a.ok.test", 80))
	for n := range len(whole) {
		conn := w.client()
		send(t, conn, whole[:n])
		require.NoError(t, conn.CloseWrite())
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	assert.Empty(t, w.take(&w.looked))
}

func TestNamesOfAnyLengthCanBeSent(t *testing.T) {
	w := newWorld(t, egress.Rules{})
	for _, n := range []int{0, 1, 253, 254, 255} {
		assert.EqualValues(t, notAllowed, w.code(socksName(strings.Repeat("a", n), 80)), n)
	}
}
