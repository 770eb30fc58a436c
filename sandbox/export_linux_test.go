package sandbox

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// TellsSignals says whether the kernel tells a process that a signal has ended from one
// that exited with 128+n, if it is somebody else's child: Linux does from 6.15 on.
func TellsSignals() bool {
	cmd := exec.Command("sh", "-c", "kill -9 $$")
	pidfd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &pidfd}
	if cmd.Start() != nil {
		return false
	}
	_ = cmd.Wait() // It was killed.
	status, ok := exitStatus(pidfd)
	_ = unix.Close(pidfd) // A pidfd has nothing to flush.
	return ok && status.Signaled()
}
