package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// Where nobody makes /dev/fd, as without udev and in many a chroot.
func TestStdinInTheShellNeedsNoDevFD(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: only root can mount another /dev")
	}
	path, err := transport.FindBash("")
	require.NoError(t, err)
	null := filepath.Join(testenv.TempDir(t), "null")
	require.NoError(t, os.WriteFile(null, nil, 0o600))
	hide := strings.Join([]string{
		"mount --bind /dev/null " + script.Quote(null), "mount -t tmpfs none /dev", ": >/dev/null",
		"mount --bind " + script.Quote(null) + " /dev/null", "exec " + script.Quote(path) + ` "$@"`,
	}, " && ")
	bash := filepath.Join(testenv.TempDir(t), "bash")
	require.NoError(t, os.WriteFile(bash, []byte("#!/bin/sh\nexec unshare -m sh -c "+script.Quote(hide)+` sh "$@"`+"\n"), 0o700))
	if out, err := exec.Command(bash, "-c", "[[ ! -e /dev/fd ]]").CombinedOutput(); err != nil {
		t.Skipf("mounting is not permitted: %v: %s", err, out)
	}
	sh := start(t, &shell.Options{StdinInShell: true, Bash: bash, RuntimeDir: testenv.TempDir(t)})
	pid := run(t, sh, "echo $$").Stdout.String()
	for range 3 {
		res := reading(t, sh, "read -r a; echo $a $$", "one\n")
		assert.Equal(t, "one "+pid, res.Stdout.String())
		assert.Nil(t, res.Restart)
		res = run(t, sh, "echo $a $$")
		assert.Equal(t, "one "+pid, res.Stdout.String())
		assert.Nil(t, res.Restart)
	}
}
