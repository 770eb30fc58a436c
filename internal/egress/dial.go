package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// connect is the one way out: it connects to a host if the rules allow it, and
// reports it if they do not. Errors are a [*refusal]. Call release, also after
// the connection was closed.
func (p *Proxy) connect(host string, port uint16) (t target, conn net.Conn, release func(), err error) {
	if t, err = newTarget(host, port); err != nil {
		return t, nil, nil, p.deny(quoted(host), port, "it "+err.Error())
	}
	if why := p.rules.refuses(t); why != "" {
		return t, nil, nil, p.deny(t.host, t.port, why)
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.o.DialTimeout)
	defer cancel()
	addrs, err := p.resolve(ctx, t)
	if err != nil {
		return t, nil, nil, err
	}
	if conn, err = p.dial(ctx, addrs, t.port); err != nil {
		return t, nil, nil, p.unreachable(t, "cannot be reached", err)
	}
	if release, err = p.own(conn.Close); err != nil {
		return t, nil, nil, p.unreachable(t, "cannot be reached", err)
	}
	return t, conn, release, nil
}

// resolve gives addresses of t that may be dialed. If one of them may not, none
// may: who lists a name that is at a public and at a private address did not mean
// the private one.
func (p *Proxy) resolve(ctx context.Context, t target) ([]netip.Addr, error) {
	found := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		found, err = p.o.Resolver.LookupNetIP(ctx, "ip", t.host)
		if err == nil && len(found) == 0 {
			err = errors.New("no address")
		}
		if err != nil {
			return nil, p.unreachable(t, "cannot be resolved", err)
		}
	}
	addrs := make([]netip.Addr, len(found))
	for i, addr := range found {
		addrs[i] = addr.Unmap() // A Resolver may give IPv4 in IPv6.
		if why := p.rules.refusesAddress(t, addrs[i]); why != "" {
			return nil, p.deny(t.host, t.port, why)
		}
	}
	return addrs, nil
}

// dial tries one address after the other, each for its share of the time.
func (p *Proxy) dial(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	end, _ := ctx.Deadline()
	var failed []error
	for i, addr := range addrs {
		share, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(len(addrs)-i))
		conn, err := p.o.Dial(share, "tcp", netip.AddrPortFrom(addr, port).String())
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// unreachable is for a host that is allowed. The client is not told the
// addresses that err names.
func (p *Proxy) unreachable(t target, what string, err error) *refusal {
	p.o.Logger.Info(what, "host", t.host, "port", t.port, "err", err)
	no := &refusal{http.StatusBadGateway, socksUnreachable, fmt.Sprintf("%s %s", t, what)}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		no.status, no.text = http.StatusGatewayTimeout, no.text+" in time"
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		no.code, no.text = socksRefused, no.text+": connection refused"
	}
	return no
}
