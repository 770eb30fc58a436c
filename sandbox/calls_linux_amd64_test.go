package sandbox_test

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	calls = append(calls,
		call{"modify_ldt", raw(unix.SYS_MODIFY_LDT), nil}, // read nothing
		call{"ioperm", raw(unix.SYS_IOPERM, 0x80, 1, 1), nil},
		call{"iopl", raw(unix.SYS_IOPL, 3), nil},
		call{"x32", raw(1<<30 | unix.SYS_GETPID), nil},
		call{"uselib", raw(unix.SYS_USELIB, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	)
}
