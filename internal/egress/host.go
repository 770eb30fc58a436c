package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// target is where a client wants to go. It is made by newTarget.
type target struct {
	host string
	addr netip.Addr // valid if host is an IP address
	port uint16
}

func newTarget(host string, port uint16) (target, error) {
	name, addr, err := parseHost(host)
	if err != nil {
		return target{}, err
	}
	if port == 0 {
		return target{}, errors.New("has port 0")
	}
	return target{name, addr, port}, nil
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// What is wrong with a host; it follows the host.
var (
	errEmpty    = errors.New("is empty")
	errLong     = errors.New("is longer than a host name can be")
	errNotASCII = errors.New(`is not ASCII; write it in punycode, such as "xn--bcher-kva.example"`)
	errLabels   = errors.New("is not a host name: its labels have 1 to 63 bytes, and no hyphen at either end")
	errNumber   = errors.New("ends in a number as only an IP address does; write IPv4 as four decimal numbers without leading zeros")
	errNotIP    = errors.New("is not an IP address; a zone cannot be given")
)

// parseHost gives a host as it is compared: a name in lower case without the
// trailing dot, an IP address in its usual notation, IPv4 in IPv6 as IPv4. It
// looks at the bytes before anything else does. What ends in a number but is no
// usual IPv4 address, such as 0x7f.1 and 2130706433, is refused: resolvers take
// it for one, as inet_aton(3) does.
func parseHost(s string) (host string, addr netip.Addr, err error) {
	name := strings.TrimSuffix(s, ".")
	switch {
	case name == "":
		return "", netip.Addr{}, errEmpty
	case len(name) > 253: // 255 bytes on the wire: RFC 1035, 2.3.4.
		return "", netip.Addr{}, errLong
	}
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 0x80:
			return "", netip.Addr{}, errNotASCII
		case !hostByte(b):
			return "", netip.Addr{}, fmt.Errorf("has %q, which no host has", b)
		}
	}
	name = strings.ToLower(name)
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.Unmap()
		return addr.String(), addr, nil
	}
	if strings.Contains(name, ":") {
		return "", netip.Addr{}, errNotIP
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", netip.Addr{}, errLabels
		}
	}
	if number(labels[len(labels)-1]) {
		return "", netip.Addr{}, errNumber
	}
	return name, netip.Addr{}, nil
}

// hostByte has what is in names and addresses, and "_", which is in some names
// that are in use.
func hostByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' ||
		b == '-' || b == '_' || b == '.' || b == ':'
}

// number reports whether a label is one in any base that inet_aton(3) knows.
func number(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	for i := range len(digits) {
		if b := digits[i]; (b < '0' || b > '9') && !(hex && 'a' <= b && b <= 'f') {
			return false
		}
	}
	return true
}

// quoted shows a host that is not one, for people.
func quoted(host string) string {
	const most = 64
	if len(host) > most {
		return strconv.QuoteToASCII(host[:most]) + "..."
	}
	return strconv.QuoteToASCII(host)
}
