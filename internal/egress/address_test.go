package egress_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
)

func TestANameThatIsAtAnAddressWhichIsNotPublicIsRefused(t *testing.T) {
	w := newWorld(t, allows())
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3",
		"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
		"100.64.0.1", "100.127.255.255",
		"127.0.0.1", "127.255.255.254",
		"169.254.0.1", "169.254.169.254",
		"192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "::127.0.0.1", "::8.8.8.8",
		"fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "64:ff9b:1::8.8.8.8",
		"2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::1", "2002:a9fe:a9fe::",
		"2001::1", "2001:0:808:808::1", "2001:2::1", "2001:10::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1",
		"2606:2800::1%eth0",
	} {
		w.resolve("a.ok.test", addr)
		assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 80)), addr)
		assert.Empty(t, w.take(&w.dialed), addr)

		w.resolve("a.ok.test", public4, addr)
		assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 80)), "%s, after one that is public", addr)
		assert.Empty(t, w.take(&w.dialed), addr)
	}
	for _, addr := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "128.0.0.1", "172.15.255.255", "172.32.0.1",
		"192.167.255.255", "192.169.0.1", "223.255.255.255", public6, "2001:200::1", "2a00::1", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		w.resolve("a.ok.test", addr)
		assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)), addr)
		assert.Len(t, w.take(&w.dialed), 1, addr)
	}
}

func TestWhyAnAddressIsRefusedIsToldWithoutTheAddress(t *testing.T) {
	w := newWorld(t, allows())
	w.resolve("a.ok.test", "10.11.12.13")
	answer := w.ask("CONNECT a.ok.test:443 HTTP/1.1\r\nHost: a.ok.test\r\n\r\n")
	assert.Contains(t, answer, "HTTP/1.1 403 Forbidden\r\n")
	assert.Contains(t, answer, "a.ok.test:443 is not allowed: it is at a private address, and Net.Private is not set")
	assert.NotContains(t, answer, "10.11.12.13")
	assert.Equal(t, []string{"a.ok.test 443: it is at a private address, and Net.Private is not set"}, w.take(&w.denied))
}

func TestPrivateAllowsWhatIsNotPublic(t *testing.T) {
	l := listen(t)
	_, digits, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	port, err := strconv.ParseUint(digits, 10, 16)
	require.NoError(t, err)

	rules := allows("127.0.0.1")
	rules.Private, rules.Ports = true, []uint16{uint16(port)}
	w := newWorld(t, rules, func(o *egress.Options) { o.Dial = nil })
	w.resolve("a.ok.test", "127.0.0.1")
	for _, request := range [][]byte{
		socksName("a.ok.test", uint16(port)), socksName("127.0.0.1", uint16(port)), socksAddr("127.0.0.1", uint16(port)),
	} {
		assert.EqualValues(t, granted, w.code(request))
	}
}

func TestTheAddressThatWasCheckedIsDialed(t *testing.T) {
	w := newWorld(t, allows())
	w.resolve("a.ok.test", public4, public6)
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
	assert.Equal(t, []string{public4 + ":80", "[" + public6 + "]:80"}, w.take(&w.dialed), "one after the other, as none answers")
	assert.Equal(t, []string{"a.ok.test"}, w.take(&w.looked), "once")

	w.resolve("a.ok.test", "::ffff:8.8.8.8")
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
	assert.Equal(t, []string{"8.8.8.8:80"}, w.take(&w.dialed))

	w.resolve("a.ok.test", "127.0.0.1") // It was rebound.
	assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 80)))
	assert.Empty(t, w.take(&w.dialed))
}

func TestARebindingDuringTheDialLeadsNowhereElse(t *testing.T) {
	w := newWorld(t, allows(), func(o *egress.Options) {
		dial := o.Dial
		world := o.Resolver.(*world)
		o.Dial = rebinding(dial, func() { world.resolve("a.ok.test", "127.0.0.1") })
	})
	conns := w.upstream(public4 + ":80")
	code, conn := w.socks(socksName("a.ok.test", 80))
	require.EqualValues(t, granted, code)
	send(t, conn, "hello")
	receive(t, next(t, conns), "hello")
	assert.Equal(t, []string{public4 + ":80"}, w.take(&w.dialed))
}

func TestANameThatIsNotAllowedIsNotEvenLookedUp(t *testing.T) {
	w := newWorld(t, allows())
	assert.EqualValues(t, notAllowed, w.code(socksName("evil.test", 80)))
	assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 22)))
	assert.Empty(t, w.take(&w.looked))
	assert.Equal(t, []string{"evil.test 80: it is not in Net.Allow", "a.ok.test 22: its port is not in Net.Ports"}, w.take(&w.denied))
}

func TestADeniedAddressIsRefusedInIPv6Too(t *testing.T) {
	rules := allows()
	rules.Deny = []string{"8.8.8.8"}
	w := newWorld(t, rules)
	for _, addr := range []string{"8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"} {
		w.resolve("a.ok.test", addr)
		assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 80)), addr)
	}
}
