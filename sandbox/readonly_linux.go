package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// devices are those that bwrap shows in a new /dev (bwrap(1), --dev).
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// withReadOnly runs start on this thread, with files of the host in a mount namespace
// of the thread's own in which they are read-only: for devices, which bwrap binds as it
// finds them, and for bwrap itself, which root in the sandbox reaches by /proc/PID/exe,
// past all that is mounted there. They can be read, written and executed all the same,
// but root, to whom they belong, cannot change their mode and times, nor the content of
// what is no device. Bwrap itself can make a device read-only only together with nodev,
// after which it is none.
//
// The thread must be one that is not used for anything else: from then on it has a
// root and a current directory of its own (unshare(2), CLONE_NEWNS).
func withReadOnly(files []string, start func()) (err error) {
	host, err := os.Open("/proc/self/ns/mnt") // That of the program's first thread.
	if err != nil {
		return err
	}
	defer host.Close() // Read only.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace for read-only files: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(host.Fd()), unix.CLONE_NEWNS); back != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errNoWayBack, back))
		}
	}()
	// What the host mounts comes in, nothing goes out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a mount namespace for read-only files: %w", err)
	}
	for _, path := range files {
		if err := readOnly(path); err != nil && !errors.Is(err, unix.ENOENT) { // Bwrap says what it misses.
			return fmt.Errorf("%s cannot be made read-only: %w", path, err)
		}
	}
	start()
	return nil
}

var errNoWayBack = errors.New("leaving the mount namespace of the read-only files")

// readOnlyHint says what to do about an error of withReadOnly.
func readOnlyHint(err error) string {
	switch {
	case errors.Is(err, errNoWayBack):
		return "give the user namespace that this runs in a mount namespace too (unshare --mount), or run as an ordinary user"
	case errors.Is(err, unix.ENOSPC):
		return "raise user.max_mnt_namespaces, or run as an ordinary user"
	}
	return "run as an ordinary user; root needs CAP_SYS_ADMIN, or it could change the host's devices and bwrap from inside"
}

// readOnly binds a file over itself.
func readOnly(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	// In a user namespace these may not be taken away. They are the same bits in both
	// calls.
	const kept = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|uintptr(fs.Flags)&kept, "")
}
