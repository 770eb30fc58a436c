package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidfdInfo is struct pidfd_info of linux/pidfd.h, as far as it is needed.
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

// From linux/pidfd.h, since Linux 6.15.
const (
	pidfdGetInfo  = 3<<30 | 64<<16 | 0xff<<8 | 11 // _IOWR(0xFF, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3
)

// exitStatus asks the kernel how a process ended that is somebody else's child.
func exitStatus(pidfd int) (unix.WaitStatus, bool) {
	if pidfd <= 0 {
		return 0, false
	}
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&pidfdInfoExit == 0 {
		return 0, false
	}
	return unix.WaitStatus(info.exitCode), true
}
