package sandbox_test

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const minusOne = ^uintptr(0)

// A path that is not there, for calls that look at it only if they may go on.
var nowhere, _ = unix.BytePtrFromString("/nonexistent/limpet")

func path(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

// calls are made with arguments by which they do no harm where they may be made:
// most of them are wrong.
var calls = []call{
	{"clone", func() error {
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Start()
	}, nil},
	{"clone3", raw(unix.SYS_CLONE3), []syscall.Errno{unix.EINVAL}},
	{"unshare", raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), []syscall.Errno{unix.EINVAL}}, // Go has threads.
	{"setns", raw(unix.SYS_SETNS, minusOne), []syscall.Errno{unix.EBADF}},
	{"ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 1<<30), []syscall.Errno{unix.ESRCH}},
	{"process_vm_writev", raw(unix.SYS_PROCESS_VM_WRITEV, uintptr(os.Getpid())), nil},
	{"kcmp", raw(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid())), nil},
	{"keyctl", raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, minusOne-3, 1), nil}, // KEY_SPEC_USER_KEYRING
	{"add_key", func() error {
		_, err := unix.AddKey("user", "limpet", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}, nil},
	{"request_key", func() error {
		_, err := unix.RequestKey("user", "limpet-none", "", 0)
		return err
	}, []syscall.Errno{unix.ENOKEY, unix.ENOENT}},
	{"bpf", raw(unix.SYS_BPF, 1<<20), []syscall.Errno{unix.EINVAL, unix.EFAULT}},
	{"perf_event_open", func() error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		attr.Size = uint32(unsafe.Sizeof(attr))
		_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		return err
	}, nil},
	{"userfaultfd", raw(unix.SYS_USERFAULTFD, 1|unix.O_CLOEXEC), nil}, // UFFD_USER_MODE_ONLY
	{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP), []syscall.Errno{unix.EFAULT, unix.EINVAL}},
	{"fanotify_init", raw(unix.SYS_FANOTIFY_INIT, unix.FAN_REPORT_FID), nil},
	{"name_to_handle_at", func() error {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, ".", 0)
		return err
	}, nil},
	{"open_by_handle_at", raw(unix.SYS_OPEN_BY_HANDLE_AT, minusOne), []syscall.Errno{unix.EBADF, unix.EFAULT}},
	{"move_pages", raw(unix.SYS_MOVE_PAGES), nil},
	{"adjtimex", func() error {
		_, err := unix.Adjtimex(&unix.Timex{})
		return err
	}, nil},
	{"clock_adjtime", raw(unix.SYS_CLOCK_ADJTIME, 1<<20), []syscall.Errno{unix.EINVAL, unix.EFAULT}},
	{"clock_settime", func() error {
		return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Nsec: 1 << 40})
	}, []syscall.Errno{unix.EINVAL}},
	{"settimeofday", raw(unix.SYS_SETTIMEOFDAY), nil},
	{"fsconfig", raw(unix.SYS_FSCONFIG, minusOne), []syscall.Errno{unix.EINVAL, unix.EBADF}},
	{"fsopen", func() error {
		_, err := unix.Fsopen("tmpfs", 0)
		return err
	}, nil},
	{"fsmount", raw(unix.SYS_FSMOUNT, minusOne), []syscall.Errno{unix.EBADF}},
	{"fspick", raw(unix.SYS_FSPICK, minusOne, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"move_mount", raw(unix.SYS_MOVE_MOUNT, minusOne, path(nowhere), minusOne, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"mount_setattr", raw(unix.SYS_MOUNT_SETATTR, minusOne), []syscall.Errno{unix.EINVAL}},
	{"open_tree", func() error {
		_, err := unix.OpenTree(unix.AT_FDCWD, ".", 0)
		return err
	}, nil},
	{"mount", func() error { return unix.Mount("none", "/nonexistent/limpet", "tmpfs", 0, "") }, []syscall.Errno{unix.ENOENT}},
	{"umount2", func() error { return unix.Unmount("/nonexistent/limpet", 0) }, []syscall.Errno{unix.ENOENT}},
	{"pivot_root", raw(unix.SYS_PIVOT_ROOT, path(nowhere), path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"chroot", raw(unix.SYS_CHROOT, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"init_module", raw(unix.SYS_INIT_MODULE), []syscall.Errno{unix.ENOEXEC, unix.EFAULT}},
	{"finit_module", raw(unix.SYS_FINIT_MODULE, minusOne, path(nowhere)), []syscall.Errno{unix.EBADF, unix.ENOEXEC}},
	{"delete_module", raw(unix.SYS_DELETE_MODULE, path(nowhere), unix.O_NONBLOCK), []syscall.Errno{unix.ENOENT}},
	{"kexec_load", raw(unix.SYS_KEXEC_LOAD, 0, 0, 0, 1<<10), []syscall.Errno{unix.EINVAL}},
	{"kexec_file_load", raw(unix.SYS_KEXEC_FILE_LOAD, minusOne, minusOne, 0, 0, 1<<20), []syscall.Errno{unix.EINVAL}},
	{"reboot", raw(unix.SYS_REBOOT), []syscall.Errno{unix.EINVAL}}, // without its magic numbers
	{"acct", raw(unix.SYS_ACCT, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"quotactl", raw(unix.SYS_QUOTACTL, 0xff, path(nowhere)), []syscall.Errno{unix.EINVAL}},
	{"swapon", raw(unix.SYS_SWAPON, path(nowhere), 1<<30), []syscall.Errno{unix.EINVAL}},
	{"swapoff", raw(unix.SYS_SWAPOFF, path(nowhere)), []syscall.Errno{unix.ENOENT}},
	{"syslog", raw(unix.SYS_SYSLOG, 10), nil}, // SYSLOG_ACTION_SIZE_BUFFER
	{"vhangup", raw(unix.SYS_VHANGUP), nil},
	{"sethostname", func() error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name)) // What it is already.
	}, nil},
	{"setuid", raw(unix.SYS_SETUID, 1), nil}, // of this thread
	{"sched_setscheduler", func() error {
		priority := int32(1)
		_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&priority))) // SCHED_FIFO
		return orNil(errno)
	}, nil},
	{"setpriority", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }, nil},
	{"ioprio_set", raw(unix.SYS_IOPRIO_SET, 1, 0, 1<<13), nil}, // the real-time class
	{"vsock", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), nil},
	{"alg", socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), nil},
	{"packet", socket(unix.AF_PACKET, unix.SOCK_RAW, 0), nil},
	{"raw", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), nil},
	{"unix", socket(unix.AF_UNIX, unix.SOCK_STREAM, 0), nil},
	{"high unix", raw(unix.SYS_SOCKET, 1<<32|unix.AF_UNIX, unix.SOCK_STREAM), nil}, // an int has 32 bits
}

func socket(family, kind, protocol int) func() error {
	return func() error {
		_, err := unix.Socket(family, kind, protocol)
		return err
	}
}
