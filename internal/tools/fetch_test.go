package tools_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fetch runs .ci/fetch where there are only the programs that it runs itself, and fakes: scripts by name.
func fetch(t *testing.T, part string, fakes map[string]string) (out string, err error) {
	t.Helper()
	path := t.TempDir()
	for _, program := range []string{"bash", "env", "dirname", "mktemp", "rm", "timeout", "tail", "cat", "grep", "sleep"} {
		real, err := exec.LookPath(program)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(real, filepath.Join(path, program)))
	}
	for name, text := range fakes {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("#!/bin/bash\n"+text), 0o755))
	}
	cmd := exec.Command("../../.ci/fetch", part)
	cmd.Env = []string{"PATH=" + path, "LIMPET_FETCH_PAUSE=0", "TRIES=" + filepath.Join(path, "tries"), "HOME=" + path}
	b, err := cmd.CombinedOutput()
	return string(b), err
}

func TestWhatIsHereIsNotFetched(t *testing.T) {
	out, err := fetch(t, "checks", map[string]string{
		"apt-get": "echo asked for; exit 1", "shellcheck": "", "shfmt": "", "git": "", "bwrap": "",
	})
	assert.NoError(t, err)
	assert.Empty(t, out)
}

func TestARegistryThatIsAwayIsTriedThreeTimesAndNamed(t *testing.T) {
	out, err := fetch(t, "checks", map[string]string{
		"apt-get": `echo x >>"$TRIES"; cat "$TRIES"; echo "Could not resolve 'deb'" >&2; exit 100`,
		"sudo":    `exec "$@"`,
	})
	assert.Error(t, err)
	assert.Contains(t, out, "x\nx\nx\n")
	assert.NotContains(t, out, "x\nx\nx\nx\n")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	assert.Contains(t, lines[len(lines)-1], "Debian's packages does not answer. The change is not to blame")
}

func TestATryThatFailedIsFollowedByAnother(t *testing.T) {
	out, err := fetch(t, "checks", map[string]string{
		"apt-get": `echo x >>"$TRIES"; case $(cat "$TRIES") in x) echo "connection reset"; exit 100;; esac`,
		"sudo":    `exec "$@"`,
	})
	assert.NoError(t, err, out)
	assert.Empty(t, out)
}

func TestARefusalIsNotTakenForATimeOut(t *testing.T) {
	out, err := fetch(t, "checks", map[string]string{
		"apt-get": `echo "E: Unable to locate package shfmt"; exit 100`,
		"sudo":    `exec "$@"`,
	})
	assert.Error(t, err)
	assert.Contains(t, out, "Unable to locate package shfmt")
	assert.NotContains(t, out, "not to blame")
}

func TestWithoutAptGetTheMissingProgramsAreNamed(t *testing.T) {
	out, err := fetch(t, "checks", nil)
	assert.Error(t, err)
	assert.Contains(t, out, "please install: shellcheck shfmt git bubblewrap")
}

func TestAnUnknownPartIsRefused(t *testing.T) {
	out, err := fetch(t, "nothing", nil)
	assert.Error(t, err)
	assert.Contains(t, out, "there is no part nothing")
}
