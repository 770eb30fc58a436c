package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// tlsPort is where a tunnel carries TLS.
const tlsPort = 443

// accessDenied is a fatal alert of TLS, RFC 8446, 6: it makes the client say
// "access denied", where a closed connection would look like a broken one.
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// readHello reads the ClientHello of a tunnel to t, to be passed on, and checks
// its server name: a host that is allowed may serve others too, by their names
// (domain fronting). The name need not be t's, as another that is allowed could
// be had as well. A client that hangs up first is not reported.
func (c *client) readHello(t target, r io.Reader) (hello []byte, ok bool) {
	hello, name, err := clientHello(c.conn, r)
	switch {
	case errors.Is(err, errNotTLS):
		c.p.deny(t.host, t.port, "what was sent is not TLS, and Net.SkipSNI is not set")
		return nil, false
	case err != nil:
		return nil, false
	case name == "":
		return hello, true
	}
	why := ""
	if named, err := newTarget(name, t.port); err != nil {
		name, why = quoted(name), "it "+err.Error()
	} else {
		name, why = named.host, c.p.rules.refuses(named)
	}
	if why != "" {
		c.p.deny(name, t.port, why+" (TLS server name in a tunnel to "+t.String()+")")
		c.tell(accessDenied)
		return nil, false
	}
	return hello, true
}

// maxHello bounds a ClientHello, in bytes. Those of today's clients have less
// than 4 KiB.
const maxHello = 64 << 10

var (
	errNotTLS = errors.New("not TLS")
	errSeen   = errors.New("the ClientHello was seen")
)

// clientHello reads the first message of TLS and returns it, and the server name
// in it. It has crypto/tls begin a handshake, and end it where it would answer.
// The error is errNotTLS, or the one of reading.
func clientHello(conn net.Conn, r io.Reader) (hello []byte, name string, err error) {
	rec := &recorder{Conn: conn, r: io.LimitReader(r, maxHello)}
	seen := false
	_ = tls.Server(rec, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = info.ServerName, true
		return nil, errSeen
	}}).Handshake() // It fails in any case.
	switch {
	case seen:
		return rec.read.Bytes(), name, nil
	case rec.err != nil:
		return nil, "", rec.err
	}
	return nil, "", errNotTLS
}

// recorder keeps what is read, and sends nothing.
type recorder struct {
	net.Conn
	r    io.Reader
	read bytes.Buffer
	err  error // of reading
}

func (c *recorder) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read.Write(b[:n])
	if err != nil {
		c.err = err
	}
	return n, err
}

func (c *recorder) Write(b []byte) (int, error) { return len(b), nil }
