package egress_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// browser is a client that uses the proxy for http and https.
func (w *world) browser() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.at})}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testenv.Patience}
}

func body(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

func TestAHostThatIsNotAllowedIsAnsweredByALineThatSaysSo(t *testing.T) {
	w := newWorld(t, allows())
	for _, request := range []string{
		"GET http://evil.test/secret HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000),
		"CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n" + strings.Repeat("x", 100000),
	} {
		answer := w.ask(request)
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusForbidden, resp.StatusCode)
		assert.Equal(t, "text/plain; charset=utf-8", resp.Header.Get("Content-Type"))
		assert.Equal(t, "limpet: evil.test:80 is not allowed: it is not in Net.Allow; the policy's Net.Allow decides\n", body(t, resp))
		assert.Equal(t, []string{"evil.test 80: it is not in Net.Allow"}, w.take(&w.denied))
	}
	assert.Empty(t, w.take(&w.looked))
}

func TestWhatIsNoRequestForAProxyIsAnsweredWithWhatIsWrong(t *testing.T) {
	w := newWorld(t, allows())
	const host = "Host: a.ok.test\r\n\r\n"
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\n" + host:                                 "400 ",
		"OPTIONS * HTTP/1.1\r\n" + host:                             "400 ",
		"GET //a.ok.test/ HTTP/1.1\r\n" + host:                      "400 ",
		"GET a.ok.test HTTP/1.1\r\n" + host:                         "400 ",
		"GET https://a.ok.test/ HTTP/1.1\r\n" + host:                "400 ",
		"GET ftp://a.ok.test/ HTTP/1.1\r\n" + host:                  "400 ",
		"GET http:a.ok.test HTTP/1.1\r\n" + host:                    "400 ",
		"GET http:///path HTTP/1.1\r\n" + host:                      "400 ",
		"GET http://evil.test@a.ok.test/ HTTP/1.1\r\n" + host:       "400 ",
		"GET http://a.ok.test@evil.test/ HTTP/1.1\r\n" + host:       "400 ",
		"GET http://a.ok.test:x/ HTTP/1.1\r\n" + host:               "400 ",
		"GET http://a.ok.test:/ HTTP/1.1\r\n" + host:                "400 ",
		"GET http://evil\x00.ok.test/ HTTP/1.1\r\n" + host:          "400 ",
		"GET http://evil%00.ok.test/ HTTP/1.1\r\n" + host:           "400 ",
		"GET http://evil.test\\.ok.test/ HTTP/1.1\r\n" + host:       "400 ",
		"GET http://evil.test#.ok.test/ HTTP/1.1\r\n" + host:        "400 ",
		"GET http://%c3%a9.ok.test/ HTTP/1.1\r\n" + host:            "400 ",
		"GET http://a.ok.test/ HTTP/2.0\r\n" + host:                 "505 ",
		"GET http://a.ok.test/ HTTP/1.1\r\n\x00: x\r\n" + host:      "400 ",
		"GET http://a.ok.test/ HTTP/1.1\r\n x: y\r\n" + host:        "400 ",
		"GET http://a.ok.test/\r\n\r\n":                             "400 ",
		"\r\n\r\n":                                                  "400 ",
		"\x04\x01\x00\x50\x08\x08\x08\x08\x00\n\n":                  "400 ", // SOCKS4
		"\x16\x03\x01\x00\x10\x01\x00\x00\x0c\x03\x03\n\n\n":        "400 ", // TLS
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                          "505 ",
		"CONNECT a.ok.test HTTP/1.1\r\n" + host:                     "400 ",
		"CONNECT a.ok.test: HTTP/1.1\r\n" + host:                    "400 ",
		"CONNECT a.ok.test:0 HTTP/1.1\r\n" + host:                   "400 ",
		"CONNECT a.ok.test:443/x HTTP/1.1\r\n" + host:               "400 ",
		"CONNECT /a.ok.test:443 HTTP/1.1\r\n" + host:                "403 ",
		"CONNECT http://a.ok.test:443 HTTP/1.1\r\n" + host:          "400 ",
		"CONNECT x@a.ok.test:443 HTTP/1.1\r\n" + host:               "403 ",
		"CONNECT evil.test:443@a.ok.test:443 HTTP/1.1\r\n" + host:   "400 ",
		"CONNECT 127.1:443 HTTP/1.1\r\n" + host:                     "403 ",
		"CONNECT [::1]:443 HTTP/1.1\r\n" + host:                     "403 ",
		"GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n":       "400 ",
		"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": "403 ",
		"GET http://[::1]/ HTTP/1.1\r\nHost: [::1]\r\n\r\n":         "403 ",

		"GET http://a.ok.test/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + host: "501 ",
		"GET http://a.ok.test/ HTTP/1.1\r\nUpgrade: h2c\r\n" + host:                              "501 ",
		"GET http://a.ok.test/ HTTP/1.1\r\nExpect: the-worst\r\n" + host:                         "417 ",
		"POST http://a.ok.test/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + host:                  "400 ",
		"POST http://a.ok.test/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n" + host:     "400 ",
		"POST http://a.ok.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + host:   "400 ",
		"POST http://a.ok.test/ HTTP/1.1\r\nContent-Length: -1\r\n" + host:                       "400 ",
		"POST http://a.ok.test/ HTTP/1.1\r\nContent-Length: +1\r\n" + host:                       "400 ",
		"GET http://a.ok.test/ HTTP/1.1\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n" + host:    "431 ",
		"GET http://a.ok.test/ HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 12<<10) + host:         "431 ",
		"GET http://a.ok.test/" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\n" + host:           "431 ",
		strings.Repeat("x", 80<<10): "431 ",
	} {
		answer := w.ask(request)
		short := request[:min(len(request), 80)]
		assert.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+want), "%q: %s", short, answer)
		assert.Contains(t, answer, "\r\n\r\nlimpet: ", "%q", short)
		assert.Empty(t, w.take(&w.looked), "%q", short)
	}
}

