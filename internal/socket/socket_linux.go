package socket

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

func peerOf(c net.Conn) peer {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	var (
		cred   *syscall.Ucred
		failed error
	)
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return peer{err: err}
	}
	if failed != nil {
		return peer{err: failed}
	}
	if int(cred.Uid) != os.Geteuid() {
		return peer{err: fmt.Errorf("this is for user %d, and not for user %d", os.Geteuid(), cred.Uid)}
	}
	return peer{pid: int(cred.Pid)}
}
