package egress

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// client is one connection from the sandbox.
type client struct {
	p    *Proxy
	conn net.Conn
	r    *bufio.Reader // of conn
}

func newClient(p *Proxy, conn net.Conn) *client {
	return &client{p, conn, bufio.NewReader(conn)}
}

// serve does what the client wants, once, and hangs up. The connection is still
// to be closed.
func (c *client) serve() {
	defer c.hangUp()
	c.expect(c.p.o.HeaderTimeout)
	first, err := c.r.Peek(1)
	if err != nil {
		return // It said nothing.
	}
	if first[0] == socksVersion {
		c.serveSOCKS()
	} else {
		c.serveHTTP()
	}
}

// expect gives what comes next this long.
func (c *client) expect(d time.Duration) {
	_ = c.conn.SetDeadline(time.Now().Add(d)) // Fails on a closed connection, as what comes next.
}

// A client has this long to take an answer and to hang up in its turn, and may
// send this much meanwhile, which nobody reads.
const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// tell sends the last that is said. Who does not take it has gone.
func (c *client) tell(answer []byte) {
	c.expect(lingerTime)
	_, _ = c.conn.Write(answer)
}

// hangUp lets the client read what it was sent: closing a connection with
// something unread resets it (RFC 9112, 9.6).
func (c *client) hangUp() {
	c.expect(lingerTime)
	if closeWrite(c.conn) == nil {
		_, _ = io.CopyN(io.Discard, c.conn, lingerBytes)
	}
}

// errNoHalfClose is of a connection without CloseWrite.
var errNoHalfClose = errors.New("the connection cannot be half closed")

// closeWrite tells the other side that there is nothing more to come.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errNoHalfClose
}

// refusal is why a client does not get what it wants, in the terms of both
// protocols.
type refusal struct {
	status int    // of HTTP
	code   byte   // of SOCKS5
	text   string // one line
}

func (r *refusal) Error() string { return r.text }

// deny reports what the rules refuse.
func (p *Proxy) deny(host string, port uint16, why string) *refusal {
	p.o.Logger.Info("refused", "host", host, "port", port, "why", why)
	p.o.Denied(host, port, why)
	text := target{host: host, port: port}.String() + " is not allowed: " + why + "; the policy's Net.Allow decides"
	return &refusal{http.StatusForbidden, socksNotAllowed, text}
}

// refusalOf says what is told of an error. What is no refusal is of the
// connection, and the client has most likely gone.
func refusalOf(err error) *refusal {
	if no, ok := errors.AsType[*refusal](err); ok {
		return no
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return &refusal{http.StatusRequestTimeout, socksFailed, "the request did not come in time"}
	}
	return badRequest("the request could not be read")
}
