package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// standIn is what Self returns; empty if it is this program.
var standIn string

// StandIn has Self be another executable, which can do what this program would execute itself for, and ExecutableDir be where that is. It is for
// tests, before they start anything: see testenv.StandInVar.
func StandIn(path string) { standIn = path }

// Self is this program's executable, also, where there is a /proc, when its file was replaced or removed since: the
// child looks the name up (proc_pid_exe(5)), and is this program until then.
func Self() string {
	if standIn != "" {
		return standIn
	}
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// ExecutableDir is the directory of this program's executable, with what was installed beside it; empty where that is not known.
func ExecutableDir() string {
	path := standIn
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return ""
		}
	}
	return filepath.Dir(path)
}

// CloseInherited closes the descriptors that this program has inherited, from a number on, and keeps those from
// first on from what it starts: none of its children shall keep somebody waiting for the end of a pipe.
// It is for the beginning of a program. Go opens nothing that way.
func CloseInherited(first, from int) {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // There is no telling.
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd < first {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		switch {
		case err != nil || flags&unix.FD_CLOEXEC != 0:
		case fd >= from:
			_ = syscall.Close(fd) // Nothing was written by it.
		default:
			syscall.CloseOnExec(fd)
		}
	}
}
