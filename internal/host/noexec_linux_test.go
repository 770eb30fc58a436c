package host_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestAFileSystemThatExecutesNothingIsLeftAlone(t *testing.T) {
	needSandbox(t)
	dir := testenv.MountTmpfs(t, "size=300m", syscall.MS_NOEXEC)
	h := dial(t, "exec:"+strings.Join(append(sandboxed("--bind", dir, "/cache", "--setenv", "XDG_CACHE_HOME", "/cache"), "busybox", "sh"), " "), nil)
	assert.Equal(t, "/var/tmp/limpet-"+uid()+"/bin", exeDir(t, h))
}
