package sandbox

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// limit sets the limits of a sandbox that waits for it, and lets it go on.
func (l *launching) limit(c *conn) error {
	if l.block == nil {
		return nil
	}
	if c.cgroup != nil {
		if err := c.cgroup.add(c.init.PID); err != nil {
			return noCgroup(err)
		}
	}
	resources := map[string]int{
		"NProc": unix.RLIMIT_NPROC, "NoFile": unix.RLIMIT_NOFILE, "FileSize": unix.RLIMIT_FSIZE,
		"AddressSpace": unix.RLIMIT_AS, "CPU": unix.RLIMIT_CPU,
	}
	for _, one := range limitsOf(&l.policy) {
		resource, ok := resources[one.field]
		if !ok || *one.limit == 0 {
			continue
		}
		rlimit := unix.Rlimit{Cur: *one.limit, Max: *one.limit}
		if err := setLimit(l.policy.user(), c.init.PID, resource, &rlimit); err != nil {
			return &Error{
				Code: ErrLimits, Detail: fmt.Sprintf("Limits.%s cannot be set to %d: %v", one.field, *one.limit, err),
				Hint: "it cannot be above that of this program (ulimit -H -a)",
			}
		}
	}
	if _, err := l.block.Write([]byte{0}); err != nil {
		return &Error{Code: ErrLimits, Detail: "the sandbox did not wait for its limits: " + err.Error()}
	}
	return nil
}

// setLimit sets a limit of a process of the user's. Root can do that with
// CAP_SYS_RESOURCE, which it mostly lacks in containers; else whose real user it is
// (prlimit(2)).
func setLimit(who Credential, pid, resource int, limit *unix.Rlimit) error {
	err := unix.Prlimit(pid, resource, limit, nil)
	if err == unix.EPERM && who != ourselves() {
		return asUser(who, func() error { return unix.Prlimit(pid, resource, limit, nil) })
	}
	return err
}

// asUser calls f on a thread whose real user that is, and which then ends: the kernel
// knows users by thread. It is not the first one, by which the program is known: that
// user could signal the program as long as it lasts (kill(2)).
func asUser(who Credential, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done <- asUser(who, f) // On another one, for this one is taken.
			runtime.UnlockOSThread()
			return
		}
		const keep = ^uintptr(0) // The effective and the saved one.
		for _, become := range []struct{ call, id uintptr }{{unix.SYS_SETRESGID, uintptr(who.GID)}, {unix.SYS_SETRESUID, uintptr(who.UID)}} {
			if _, _, errno := unix.RawSyscall(become.call, become.id, keep, keep); errno != 0 {
				done <- errno
				return
			}
		}
		done <- f()
	}()
	return <-done
}
