package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns how long the machine has run, suspended time included; 0 if that cannot be told.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
