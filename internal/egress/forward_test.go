package egress_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
)

// site serves a.ok.test:80.
func (w *world) site(handler http.HandlerFunc) {
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.put(public4+":80", server.Listener.Addr().String())
}

func TestPlainHTTPIsForwarded(t *testing.T) {
	w := newWorld(t, allows())
	w.site(func(rw http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		rw.Header().Set("X-Saw", r.Method+" "+r.Host+" "+r.RequestURI)
		_, _ = rw.Write(b)
	})
	resp, err := w.browser().Post("http://a.ok.test/p%2fq/?x=%20y&z", "text/plain", strings.NewReader("with a body"))
	require.NoError(t, err)
	assert.Equal(t, "with a body", body(t, resp))
	assert.Equal(t, "POST a.ok.test /p%2fq/?x=%20y&z", resp.Header.Get("X-Saw"))

	// A length that is not known beforehand.
	resp, err = w.browser().Post("http://a.ok.test/", "text/plain", io.MultiReader(strings.NewReader("in "), strings.NewReader("chunks")))
	require.NoError(t, err)
	assert.Equal(t, "in chunks", body(t, resp))

	resp, err = w.browser().Head("http://a.ok.test/")
	require.NoError(t, err)
	assert.Empty(t, body(t, resp))
}

func TestAPortInTheURLIsKept(t *testing.T) {
	w := newWorld(t, allows("a.ok.test:8080", "["+public6+"]:80"))
	conns := w.upstream(public4 + ":8080")
	send(t, w.client(), "GET http://A.ok.test.:8080/ HTTP/1.1\r\nHost: a.ok.test:8080\r\n\r\n")
	receive(t, next(t, conns), "GET / HTTP/1.1\r\nHost: a.ok.test:8080\r\nConnection: close\r\n\r\n")

	conns = w.upstream("[" + public6 + "]:80")
	send(t, w.client(), "GET http://["+public6+"] HTTP/1.1\r\nHost: ["+public6+"]:80\r\n\r\n")
	receive(t, next(t, conns), "GET / HTTP/1.1\r\nHost: ["+public6+"]\r\nConnection: close\r\n\r\n")
}