func TestAServerThatCannotBeHadIsABadGateway(t *testing.T) {
	w := newWorld(t, allows())
	w.resolve("gone.ok.test")
	w.resolve("none.ok.test", []string{}...)
	assert.Contains(t, w.ask("CONNECT gone.ok.test:443 HTTP/1.1\r\n\r\n"), "HTTP/1.1 502 ")
	assert.Contains(t, w.ask("CONNECT none.ok.test:443 HTTP/1.1\r\n\r\n"), "none.ok.test:443 cannot be resolved\n")
	assert.Contains(t, w.ask("CONNECT a.ok.test:443 HTTP/1.1\r\n\r\n"), "a.ok.test:443 cannot be reached: connection refused\n")
	assert.Empty(t, w.take(&w.denied), "the rules allow it")

	for _, response := range []string{
		"", "nonsense\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + okResponse,
		strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20), "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10),
	} {
		conns := w.upstream(public4 + ":80")
		conn := w.client()
		send(t, conn, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
		server := next(t, conns)
		_, _ = io.WriteString(server, response) // It may be hung up on before the end.
		_ = server.CloseWrite()
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Contains(t, string(answer), "HTTP/1.1 502 Bad Gateway\r\n", "%.40q", response)
		assert.Contains(t, string(answer), "a.ok.test:80 gave no response\n")
	}
}

func TestASlowHeaderIsCutOff(t *testing.T) {
	testenv.Slow(t)
	w := newWorld(t, allows(), func(o *egress.Options) { o.HeaderTimeout = 200 * time.Millisecond })
	assert.Contains(t, w.ask("GET http://a.ok.test/ HTTP/1.1\r\nHost: a.o"), "HTTP/1.1 408 Request Timeout\r\n")
	assert.Empty(t, w.ask(""), "nothing at all")
	assert.Equal(t, "\x05\xff", w.ask("\x05"))
	assert.Equal(t, "\x05\x00\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00", w.ask("\x05\x01\x00\x05\x01"))

	conn := w.client() // A byte now and then does not help.
	_, err := io.Copy(conn, drip{})
	assert.Error(t, err)
	assert.Empty(t, w.take(&w.looked))
}

// drip is a header without an end.
type drip struct{}

func (drip) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond) // It is slow: that is the test.
	return copy(b, "x"), nil
}

func TestManyClientsAreServedAtOnce(t *testing.T) {
	w := newWorld(t, allows())
	w.site(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.URL.Path) })
	browser := w.browser()
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			if i%4 == 0 {
				resp, err := browser.Get("http://evil.test/")
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusForbidden, resp.StatusCode)
					assert.NoError(t, resp.Body.Close())
				}
				return
			}
			path := "/" + strings.Repeat("x", i)
			resp, err := browser.Get("http://a.ok.test" + path)
			if assert.NoError(t, err) {
				b, err := io.ReadAll(resp.Body)
				assert.NoError(t, err)
				assert.NoError(t, resp.Body.Close())
				assert.Equal(t, path, string(b))
			}
		})
	}
	clients.Wait()
	assert.Len(t, w.take(&w.denied), 16)
}
