package proc

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Connected returns the processes that have the end of a TCP connection of this machine which leads from one address to another. There are
// none where they cannot be looked at, as those of other users, or where that end is on another machine. Gone reports that it is on this
// machine, and that nobody has it any more: what is read from the connection then was sent by somebody who has closed it.
func Connected(from, to netip.AddrPort) (pids []int, gone bool) {
	links := make(map[string]bool)
	gone = from.Addr().Unmap().IsLoopback() || from.Addr().Unmap() == to.Addr().Unmap()
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table) // Without IPv6 there is one table.
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)            // As in proc_net_tcp.rst: sl, local_address, rem_address, ..., the inode
			if len(fields) < 10 || fields[9] == "0" { // One that was closed.
				continue
			}
			local, ok := tableAddr(fields[1])
			remote, is := tableAddr(fields[2])
			if ok && is && local == unmapped(from) && remote == unmapped(to) {
				links["socket:["+fields[9]+"]"] = true
			}
		}
	}
	if len(links) == 0 {
		return nil, gone
	}
	all, _ := List() // None, as said.
	for _, st := range all {
		numbers, _ := Numbers(st.PID) // As above.
		for _, n := range numbers {
			if name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", st.PID, n)); err == nil && links[name] {
				pids = append(pids, st.PID)
				break
			}
		}
	}
	return pids, false
}

// unmapped is an address as a table has it once that is read.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// tableAddr reads an address of a table: words of 32 bits, each in the machine's order, and the port.
func tableAddr(text string) (a netip.AddrPort, ok bool) {
	words, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(words)
	n, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil || len(b)%4 != 0 {
		return a, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
