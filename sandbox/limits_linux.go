package sandbox

import (
	"fmt"

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
		if err := unix.Prlimit(c.init.PID, resource, &rlimit, nil); err != nil {
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
