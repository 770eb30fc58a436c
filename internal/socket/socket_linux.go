package socket

import (
	"errors"
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
	cred, err := credentials(unix)
	if err != nil {
		return peer{err: err}
	}
	if int(cred.Uid) != os.Geteuid() {
		return peer{err: fmt.Errorf("this is for user %d, and not for user %d", os.Geteuid(), cred.Uid)}
	}
	return peer{pid: int(cred.Pid)}
}

// CheckServer refuses a connection to a unix socket at which neither this user listens nor root, where the system tells.
func CheckServer(c net.Conn) error {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	cred, err := credentials(unix)
	if err != nil {
		return err
	}
	if uid := int(cred.Uid); uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("user %d listens there, and neither user %d nor root", uid, os.Geteuid())
	}
	return nil
}

// PeerPID returns the number of the process that made a connection by a unix socket. That process may have ended, and the number be
// another's, unless it is known to wait for an answer.
func PeerPID(c net.Conn) (int, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	cred, err := credentials(unix)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// credentials are those of the other end when it connected (unix(7), SO_PEERCRED).
func credentials(unix *net.UnixConn) (cred *syscall.Ucred, err error) {
	raw, err := unix.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, failed
}
