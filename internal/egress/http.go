package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
)

func (c *client) serveHTTP() {
	req, hosts, r, err := readRequest(c.r)
	if err == nil {
		if req.Method == http.MethodConnect {
			err = c.connectHTTP(req, r)
		} else {
			err = c.forward(req, hosts)
		}
	} else {
		c.p.o.Logger.Info("malformed HTTP request") // The error would quote it.
	}
	if err != nil {
		c.tell(httpAnswer(refusalOf(err)))
	}
}

// connectHTTP serves CONNECT. Errors are what to answer.
func (c *client) connectHTTP(req *http.Request, r *bufio.Reader) error {
	// The URL of req has lost what is before an "@".
	host, port, err := splitAuthority(req.RequestURI, 0)
	if err != nil || port == 0 {
		return badRequest("CONNECT takes a host and a port")
	}
	t, upstream, release, err := c.p.connect(host, port)
	if err != nil {
		return err
	}
	defer release()
	c.tunnel(t, upstream, r, []byte("HTTP/1.1 200 Connection established\r\n\r\n"))
	return nil
}

func badRequest(text string) *refusal {
	return &refusal{http.StatusBadRequest, socksFailed, text}
}

// httpAnswer tells a refusal in one line of text.
func httpAnswer(no *refusal) []byte {
	body := "limpet: " + no.text + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		no.status, http.StatusText(no.status), len(body), body)
}

// maxHead bounds the head of a request and of a response, in bytes.
const maxHead = 64 << 10

var errLongHead = &refusal{http.StatusRequestHeaderFieldsTooLarge, socksFailed, fmt.Sprintf("the header is longer than %d bytes", maxHead)}

// readHead reads up to and with the first empty line.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for line := 0; ; { // where the line begins
		part, err := r.ReadSlice('\n')
		if len(head)+len(part) > maxHead {
			return nil, errLongHead
		}
		head = append(head, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if end := string(head[line:]); end == "\n" || end == "\r\n" {
			return head, nil
		}
		line = len(head)
	}
}

// readRequest reads the head of a request. It returns besides what the Host
// headers were, which http.ReadRequest drops in favour of the URL's host, and
// where to read on.
func readRequest(from *bufio.Reader) (req *http.Request, hosts []string, r *bufio.Reader, err error) {
	head, err := readHead(from)
	if err != nil {
		return nil, nil, nil, err
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	if _, err := lines.ReadLine(); err != nil {
		return nil, nil, nil, err
	}
	header, err := lines.ReadMIMEHeader()
	if err != nil {
		return nil, nil, nil, err
	}
	r = bufio.NewReader(io.MultiReader(bytes.NewReader(head), from))
	if req, err = http.ReadRequest(r); err != nil {
		return nil, nil, nil, err
	}
	if req.ProtoMajor != 1 {
		return nil, nil, nil, &refusal{http.StatusHTTPVersionNotSupported, socksFailed, "HTTP/1 alone is understood"}
	}
	return req, header["Host"], r, nil
}
