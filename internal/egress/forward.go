package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
)

// forward serves one plain request, "GET http://host/path". What goes to the
// server is written afresh from what was understood, so that the two cannot
// understand it differently. Errors are what to answer.
func (c *client) forward(req *http.Request, hosts []string) error {
	host, port, err := plainTarget(req, hosts)
	if err != nil {
		return err
	}
	continues := req.ProtoAtLeast(1, 1) && strings.EqualFold(req.Header.Get("Expect"), "100-continue")
	switch {
	case len(req.Header["Upgrade"]) > 0:
		return &refusal{http.StatusNotImplemented, socksFailed, "Upgrade is not forwarded; use CONNECT"}
	case len(req.Header["Expect"]) > 0 && !continues && req.ProtoAtLeast(1, 1):
		return &refusal{http.StatusExpectationFailed, socksFailed, "only 100-continue can be expected"}
	}
	t, upstream, release, err := c.p.connect(host, port)
	if err != nil {
		return err
	}
	defer release()

	a := newActivity(c.p.o.IdleTimeout, c.conn, upstream)
	if continues {
		if _, err := io.WriteString(c.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil // It has gone.
		}
	}
	out := outgoing(req, t, a)
	var sending sync.WaitGroup
	sending.Go(func() {
		if out.Write(upstream) != nil {
			_ = closeWrite(upstream) // So that the server does not wait for the rest.
		}
	})
	resp, err := readResponse(bufio.NewReader(a.reader(upstream)), out)
	if err != nil {
		err = c.p.unreachable(t, "gave no response", err)
	} else {
		c.respond(resp, req, t)
	}
	a.finish() // A server may answer before it has read all; what is left is not sent.
	sending.Wait()
	return err
}

// plainTarget says where a request goes. Its URL decides; a Host header that
// says something else is refused, for whoever believes the one may not see the
// other.
func plainTarget(req *http.Request, hosts []string) (string, uint16, error) {
	u := req.URL
	switch {
	case u.Scheme == "" || u.Host == "":
		return "", 0, badRequest("this is a proxy: ask for http://host/path, or CONNECT")
	case u.Scheme != "http":
		return "", 0, badRequest("only http:// is forwarded; use CONNECT")
	case u.User != nil || u.Opaque != "":
		return "", 0, badRequest("a URL here has a host and a path only")
	case len(hosts) > 1 || len(hosts) == 0 && req.ProtoAtLeast(1, 1):
		return "", 0, badRequest("there must be one Host header")
	}
	host, port, err := splitAuthority(u.Host, 80)
	if err != nil {
		return "", 0, badRequest("the port of the URL cannot be read")
	}
	if len(hosts) == 1 {
		h, p, err := splitAuthority(hosts[0], 80)
		if err != nil || p != port || !sameHost(h, host) {
			return "", 0, badRequest("the Host header and the URL name different hosts")
		}
	}
	return host, port, nil
}

// sameHost compares hosts as they are compared with the rules.
func sameHost(a, b string) bool {
	a, _, errA := parseHost(a)
	b, _, errB := parseHost(b)
	return a == b && errA == nil && errB == nil
}

// outgoing is a fresh request with what may pass. Trailers may not.
func outgoing(req *http.Request, t target, a *activity) *http.Request {
	u := *req.URL
	u.Host = t.String()
	out := &http.Request{
		Method: req.Method, URL: &u, Host: t.String(), Header: req.Header, Close: true,
		Body: http.NoBody, ContentLength: req.ContentLength, TransferEncoding: req.TransferEncoding,
	}
	if t.port == 80 {
		out.Host = strings.TrimSuffix(out.Host, ":80")
	}
	if req.ContentLength != 0 {
		out.Body = io.NopCloser(a.reader(req.Body)) // Closing it would read all that is left.
	}
	dropHopByHop(out.Header)
	out.Header.Del("Expect")
	if len(out.Header["User-Agent"]) == 0 {
		out.Header["User-Agent"] = []string{""} // Otherwise it would be Go's.
	}
	return out
}

// dropHopByHop removes what is about one connection alone: RFC 9110, 7.6.1.
func dropHopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
	for name := range h {
		if strings.HasPrefix(name, "Proxy-") {
			h.Del(name)
		}
	}
}

// maxInterim is how many responses may come before the final one.
const maxInterim = 8

// readResponse reads the head of the final response to out.
func readResponse(r *bufio.Reader, out *http.Request) (*http.Response, error) {
	for range maxInterim {
		head, err := readHead(r)
		if err != nil {
			return nil, err
		}
		r = bufio.NewReader(io.MultiReader(bytes.NewReader(head), r))
		resp, err := http.ReadResponse(r, out)
		switch {
		case err != nil:
			return nil, errors.New("the response is malformed") // The error would quote it.
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("it switches protocols, and was not asked to")
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
	return nil, errors.New("too many interim responses")
}

// respond passes a response on as it comes. If it breaks off, the client sees
// that: by a length or a last chunk that is missing.
func (c *client) respond(resp *http.Response, req *http.Request, t target) {
	dropHopByHop(resp.Header)
	resp.Close, resp.ProtoMajor, resp.ProtoMinor = true, 1, 1
	if !req.ProtoAtLeast(1, 1) && resp.ContentLength < 0 { // It knows no chunks.
		resp.ProtoMinor, resp.TransferEncoding, resp.Trailer = 0, nil, nil
	}
	w := bufio.NewWriter(c.conn)
	resp.Body = prompt{resp.Body, w}
	// Not w itself, which would read from a prompt on its own.
	if err := resp.Write(struct{ io.Writer }{w}); err != nil {
		c.p.o.Logger.Info("a response broke off", "host", t.host, "port", t.port)
	}
	_ = w.Flush() // Who does not take it has gone.
}

// prompt sends what was written before it waits for more.
type prompt struct {
	body io.ReadCloser
	w    *bufio.Writer
}

func (p prompt) Read(b []byte) (int, error) {
	if err := p.w.Flush(); err != nil {
		return 0, err
	}
	return p.body.Read(b)
}

func (p prompt) Close() error { return nil } // Closing the body would read all that is left.
