package proc

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone means that the process has ended; its pid may be another's now.
var ErrGone = errors.New("proc: the process is gone")

// Handle is a reference to one process that no reuse of its pid can mislead.
// Close it.
type Handle struct {
	ID ID
	fd int
}

// Open takes a pidfd for the process and then compares the start time, so that
// what is signalled later is what was seen.
func Open(id ID) (*Handle, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		if err == unix.ESRCH {
			return nil, ErrGone
		}
		return nil, fmt.Errorf("proc: pidfd of %d: %w", id.PID, err)
	}
	h := &Handle{ID: id, fd: fd}
	if st, err := Read(id.PID); err != nil || st.Start != id.Start {
		h.Close()
		return nil, ErrGone
	}
	return h, nil
}

// Signal sends sig. It returns ErrGone when the process has ended.
func (h *Handle) Signal(sig syscall.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

// Close releases the reference.
func (h *Handle) Close() { _ = unix.Close(h.fd) } // A pidfd has nothing to flush.

// Signal signals the process if it still is the one that id names.
func Signal(id ID, sig syscall.Signal) error {
	h, err := Open(id)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Signal(sig)
}

// WaitAny blocks until one of the processes has ended or the time is over. A
// pidfd becomes readable when its process ends (pidfd_open(2)).
func WaitAny(ids []ID, timeout time.Duration) {
	var fds []unix.PollFd
	for _, id := range ids {
		h, err := Open(id)
		if err != nil {
			for _, fd := range fds {
				_ = unix.Close(int(fd.Fd))
			}
			return
		}
		fds = append(fds, unix.PollFd{Fd: int32(h.fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(fds, int(timeout.Milliseconds())) // The caller looks again whatever woke us.
	for _, fd := range fds {
		_ = unix.Close(int(fd.Fd))
	}
}

// AwaitStop blocks until the process, which was sent SIGSTOP, stands still. It
// reports false if it has ended, if it hangs in the kernel (a disk), which takes
// some 60 ms to be sure of, or if it has had no processor by the end of starved.
func AwaitStop(id ID, starved time.Duration) bool {
	// In looks: whoever looks may be the one that no processor is free for. A
	// pause takes a millisecond or so where Go has nothing else to do.
	const pause, hangs = 50 * time.Microsecond, 50
	slept := 0
	for deadline := time.Now().Add(starved); ; time.Sleep(pause) {
		switch State(id) {
		case 0, 'Z', 'X':
			return false
		case 'T', 't':
			return true
		case 'R':
			if slept = 0; time.Now().After(deadline) {
				return false
			}
		default:
			if slept++; slept == hangs {
				return false
			}
		}
	}
}
