//go:build !amd64

package proc

// Calls that no machine has by these numbers: see calls_linux_amd64.go.
const (
	sysPoll      = -2
	sysSelect    = -3
	sysEpollWait = -4
)
