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
		assert.Equal(t, []int{os.Getpid()}, proc.Connected(from, to), addr)
		mapped := func(a netip.AddrPort) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
		}
		assert.Equal(t, []int{os.Getpid()}, proc.Connected(mapped(from), mapped(to)), "as a listener for both versions of IP tells it")
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
		assert.Empty(t, proc.Connected(from, to))
	}
}
