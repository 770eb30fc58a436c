//go:build escape

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