func TestAResponseIsPassedOnAsItComes(t *testing.T) {
	for _, head := range []string{"Content-Length: 11\r\n\r\nfirst ", "Transfer-Encoding: chunked\r\n\r\n6\r\nfirst \r\n", "\r\nfirst "} {
		w := newWorld(t, allows())
		conns := w.upstream(public4 + ":80")
		conn := w.client()
		send(t, conn, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
		server := next(t, conns)
		send(t, server, "HTTP/1.1 200 OK\r\n"+head)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		receive(t, resp.Body, "first ") // The server has not sent the rest.
		if strings.Contains(head, "chunked") {
			send(t, server, "5\r\nlast.\r\n0\r\n\r\n")
		} else {
			send(t, server, "last.")
		}
		require.NoError(t, server.Close())
		receive(t, resp.Body, "last.")
		_, err = resp.Body.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
	}
}

func TestAResponseThatBreaksOffIsNotTakenForAWholeOne(t *testing.T) {
	for _, head := range []string{"Content-Length: 11\r\n\r\nfirst ", "Transfer-Encoding: chunked\r\n\r\n6\r\nfirst \r\n"} {
		w := newWorld(t, allows())
		conns := w.upstream(public4 + ":80")
		conn := w.client()
		send(t, conn, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
		server := next(t, conns)
		send(t, server, "HTTP/1.1 200 OK\r\n"+head)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, server.Close())
		_, err = io.ReadAll(resp.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

func TestWhatIsForTheProxyAloneStaysHere(t *testing.T) {
	got, answer := exchange(t, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nConnection: keep-alive, X-Hop ,Cookie\r\nConnection: x-other\r\n"+
		"X-Hop: 1\r\nX-Other: 1\r\nCookie: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nproxy-anything: 1\r\n"+
		"Keep-Alive: 1\r\nTE: trailers\r\nX-End: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n"+
			"Upgrade: h2c\r\nContent-Length: 2\r\nX-End: 2\r\n\r\nok")
	assert.Equal(t, "GET / HTTP/1.1\r\nHost: a.ok.test\r\nConnection: close\r\nX-End: 2\r\n\r\n", got)
	assert.Equal(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX-End: 2\r\n\r\nok", answer)
}

func TestTheHostHeaderMustAgreeWithTheURL(t *testing.T) {
	w := newWorld(t, allows())
	for _, hosts := range []string{
		"", "Host:\r\n", "Host: evil.test\r\n", "Host: b.ok.test\r\n", "Host: a.ok.test:81\r\n", "Host: a.ok.test:443\r\n", "Host: a.ok.test:x\r\n",
		"Host: a.ok.test\r\nHost: a.ok.test\r\n", "Host: a.ok.test\r\nHost: evil.test\r\n", "Host: a.ok.test, evil.test\r\n",
		"Host: a.ok.test\r\n evil.test\r\n", "Host: a.ok.test/x\r\n", "Host: x@a.ok.test\r\n", "Host : a.ok.test\r\n", "Host: [a.ok.test]\r\n",
	} {
		answer := w.ask("GET http://a.ok.test/ HTTP/1.1\r\n" + hosts + "\r\n")
		assert.True(t, strings.HasPrefix(answer, "HTTP/1.1 400 "), "%q: %s", hosts, answer)
		assert.Empty(t, w.take(&w.looked), "%q", hosts)
	}
	w.site(func(rw http.ResponseWriter, r *http.Request) {})
	for _, request := range []string{
		"HTTP/1.1\r\nHost: a.ok.test\r\n", "HTTP/1.1\r\nhost: A.OK.test.:80\r\n", "HTTP/1.0\r\n", "HTTP/1.1\nHost:a.ok.test\n",
	} {
		assert.Contains(t, w.ask("GET http://a.ok.test/ "+request+"\r\n"), " 200 OK\r\n", "%q", request)
	}
}

// exchange sends a request and gives the bytes that a server got of it.
func exchange(t *testing.T, request, response string) (got, answer string) {
	t.Helper()
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn := w.client()
	send(t, conn, request)
	server := next(t, conns)
	var sent sync.WaitGroup
	sent.Go(func() {
		req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(server, writer(func(b []byte) { got += string(b) }))))
		if assert.NoError(t, err) {
			_, err = io.Copy(io.Discard, req.Body)
			assert.NoError(t, err)
		}
		_, err = io.WriteString(server, response)
		assert.NoError(t, err)
		_ = server.CloseWrite() // The response had an end, and the proxy may have gone.
	})
	b, err := io.ReadAll(conn)
	require.NoError(t, err)
	sent.Wait()
	rest, err := io.ReadAll(server)
	require.NoError(t, err)
	return got + string(rest), string(b)
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestARequestThatCanBeReadInTwoWaysIsForwardedInOne(t *testing.T) {
	got, answer := exchange(t, "POST http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nUser-Agent: x\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n", okResponse)
	assert.Equal(t, "POST / HTTP/1.1\r\nHost: a.ok.test\r\nUser-Agent: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", got)
	assert.Contains(t, answer, "HTTP/1.1 200 OK\r\n")
}

func TestASecondRequestIsNotServed(t *testing.T) {
	one := "GET http://a.ok.test/1 HTTP/1.1\r\nHost: a.ok.test\r\n\r\n"
	got, answer := exchange(t, one+strings.ReplaceAll(one, "/1", "/2"), okResponse)
	assert.Equal(t, "GET /1 HTTP/1.1\r\nHost: a.ok.test\r\nConnection: close\r\n\r\n", got)
	assert.Equal(t, 1, strings.Count(answer, "HTTP/1.1 "))
}

func TestTrailersOfARequestAreDropped(t *testing.T) {
	got, _ := exchange(t, "POST http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"+
		"3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", okResponse)
	assert.NotContains(t, got, "X-T")
}

func TestInterimResponsesAreDropped(t *testing.T) {
	_, answer := exchange(t, "GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+okResponse)
	assert.Equal(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", answer)
}

func TestAClientThatKnowsNoChunksGetsNone(t *testing.T) {
	_, answer := exchange(t, "GET http://a.ok.test/ HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n")
	assert.Equal(t, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok", answer)
}

func TestAClientThatWaitsToContinueMay(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn := w.client()
	send(t, conn, "PUT http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n")
	receive(t, conn, "HTTP/1.1 100 Continue\r\n\r\n")
	send(t, conn, "body")
	server := next(t, conns)
	receive(t, server, "PUT / HTTP/1.1\r\nHost: a.ok.test\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
	send(t, server, okResponse)
	receive(t, conn, "HTTP/1.1 200 OK\r\n")
}

func TestAnAnswerBeforeTheEndOfTheRequestArrives(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn := w.client()
	send(t, conn, "PUT http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nContent-Length: 1000000\r\n\r\nonly the start")
	server := next(t, conns)
	send(t, server, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch")
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nmuch", string(answer))
}

func TestAServerSeesThatARequestBrokeOff(t *testing.T) {
	w := newWorld(t, allows())
	conns := w.upstream(public4 + ":80")
	conn := w.client()
	send(t, conn, "PUT http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\nContent-Length: 1000000\r\n\r\nonly the start")
	server := next(t, conns)
	require.NoError(t, conn.Close())
	_, err := io.Copy(io.Discard, server)
	assert.NoError(t, err)
}

func TestAServerThatIsSilentIsGivenUp(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) { o.IdleTimeout = 20 * time.Millisecond })
	w.upstream(public4 + ":80")
	answer := w.ask("GET http://a.ok.test/ HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
	assert.Contains(t, answer, "HTTP/1.1 504 Gateway Timeout\r\n")
	assert.Contains(t, answer, "a.ok.test:80 gave no response in time\n")
}
