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
	for _, one := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_NPROC, l.policy.Limits.NProc}, {unix.RLIMIT_NOFILE, l.policy.Limits.NoFile}, {unix.RLIMIT_FSIZE, l.policy.Limits.FileSize},
		{unix.RLIMIT_AS, l.policy.Limits.AddressSpace}, {unix.RLIMIT_CPU, l.policy.Limits.CPU},
	} {
		if one.value == 0 {
			continue
		}
		rlimit := unix.Rlimit{Cur: one.value, Max: one.value}
		if err := unix.Prlimit(c.init.PID, one.resource, &rlimit, nil); err != nil {
			return &Error{Code: ErrLimits, Detail: fmt.Sprintf("a limit of %d cannot be set: %v", one.value, err)}
		}
	}
	if _, err := l.block.Write([]byte{0}); err != nil {
		return &Error{Code: ErrLimits, Detail: "the sandbox did not wait for its limits: " + err.Error()}
	}
	return nil
}
