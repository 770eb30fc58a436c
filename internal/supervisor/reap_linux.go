package supervisor

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// reapsAll says that nothing that the job has started is left when reap returns.
const reapsAll = true

// becomeSubreaper makes this process the parent of those whose own has ended: whatever
// the job does to leave it, it stays below, and is known to have ended when it
// has (PR_SET_CHILD_SUBREAPER(2const)).
func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // Linux 3.4.

// reap waits for all children, the job among them, until there are none.
func (s *supervision) reap(pid int) {
	defer close(s.alone)
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		child, err := syscall.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // ECHILD: there is nobody left.
		case child == pid:
			exit := exitOf(status, usage)
			exit.Left = hasChildren()
			s.ended <- exit
		}
	}
}

// hasChildren reports whether there is anybody to wait for. It reaps nobody.
func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil
}

// rssUnit is that of ru_maxrss (getrusage(2)).
const rssUnit = 1 << 10
