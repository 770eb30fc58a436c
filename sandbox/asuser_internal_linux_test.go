package sandbox

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Nothing of the program stays another user's: neither its first thread, which others
// take for the program, nor one that Go uses again.
func TestOnlyAThreadThatEndsIsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	for range 50 {
		var real, effective, thread int
		require.NoError(t, asUser(Credential{UID: 12345, GID: 12346}, func() error {
			real, effective, thread = unix.Getuid(), unix.Geteuid(), unix.Gettid()
			return nil
		}))
		assert.Equal(t, []int{12345, 0}, []int{real, effective})
		assert.NotEqual(t, os.Getpid(), thread)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	assert.Equal(t, []int{0, 0}, []int{unix.Getuid(), unix.Getgid()})
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	assert.Contains(t, string(status), "\nUid:\t0\t0\t0\t0\n")
}
