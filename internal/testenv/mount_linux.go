package testenv

import (
	"errors"
	"os"
	"path/filepath"
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

// Fill writes to the file system of a directory until it is full. Free makes room again.
func Fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
}
