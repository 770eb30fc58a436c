package testenv

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// MountTmpfs mounts a tmpfs for the time of a test. Where that is not permitted there is nothing to be tested.
func MountTmpfs(t testing.TB, options string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("limpet-test", dir, "tmpfs", flags, options)
	for _, notPermitted := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS} {
		if errors.Is(err, notPermitted) {
			t.Skipf("mounting is not permitted: %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
