//go:build !linux

package supervisor

import (
	"errors"
	"syscall"
)

// reapsAll says that what has left the job may still run when reap returns.
const reapsAll = false

// There are no subreapers here: what leaves the job is not seen to end.
func becomeSubreaper() {}

// reap waits for the job.
func (s *supervision) reap(pid int) {
	defer close(s.alone)
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		_, err := syscall.Wait4(pid, &status, 0, &usage)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	s.ended <- exitOf(status, usage)
}

// rssUnit is that of ru_maxrss (getrusage(2) of macOS).
const rssUnit = 1
