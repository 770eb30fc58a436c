package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Rules say which hosts can be reached. The zero Rules allow none.
//
// An entry of Allow and Deny is "example.com", that host alone; "*.example.com",
// every host below it at any depth, but not itself; or an IP address, IPv6 in
// brackets where a port follows. Each may end in a port, "example.com:8443", and
// is about that port alone then. Case and a trailing dot do not matter. Names
// that are not ASCII are written in punycode, as "xn--bcher-kva.example".
type Rules struct {
	Allow []string // an address as such, when it is listed here exactly
	Deny  []string // wins; an address also where a name resolves to it

	// Ports for entries of Allow without one. Nil is 80 and 443; empty is none.
	Ports []uint16

	// Private allows what is not public: loopback, the networks of RFC 1918,
	// link-local addresses with the metadata service of a cloud, and so on. Who
	// decides what an allowed name resolves to then decides what is reached.
	Private bool

	// SkipSNI has nobody look into tunnels to port 443. Otherwise they carry TLS
	// or nothing, to a server name that is allowed on that port or to none.
	SkipSNI bool
}

var defaultPorts = []uint16{80, 443}

// Validate returns an error that names the first entry that is wrong, and the
// remedy. It begins with the field, as a sandbox's policy has it: "Net.Allow".
func (r Rules) Validate() error {
	_, err := r.compile()
	return err
}

// Narrower returns an error that names the first thing that r allows and its
// parent may not. Each must hold:
//   - Every entry of r.Allow is covered by one of parent.Allow: the same host, or
//     a wildcard above it; and the same port, or the parent's entry has none
//     and parent.Ports has it.
//   - Every entry of parent.Deny is covered by one of r.Deny.
//   - r.Ports are in parent.Ports, nil being 80 and 443 for both.
//   - Private and SkipSNI are set only where the parent's are.
//
// It may refuse what several entries of the parent allow between them.
func (r Rules) Narrower(parent Rules) error {
	child, err := r.compile()
	if err != nil {
		return err
	}
	above, err := parent.compile()
	if err != nil {
		return fmt.Errorf("the parent's %w", err)
	}
	for _, q := range child.allow {
		if !slices.ContainsFunc(above.allow, func(p pattern) bool {
			return p.covers(q) && (p.port != 0 || q.port == 0 || slices.Contains(above.ports, q.port))
		}) {
			return fmt.Errorf("Net.Allow: %q is not allowed by the parent", q)
		}
	}
	for _, p := range above.deny {
		if !slices.ContainsFunc(child.deny, func(q pattern) bool { return q.covers(p) }) {
			return fmt.Errorf("Net.Deny: %q of the parent is missing", p)
		}
	}
	for _, port := range child.ports {
		if !slices.Contains(above.ports, port) {
			return fmt.Errorf("Net.Ports: %d is none of the parent's, %v", port, above.ports)
		}
	}
	if r.Private && !parent.Private {
		return errors.New("Net.Private is set, and not by the parent")
	}
	if r.SkipSNI && !parent.SkipSNI {
		return errors.New("Net.SkipSNI is set, and not by the parent")
	}
	return nil
}

// ruleset is Rules that were checked. It shares nothing with them.
type ruleset struct {
	allow, deny      []pattern
	ports            []uint16
	private, skipSNI bool
}

func (r Rules) compile() (ruleset, error) {
	set := ruleset{ports: slices.Clone(r.Ports), private: r.Private, skipSNI: r.SkipSNI}
	if r.Ports == nil {
		set.ports = defaultPorts
	}
	if slices.Contains(set.ports, 0) {
		return ruleset{}, errors.New("Net.Ports: 0 is no port; they are 1 to 65535")
	}
	for _, list := range []struct {
		field   string
		entries []string
		to      *[]pattern
	}{{"Net.Allow", r.Allow, &set.allow}, {"Net.Deny", r.Deny, &set.deny}} {
		for i, entry := range list.entries {
			if strings.TrimSpace(entry) == "" {
				return ruleset{}, fmt.Errorf("%s: entry %d is empty; remove it", list.field, i+1)
			}
			p, err := parsePattern(entry)
			if err != nil {
				return ruleset{}, fmt.Errorf("%s: %q %w", list.field, entry, err)
			}
			*list.to = append(*list.to, p)
		}
	}
	for _, p := range set.allow {
		if what := notPublic(p.addr); p.addr.IsValid() && what != "" && !r.Private {
			return ruleset{}, fmt.Errorf("Net.Allow: %q is %s; set Net.Private to allow it", p, what)
		}
	}
	return set, nil
}

// refuses says why t is not allowed; "" means that it is.
func (r ruleset) refuses(t target) string {
	if why := r.denies(t); why != "" {
		return why
	}
	listed := false
	for _, p := range r.allow {
		if !p.matches(t.host) {
			continue
		}
		if p.port == t.port || p.port == 0 && slices.Contains(r.ports, t.port) {
			return ""
		}
		listed = true
	}
	switch {
	case listed:
		return "its port is not in Net.Ports"
	case t.addr.IsValid():
		return "an address must be in Net.Allow itself"
	}
	return "it is not in Net.Allow"
}

func (r ruleset) denies(t target) string {
	for _, p := range r.deny {
		if p.matches(t.host) && (p.port == 0 || p.port == t.port) {
			return fmt.Sprintf("Net.Deny has %q", p)
		}
	}
	return ""
}

// refusesAddress says why t may not be reached at an address of its own.
func (r ruleset) refusesAddress(t target, addr netip.Addr) string {
	if what := notPublic(addr); what != "" && !r.private {
		return "it is at " + what + ", and Net.Private is not set"
	}
	addr = addr.WithZone("")
	for _, at := range []netip.Addr{addr, destination(addr)} {
		if why := r.denies(target{at.String(), at, t.port}); why != "" {
			return why
		}
	}
	return ""
}
