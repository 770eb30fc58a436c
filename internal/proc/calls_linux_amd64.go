package proc

import "golang.org/x/sys/unix"

// What machines that are newer do not have: see calls_linux.go.
const (
	sysPoll      = unix.SYS_POLL
	sysSelect    = unix.SYS_SELECT
	sysEpollWait = unix.SYS_EPOLL_WAIT
)
