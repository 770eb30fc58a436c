package proc_test

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
)

func TestWhoIsConnectedIsFound(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil && addr[0] == '[' {
			continue // There is no IPv6.
		}
		require.NoError(t, err)
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		from, to := netip.MustParseAddrPort(c.LocalAddr().String()), netip.MustParseAddrPort(l.Addr().String())
		connected := func(from, to netip.AddrPort) (pids []int) {
			pids, gone := proc.Connected(from, to)
			assert.False(t, gone)
			return pids
		}
		assert.Equal(t, []int{os.Getpid()}, connected(from, to), addr)
		mapped := func(a netip.AddrPort) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
		}
		assert.Equal(t, []int{os.Getpid()}, connected(mapped(from), mapped(to)), "as a listener for both versions of IP tells it")
		end, err := l.Accept()
		require.NoError(t, err)
		_, err = c.Write([]byte("what is read later"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		pids, gone := proc.Connected(from, to)
		assert.Empty(t, pids)
		assert.True(t, gone, "and what it has sent can still be read")
		require.NoError(t, end.Close())
		require.NoError(t, l.Close())
		pids, gone = proc.Connected(netip.MustParseAddrPort("192.0.2.1:5"), to)
		assert.Empty(t, pids)
		assert.False(t, gone, "it is another machine's")
	}
}
