package host_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestAFileSystemThatExecutesNothingIsLeftAlone(t *testing.T) {
	testenv.Slow(t)
	needSandbox(t)
	dir := testenv.MountTmpfs(t, "size=300m", syscall.MS_NOEXEC)
	h := dial(t, "exec:"+strings.Join(append(sandboxed("--bind", dir, "/cache", "--setenv", "XDG_CACHE_HOME", "/cache"), "busybox", "sh"), " "), nil)
	assert.Equal(t, "/var/tmp/limpet-"+uid()+"/bin", exeDir(t, h))

	// So are all.
	argv := sandboxed("--setenv", "XDG_CACHE_HOME", "/cache")
	for _, to := range []string{"/cache", "/var/tmp", "/tmp", "/dev/shm"} {
		argv = append(argv, "--bind", dir, to)
	}
	err := failing(t, "exec:"+strings.Join(append(argv, "busybox", "sh"), " "), nil)
	require.ErrorIs(t, err, host.ErrNoPlace)
	for _, refused := range []string{"/cache/limpet/bin", "/var/tmp/limpet-" + uid() + "/bin", "/tmp/limpet-" + uid() + "/bin", "/dev/shm/limpet-" + uid() + "/bin"} {
		assert.ErrorContains(t, err, refused+": no program can be executed there")
	}
	assert.ErrorContains(t, err, "; have limpet in the PATH there, or set XDG_CACHE_HOME there to a directory")
}

// A disk that is full, or fills while limpet is brought, is said, and nothing is left there.
func TestADiskOverThereThatIsFull(t *testing.T) {
	testenv.Slow(t)
	needSandbox(t)
	program := filepath.Join(testenv.TempDir(t), "program")
	b := make([]byte, 12<<20)
	_, err := rand.Read(b)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, b, 0o700))
	for size, want := range map[string]error{"size=4m": host.ErrNoPlace, "size=32m": host.ErrSpoiled} {
		dir := testenv.MountTmpfs(t, size, 0)
		target := "exec:" + strings.Join(append(sandboxed("--bind", dir, "/cache", "--setenv", "XDG_CACHE_HOME", "/cache",
			"--remount-ro", "/tmp", "--remount-ro", "/var/tmp", "--remount-ro", "/dev/shm"), "busybox", "sh"), " ")
		fill := sync.OnceFunc(func() { _ = os.WriteFile(filepath.Join(dir, "full"), make([]byte, 32<<20), 0o600) }) // It fails when there is no more room.
		err := failing(t, target, &host.Options{Executable: program, Progress: func(sent, _ int64) {
			if sent > 2<<20 {
				fill()
			}
		}})
		require.ErrorIs(t, err, want)
		if want == host.ErrNoPlace {
			assert.ErrorContains(t, err, "it has room for 4 MiB, and 18 are needed")
			continue
		}
		assert.ErrorContains(t, err, "o space left on device")
		assert.ErrorContains(t, err, "; make room there")
		left, err := filepath.Glob(dir + "/limpet/bin/*")
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}
