package sandbox_test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/sandbox"
)

// networkProbes try to reach somebody, or to learn who is there.
var networkProbes = []probe{
	{name: "the host's loopback", setup: listens("tcp", "127.0.0.1:0"), try: reached(`exec 3<>/dev/tcp/127.0.0.1/$PORT; echo out >&3; exec 3>&-`)},
	{name: "the host's loopback, version 6", setup: listens("tcp", "[::1]:0"), try: reached(`exec 3<>/dev/tcp/::1/$PORT; echo out >&3; exec 3>&-`)},
	{name: "the host's loopback, by its other addresses", setup: listens("tcp", "0.0.0.0:0"), try: reached(`for host in 127.1.2.3 localhost 0.0.0.0; do (echo out >/dev/tcp/$host/$PORT); done`)},
	{name: "a datagram to the host", setup: hears("udp", "127.0.0.1:0"), try: reached(`echo out >/dev/udp/127.0.0.1/$PORT`)},
	{name: "a network beyond the loopback", setup: listens("tcp", "0.0.0.0:0"), try: reached(`(echo out >/dev/tcp/$ADDRESS/$PORT)`)},
	{name: "a datagram beyond the loopback", setup: hears("udp", "0.0.0.0:0"), try: reached(`(echo out >/dev/udp/$ADDRESS/$PORT)`)},
	{name: "the network's devices", script: `[[ $(grep -v -e lo: -e '|' /proc/net/dev) ]] && echo bites`},
	{name: "the network's routes", script: `(($(wc -l </proc/net/route) > 1)) && echo bites`},
	{name: "who listens", setup: listens("tcp", "127.0.0.1:0"), script: `grep -qi "$(printf ':%04x ' $PORT)" /proc/net/tcp && echo bites`},
	{name: "which Unix sockets there are", setup: listens("unix", "socket"), script: `grep -q $SOCKET /proc/net/unix && echo bites`},

	{name: "a Unix socket in the workspace", setup: listens("unix", "socket"), try: reached(`$TOOL stream $SOCKET`)},
	{name: "a Unix socket outside", setup: listens("unix", "../../outside/X0"), try: reached(`$TOOL stream $SOCKET`)},
	{name: "a Unix socket by a link", setup: listens("unix", "../../outside/X0"), try: reached(`ln -s $SOCKET s; $TOOL stream ./s`)},
	{name: "an abstract Unix socket", setup: listens("unix", "@"), try: reached(`$TOOL stream $SOCKET`)},
	{name: "a Unix datagram in the workspace", setup: hears("unixgram", "socket"), try: reached(`$TOOL datagram $SOCKET`)},
	{name: "an abstract Unix socket, with the host's network", policy: host, setup: listens("unix", "@"), try: reached(`$TOOL stream $SOCKET`)},
	{name: "a Unix datagram, with the host's network", policy: host, setup: hears("unixgram", "@"), try: reached(`$TOOL datagram $SOCKET`)},
	{name: "a Unix socket is made", script: `$TOOL call unix`},
	{name: "a Unix socket, by a number with high bits", script: `$TOOL call 'high unix'`},

	{name: "a raw socket", script: `$TOOL call raw`},
	{name: "a packet socket", script: `$TOOL call packet`},
	{name: "a virtual machine's socket", script: `$TOOL call vsock`},
	{name: "the kernel's ciphers", script: `$TOOL call alg`},
	{name: "any other family of sockets", script: `$TOOL families`},
	{name: "sockets past the filter", script: `$TOOL call io_uring_setup`},
	{name: "a device is changed", script: `$TOOL lo`},
	{name: "the network of a process", setup: victim, script: `$TOOL setns`},
	{name: "a network of its own", script: `unshare -Urn true && echo bites`},

	{name: "a device is changed, with the host's network", policy: host, script: `$TOOL lo`},
	{name: "a raw socket, with the host's network", policy: host, script: `$TOOL call raw`},
	{name: "a packet socket, with the host's network", policy: host, script: `$TOOL call packet`},
	{name: "a port that is root's, with the host's network", policy: host, script: `$TOOL bind`},

	through("past the proxy", `exec 4<>/dev/tcp/127.0.0.1/$PORT; echo out >&4; echo out >/dev/tcp/$ADDRESS/$PORT`),
	through("by the proxy to an address", connects(`127.0.0.1:$PORT`)),
	through("by the proxy to a name that is allowed, and leads to the loopback", connects(`localhost:$PORT`)),
	through("by the proxy to a name that looks like one that is allowed", connects(`localhost.:$PORT`)+connects(`LOCALHOST:$PORT`)+connects(`x.example.com@127.0.0.1:$PORT`)),
	through("by the proxy to a number", connects(`2130706433:$PORT`)+connects(`0x7f000001:$PORT`)+connects(`127.1:$PORT`)+connects(`0:$PORT`)),
	through("by the proxy to an address within an address", connects(`[::ffff:127.0.0.1]:$PORT`)+connects(`[::1]:$PORT`)),
	through("by the proxy with a request", `printf 'GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: localhost\r\n\r\n' $PORT >&3; head -c 100 <&3`),
	through("by the proxy with a request for somebody else", `printf 'GET http://localhost:%s/ HTTP/1.1\r\nHost: x.example.com\r\n\r\n' $PORT >&3; head -c 100 <&3`),
	through("by the proxy with SOCKS to an address", socks(`\1\177\0\0\1`)),
	through("by the proxy with SOCKS to a name", socks(`\3\11localhost`)),
	through("by the proxy with SOCKS to a name with a NUL", socks(`\3\026127.0.0.1\0.example.com`)),
	{name: "the program's descriptors, by the proxy", policy: allowed, setup: func(w *world) {
		door(w)
		w.config.Files = 1024
	}, try: func(w *world) bool {
		w.do(`for i in 1 2 3; do $TOOL connect 127.0.0.1:$DOOR 500 >many$i & done
			until [[ -s many1 && -s many2 && -s many3 ]]; do sleep .01; done`)
		if w.control {
			return w.contacts() == 3*500 // One descriptor for each.
		}
		return w.do(ending).Restart == "" || !w.carriesOn()
	}},
}

