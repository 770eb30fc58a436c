package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// longestPath is sun_path without the NUL.
const longestPath = 107

// shortened names the directory by a descriptor of it.
func shortened(dir, name string, do func(path string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // Read only.
	return do(filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), name))
}

// checkPeer refuses what is another user's.
func checkPeer(c net.Conn) error {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var (
		cred   *syscall.Ucred
		failed error
	)
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("these terminals are those of user %d, and not of user %d", os.Geteuid(), cred.Uid)
	}
	return nil
}
