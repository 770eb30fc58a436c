package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// pattern is one entry of Rules.
type pattern struct {
	host string     // as [parseHost] gives it, without the "*."
	addr netip.Addr // of an IP address
	wild bool       // for what is below host
	port uint16     // 0: any
}

// What is wrong with an entry, and the remedy; it follows the entry.
var (
	errEveryHost = errors.New(`is every host; name domains, such as "*.example.com", or choose the host's network`)
	errTopLevel  = errors.New(`is a whole top-level domain; name a domain in it, such as "*.example.com"`)
	errWildcard  = errors.New(`has a "*" in the wrong place; it stands at the start, before a dot, as in "*.example.com"`)
	errScheme    = errors.New(`has a scheme; leave it out, and give the port if it is neither 80 nor 443, as in "example.com:8443"`)
	errSlash     = errors.New(`has a "/"; list whole hosts, neither paths nor networks`)
)

func parsePattern(entry string) (pattern, error) {
	switch {
	case strings.Contains(entry, "://"):
		return pattern{}, errScheme
	case strings.Contains(entry, "/"):
		return pattern{}, errSlash
	}
	host, port := entry, uint16(0)
	if _, err := netip.ParseAddr(entry); err != nil && strings.ContainsAny(entry, ":[]") { // Else an IPv6 address, with no port.
		if host, port, err = splitAuthority(entry, 0); err != nil {
			return pattern{}, err
		}
	}
	below, wild := strings.CutPrefix(host, "*.")
	switch {
	case strings.TrimSuffix(host, ".") == "*":
		return pattern{}, errEveryHost
	case strings.Contains(below, "*"):
		return pattern{}, errWildcard
	}
	name, addr, err := parseHost(below)
	if err != nil {
		return pattern{}, err
	}
	if wild && (addr.IsValid() || !strings.Contains(name, ".")) {
		if addr.IsValid() {
			return pattern{}, errWildcard
		}
		return pattern{}, errTopLevel
	}
	return pattern{name, addr, wild, port}, nil
}

// matches compares with the host of a target. A suffix begins at a dot, so that
// "badexample.com" is not below "example.com".
func (p pattern) matches(host string) bool {
	if p.wild {
		return strings.HasSuffix(host, "."+p.host)
	}
	return host == p.host
}

// covers reports whether p is about all that q is about.
func (p pattern) covers(q pattern) bool {
	hosts := p.matches(q.host)
	switch {
	case q.wild && p.wild:
		hosts = hosts || p.host == q.host
	case q.wild:
		hosts = false
	}
	return hosts && (p.port == 0 || p.port == q.port)
}

// String is the entry that p was parsed from, but for case and such.
func (p pattern) String() string {
	host := p.host
	if p.wild {
		host = "*." + host
	}
	if p.port == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(p.port)))
}

// splitAuthority splits "host:port" and "[IPv6]:port". The host is not checked.
// Where no port is given it is the standard one; 0 is none that can be given.
func splitAuthority(s string, standard uint16) (host string, port uint16, err error) {
	host, rest := s, ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if host, rest, ok = strings.Cut(inner, "]"); !ok || !strings.Contains(host, ":") {
			return "", 0, errors.New(`has brackets that are not around an IPv6 address; write "[2001:db8::1]:443"`)
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		host, rest = s[:i], s[i:]
	}
	if rest == "" {
		return host, standard, nil
	}
	digits, ok := strings.CutPrefix(rest, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || n == 0 {
		return "", 0, fmt.Errorf("has %q where a port may be; write a colon and 1 to 65535, and brackets around an IPv6 address", rest)
	}
	return host, uint16(n), nil
}
