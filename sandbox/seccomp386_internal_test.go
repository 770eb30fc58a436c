package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A 64-bit program makes the calls of 32-bit ones by interrupt 0x80, where the kernel
// runs these at all.
func TestSeccompOf32BitProgramsRuns(t *testing.T) {
	bwrap := bareBwrap(t)
	if nativeArch.small == nil {
		t.Skip("no 32-bit programs here")
	}
	rows := [][2]string{ // what it does, and the answer with the filter
		{"int80(20)", "ok"},                        // getpid
		{"int80(359, 2, 1)", "ok"},                 // socket: INET, STREAM
		{"int80(21)", "EPERM"},                     // mount: EFAULT
		{"int80(22)", "EPERM"},                     // umount: EFAULT
		{"int80(26, 0)", "EPERM"},                  // ptrace: PTRACE_TRACEME
		{"int80(61)", "EPERM"},                     // chroot: EFAULT
		{"int80(435)", "ENOSYS"},                   // clone3: EINVAL
		{"int80(310, 0x10000000)", "EPERM"},        // unshare: CLONE_NEWUSER
		{"int80(120, 0x10000200)", "EPERM"},        // clone, with CLONE_FS: EINVAL
		{"int80(54, 0xffffffff, 0x5412)", "EPERM"}, // ioctl: EBADF
		{"int80(359, 1, 1)", "EAFNOSUPPORT"},       // socket: UNIX
		{"int80(359, 17, 3)", "EAFNOSUPPORT"},      // PACKET
		{"int80(360, 1, 2)", "ESOCKTNOSUPPORT"},    // socketpair: UNIX, DGRAM: EFAULT
		{"int80(102, 1)", "EAFNOSUPPORT"},          // socketcall, SOCKET: EFAULT
	}
	without := answers(t, bwrap, rows, nil)
	if without[0] == "SIGSEGV" || without[0] == "ENOSYS" {
		t.Skip("no 32-bit programs here")
	}
	usual, small := WorkspaceWrite("/w"), WorkspaceWrite("/w")
	small.Proc.Allow32Bit = true
	with, killed := answers(t, bwrap, rows, &small), answers(t, bwrap, rows, &usual)
	for i, row := range rows {
		assert.Equal(t, row[1], with[i], row[0])
		assert.Equal(t, "SIGSYS", killed[i], row[0])
		assert.Equal(t, row[1] == "ok", without[i] == row[1], "without the filter %s: %s", without[i], row[0])
	}
}
