package egress

import "net/netip"

// special are the addresses that are not public, from IANA's registries of
// special-purpose addresses (RFC 6890 and its updates).
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"}, // Linux takes 0.0.0.0 for 127.0.0.1.
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address of a carrier's NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"}, // 169.254.169.254 is a cloud's metadata service.
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"}, // Some networks use them as private ones.
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"}, // with the broadcast address

	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"}, // Teredo is in it, which embeds IPv4 addresses.
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
}

// Addresses that lead to the IPv4 address which is in them.
var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052; its last four bytes
	sixTo = netip.MustParsePrefix("2002::/16")    // 6to4, RFC 3056; the four bytes after it
)

// global is all that is assigned for unicast on the internet.
var global = netip.MustParsePrefix("2000::/3")

// destination is the IPv4 address that an IPv6 address leads to; any other
// address leads to itself.
func destination(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if !addr.Is6() {
		return addr
	}
	switch b := addr.As16(); {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixTo.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

// notPublic says what an address is that is not public; "" means that it is. An
// IPv6 address of which nothing is known is not.
func notPublic(addr netip.Addr) string {
	addr = destination(addr)
	if !addr.IsValid() {
		return "no address"
	}
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.what
		}
	}
	if addr.Is6() && !global.Contains(addr) { // No address with a zone is in it.
		return "a reserved address"
	}
	return ""
}