// allowed has a proxy, for a host that can be reached only by mistake.
func allowed(w *world, p *sandbox.Policy) {
	p.Net = sandbox.AllowDomains(w.Work, "*.example.com", "localhost:"+w.port).Net
}

// door is where the proxy is. The control goes straight to whom it would lead to.
func door(w *world) {
	listens("tcp", "127.0.0.1:0")(w)
	if w.set("DOOR", 3128); w.control {
		w.set("DOOR", w.port)
	}
}

// through tries to get to the host's loopback where there is a proxy, which is
// at descriptor 3.
func through(name, script string) probe {
	return probe{name: name, policy: allowed, setup: door, try: reached(
		`exec 3<>/dev/tcp/127.0.0.1/$DOOR; [[ $CONTROL ]] || ` + "{ " + script + "\n}")}
}

// connects asks for a tunnel.
func connects(to string) string {
	return `printf 'CONNECT %s HTTP/1.1\r\nHost: x.example.com\r\n\r\n' "` + to + `" >&3; head -n 1 <&3
		exec 3<>/dev/tcp/127.0.0.1/3128
		`
}

// socks does the same, as of RFC 1928.
func socks(address string) string {
	return `printf '\5\1\0' >&3; head -c 2 <&3; printf '\5\1\0` + address + `' >&3; printf "\\x$(printf %04x $PORT | cut -c1-2)\\x$(printf %04x $PORT | cut -c3-4)" >&3; head -c 4 <&3`
}

func host(_ *world, p *sandbox.Policy) { p.Net.Mode = sandbox.HostNet }

// reached says whether the script was heard.
func reached(script string) func(*world) bool {
	return func(w *world) bool {
		w.do(script)
		return w.contacts() > 0
	}
}

// listens opens a socket of the host's. A path is meant in the workspace; "@"
// is an abstract name.
func listens(network, address string) func(*world) {
	return func(w *world) {
		l, err := net.Listen(network, w.address(address))
		require.NoError(w, err)
		w.keep(l, l.Addr(), func(fd int) error {
			c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			if err == nil {
				_ = unix.Close(c) // That it came is enough.
			}
			return err
		})
	}
}

// hears is listens for datagrams.
func hears(network, address string) func(*world) {
	return func(w *world) {
		l, err := net.ListenPacket(network, w.address(address))
		require.NoError(w, err)
		w.keep(l, l.LocalAddr(), func(fd int) error {
			_, _, err := unix.Recvfrom(fd, make([]byte, 16), 0)
			return err
		})
	}
}

func (w *world) address(address string) string {
	switch {
	case address == "@":
		return "@" + w.mark()
	case strings.Contains(address, ":"):
		return address
	}
	return filepath.Join(w.Work, address)
}

// keep keeps a socket until the probe is through. Take takes what has come, and
// fails when that is all: the kernel has it when whoever sent it has returned.
func (w *world) keep(socket io.Closer, at net.Addr, take func(fd int) error) {
	w.undo = append(w.undo, func() { _ = socket.Close() }) // Nothing is lost.
	raw, err := socket.(syscall.Conn).SyscallConn()
	require.NoError(w, err)
	w.contacts = func() (n int) {
		require.NoError(w, raw.Control(func(fd uintptr) {
			for ; take(int(fd)) == nil; n++ { //nolint:revive // It is taken.
			}
		}))
		return n
	}
	if path := at.String(); filepath.IsAbs(path) {
		w.own(path)
	}
	w.set("SOCKET", at)
	if _, port, err := net.SplitHostPort(at.String()); err == nil {
		w.port = port
		w.set("PORT", port)
	}
	w.set("ADDRESS", ownAddress())
}

// ownAddress is one of the machine's that is not the loopback's, if it has one.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs() // None is an answer.
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "192.0.2.1" // TEST-NET-1: nobody is there.
}
