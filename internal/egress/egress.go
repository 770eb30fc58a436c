// Package egress is the host's side of a sandbox's network: a proxy that
// connects its clients to the hosts that a policy allows, and to nothing else.
// On one port it speaks SOCKS5 (CONNECT alone, without authentication), HTTP
// CONNECT and plain HTTP; the first byte tells them apart.
//
// A client is not trusted. A name is checked for its characters, then by the
// [Rules], then resolved here; what it resolves to must be public, and is dialed
// as it was checked: a name that resolves to something else a moment later
// leads nowhere else. A tunnel to port 443 must begin with the ClientHello of
// TLS, whose server name, if it has one, is checked by the same Rules.
//
// What it does not do: it decrypts nothing, so that a host which is allowed can
// relay to any other, by an HTTP Host header within TLS, by Encrypted Client
// Hello or otherwise; of a handshake it sees the first ClientHello only. Data
// leave by the hosts that are allowed, and by the very names that are looked up
// below a wildcard. Names are looked up as this machine does it, search domains
// included. Of NAT64 it knows the well-known prefix, not one of a network's own.
// It has no list of public suffixes: "*.github.io" is a wildcard as any other.
// A public address of this machine itself is public.
package egress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Options of a Proxy. Nil and the zero value are fine.
type Options struct {
	Resolver Resolver // nil: net.DefaultResolver
	// Dial connects to an IP address and port, and to no other than it was
	// asked for. A connection without CloseWrite cannot be half closed: there a
	// tunnel ends with the first of its two directions. Nil: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Logger is told at level Info what was refused or failed, with host and
	// port and never any content. Nil: nobody is told.
	Logger *slog.Logger
	// Denied is called for what the rules refuse, before the client is told. A
	// host that is no host name comes quoted and cut. It is called by many
	// goroutines at once, holds up its client, and may not call Close.
	Denied func(host string, port uint16, why string)

	HeaderTimeout time.Duration // for a client to say what it wants, and for its ClientHello; 0: 10 s
	DialTimeout   time.Duration // to resolve a name and to connect; 0: 15 s
	IdleTimeout   time.Duration // without a byte in either direction; 0: 5 min
	MaxConns      int           // that are served at once, the others wait; 0: 256
}

// Resolver looks up addresses. It returns when the context has ended.
// [*net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// withDefaults returns a copy.
func (o *Options) withDefaults() (Options, error) {
	d := Options{}
	if o != nil {
		d = *o
	}
	if d.Resolver == nil {
		d.Resolver = net.DefaultResolver
	}
	if d.Dial == nil {
		d.Dial = new(net.Dialer).DialContext
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Denied == nil {
		d.Denied = func(string, uint16, string) {}
	}
	for _, t := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
	}{
		{"HeaderTimeout", &d.HeaderTimeout, 10 * time.Second},
		{"DialTimeout", &d.DialTimeout, 15 * time.Second},
		{"IdleTimeout", &d.IdleTimeout, 5 * time.Minute},
	} {
		if *t.value < 0 {
			return d, fmt.Errorf("egress: Options.%s is negative: %v; 0 is the default", t.field, *t.value)
		}
		if *t.value == 0 {
			*t.value = t.standard
		}
	}
	if d.MaxConns < 0 {
		return d, fmt.Errorf("egress: Options.MaxConns is negative: %d; 0 is the default", d.MaxConns)
	}
	if d.MaxConns == 0 {
		d.MaxConns = 256
	}
	return d, nil
}

// Proxy serves clients by one set of Rules. Its methods may be called by
// several goroutines at once.
type Proxy struct {
	rules ruleset
	o     Options
	slots chan struct{} // holds one for each connection that is served

	ctx  context.Context // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	open   map[*closer]struct{}
	wg     sync.WaitGroup // counts what is in open
}

// closer is a listener or a connection that Close has to close.
type closer struct{ close func() error }

// New checks the rules and the options, and copies both. It starts nothing.
func New(r Rules, opts *Options) (*Proxy, error) {
	rules, err := r.compile()
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{rules: rules, o: o, slots: make(chan struct{}, o.MaxConns), open: make(map[*closer]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p, nil
}

// acceptPause is how long Serve waits when there are no more descriptors.
const acceptPause = 50 * time.Millisecond

// Serve serves the clients of l until Close, and then returns nil; it returns
// an error when l fails. It closes l in any case. It may be called for several
// listeners; after Close the error is net.ErrClosed.
func (p *Proxy) Serve(l net.Listener) error {
	release, err := p.own(l.Close)
	if err != nil {
		return fmt.Errorf("egress: serving: %w", err)
	}
	defer release()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			p.start(conn)
		case p.ctx.Err() != nil:
			return nil
		case passes(err):
			p.o.Logger.Info("cannot accept for now", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-p.ctx.Done():
			}
		default:
			return fmt.Errorf("egress: serving: %w", err)
		}
	}
}

// passes reports whether Accept may work again later: see accept(2).
func passes(err error) bool {
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// start serves a connection when there is a slot. Until then nothing more is
// accepted by this listener.
func (p *Proxy) start(conn net.Conn) {
	release, err := p.own(conn.Close)
	if err != nil {
		return // Closed, and so is conn.
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.ctx.Done():
		release()
		return
	}
	go func() {
		defer release()
		defer func() { <-p.slots }()
		newClient(p, conn).serve()
	}()
}

// own has Close close something, and wait until it was released, which closes
// it too. It closes it at once if the Proxy is closed.
func (p *Proxy) own(closeIt func() error) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = closeIt() // Nothing was written to it.
		return nil, net.ErrClosed
	}
	c := &closer{closeIt}
	p.open[c] = struct{}{}
	p.wg.Add(1)
	return func() {
		_ = c.close() // Who wanted to know whether all arrived has asked before.
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
		p.wg.Done()
	}, nil
}

// Close closes all listeners and connections, and returns when every Serve is
// about to return and no goroutine is left. It may be called again. The error
// is nil.
func (p *Proxy) Close() error {
	p.stop()
	p.mu.Lock()
	p.closed = true
	var open []*closer
	for c := range p.open {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		_ = c.close() // It is given up.
	}
	p.wg.Wait()
	return nil
}
