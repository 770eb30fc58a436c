package egress

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"
)

// SOCKS5, RFC 1928, with domain names resolved here:
//
//	client                                  proxy
//	05 n methods[n]                     →
//	                                    ←   05 00
//	05 01 00 type address port[2]       →
//	                                    ←   05 code 00 01 00[4] 00[2]
//	                    (the tunnel, if the code is 00)
const (
	socksVersion = 5
	socksNoAuth  = 0
	socksNone    = 0xff // of the methods
	socksConnect = 1

	socksIPv4   = 1
	socksDomain = 3
	socksIPv6   = 4
)

// The codes of replies.
const (
	socksOK          = 0
	socksFailed      = 1
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksRefused     = 5
	socksNoCommand   = 7
	socksNoType      = 8
)

func (c *client) serveSOCKS() {
	ok, err := socksGreeting(c.r)
	if err != nil || !ok {
		c.p.o.Logger.Info("malformed SOCKS greeting")
		c.tell([]byte{socksVersion, socksNone})
		return
	}
	if _, err := c.conn.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return
	}
	host, port, err := socksRequest(c.r)
	if err != nil {
		c.p.o.Logger.Info("malformed SOCKS request")
		c.tell(socksReply(refusalOf(err).code))
		return
	}
	t, upstream, release, err := c.p.connect(host, port)
	if err != nil {
		c.tell(socksReply(refusalOf(err).code))
		return
	}
	defer release()
	c.tunnel(t, upstream, c.r, socksReply(socksOK))
}

// socksReply has an address that means nothing: nobody needs to know ours.
func socksReply(code byte) []byte {
	return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}

// socksGreeting reports whether the client would go without authentication.
func socksGreeting(r io.Reader) (ok bool, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return false, err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return false, err
	}
	return head[0] == socksVersion && bytes.IndexByte(methods, socksNoAuth) >= 0, nil
}

// socksRequest reads where the client wants to go. The host is not checked.
func socksRequest(r io.Reader) (host string, port uint16, err error) {
	var head [4]byte // version, command, reserved, type of the address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, err
	}
	malformed := func(code byte, text string) (string, uint16, error) {
		return "", 0, &refusal{http.StatusBadRequest, code, text}
	}
	switch {
	case head[0] != socksVersion || head[2] != 0:
		return malformed(socksFailed, "not a SOCKS5 request")
	case head[1] != socksConnect:
		return malformed(socksNoCommand, "the command is not CONNECT")
	}
	size := 0
	switch head[3] {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksDomain:
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return "", 0, err
		}
		size = int(length[0])
	default:
		return malformed(socksNoType, "an unknown type of address")
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return "", 0, err
	}
	address, port := rest[:size], uint16(rest[size])<<8|uint16(rest[size+1])
	if head[3] == socksDomain {
		return string(address), port, nil
	}
	addr, _ := netip.AddrFromSlice(address) // It is 4 or 16 bytes.
	return addr.String(), port, nil
}
