package sandbox

import (
	"fmt"
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
		set := func() error { return unix.Prlimit(c.init.PID, resource, &rlimit, nil) }
		if err := asUser(l.policy.user(), set); err != nil {
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

// asUser calls f on a thread that has become the user, whose processes only root with
// CAP_SYS_RESOURCE could limit besides (prlimit(2)). The kernel knows users by thread,
// and that one ends.
func asUser(who Credential, f func() error) error {
	if who == ourselves() {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with the goroutine.
		for _, become := range []struct{ call, id uintptr }{{unix.SYS_SETRESGID, uintptr(who.GID)}, {unix.SYS_SETRESUID, uintptr(who.UID)}} {
			if _, _, errno := unix.RawSyscall(become.call, become.id, become.id, become.id); errno != 0 {
				done <- errno
				return
			}
		}
		done <- f()
	}()
	return <-done
}
