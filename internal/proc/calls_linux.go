//go:build !amd64

package proc

// Calls that no machine has by these numbers. Newer machines (arm64, riscv64, loong64) have none of the three: libraries use
// ppoll, pselect6 and epoll_pwait there. Older ones (386, arm, mips, ppc64, s390x) have them, by other numbers, which are not known here: a program
// that sleeps in one is not named.
const (
	sysPoll      = -2
	sysSelect    = -3
	sysEpollWait = -4
)
