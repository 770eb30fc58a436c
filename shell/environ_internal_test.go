package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
)

// Some systems have env in /usr/bin alone, as NixOS; some in /bin alone, as a container of a busybox.
func TestTheEnvironmentIsPrintedWhereverEnvIs(t *testing.T) {
	env, err := exec.LookPath("env")
	require.NoError(t, err)
	for _, names := range []script.Names{script.ViaBuiltin, script.ViaCommand, script.Plain} {
		for _, has := range []string{"usr/bin", "bin"} {
			root := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(root, has), 0o700))
			require.NoError(t, os.Symlink(env, filepath.Join(root, has, "env")))
			line := strings.ReplaceAll(printEnviron(names), "/usr/bin/env", root+"/usr/BIN/env")
			line = strings.ReplaceAll(strings.ReplaceAll(line, " /bin/env", " "+root+"/bin/env"), "BIN", "bin")
			cmd := exec.Command("bash", "-c", line)
			cmd.Env = []string{"A=b c\nd"}
			out, err := cmd.Output()
			require.NoError(t, err, "%s: %s", has, line)
			assert.Contains(t, string(out), "A=b c\nd\x00")
		}
	}
}
