package proc

import "golang.org/x/sys/unix"

// What newer machines do not have: there the libraries use ppoll, pselect6 and epoll_pwait.
const (
	sysPoll      = unix.SYS_POLL
	sysSelect    = unix.SYS_SELECT
	sysEpollWait = unix.SYS_EPOLL_WAIT
)
