package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

func TestDevicesCanBeUsedButNotChanged(t *testing.T) {
	workspace, policy := usual(t)
	before, err := os.Stat("/dev/null")
	require.NoError(t, err)
	// Stdin is the host's /dev/null.
	got := once(t, workspace, policy, `for d in null zero full random urandom tty; do
	chmod 666 /dev/$d 2>&1 && echo $d was changed
	touch -d @0 /dev/$d 2>&1 && echo $d was touched
done 2>&1 | grep was
chmod 666 /proc/self/fd/0 2>/dev/null && echo stdin was changed
echo x >/dev/null && echo written; echo x 2>/dev/null >/dev/full || echo full; head -c 3 /dev/zero /dev/random /dev/urandom -q | wc -c`)
	assert.Equal(t, "written\nfull\n9", got)
	now, err := os.Stat("/dev/null")
	require.NoError(t, err)
	assert.Equal(t, before.Mode(), now.Mode())
}

// Root reaches bwrap by the /proc of its process, past all that is mounted inside.
func TestBwrapIsReadOnlyToRootInside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: bwrap is not ours to change")
	}
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	conn, err := where.Start(testenv.Context(t), transport.Spec{Path: "/bin/sleep", Argv: []string{"sleep", "600"}, Dir: workspace, Stdin: null})
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(fmt.Sprintf("/proc/%d/exe", conn.(transport.Enclosed).Init()), &fs))
	assert.NotZero(t, fs.Flags&unix.ST_RDONLY)
}

// The devices are made read-only in a mount namespace. It must be a new one for each
// start, and the program must not stay there.
func TestWhatTheHostMountsLaterIsSeen(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	first, err := shell.Start(t.Context(), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }() // It keeps the thread by which the next one is started.
	later := filepath.Join(workspace, "later")
	put(t, later, "", "covered")
	if err := unix.Mount("limpet-test", later, "tmpfs", 0, ""); err != nil {
		t.Skipf("mounting is not permitted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(later, unix.MNT_DETACH)) })
	put(t, later, "", "seen")
	next, err := shell.Start(t.Context(), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.NoError(t, err)
	defer func() { require.NoError(t, next.Close()) }()
	assert.Equal(t, "seen", says(t, next, "ls later"))

	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	require.NoError(t, err)
	assert.Contains(t, string(b), later)
	assert.NotContains(t, string(b), " /dev/null ", "the read-only devices are not the program's")
}
