package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A command with Stdin runs in a sandbox beside the shell's, with what the shell
// exports. Bwrap itself, which is not confined, must not see that.
func TestWhatAShellExportsIsForTheSandboxAlone(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "outside")
	source, library := filepath.Join(workspace, "e.c"), filepath.Join(workspace, "e.so")
	require.NoError(t, os.WriteFile(source, []byte(`#include <stdio.h>
__attribute__((constructor)) void loaded(void) { FILE *f = fopen("`+outside+`", "a"); if (f) fclose(f); }
`), 0o600))
	said, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	require.NoError(t, err, string(said))

	control := exec.Command("/bin/true")
	control.Env = []string{"LD_PRELOAD=" + library}
	require.NoError(t, control.Run())
	require.FileExists(t, outside, "the control")
	require.NoError(t, os.Remove(outside))

	sh := start(t, workspace, policy)
	says(t, sh, "export LD_PRELOAD=$PWD/e.so e=exported")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat; echo $e $LD_PRELOAD", Stdin: strings.NewReader("in\n")})
	require.NoError(t, err)
	assert.Equal(t, "in\nexported "+library+"\n", res.Stdout.String())
	assert.NoFileExists(t, outside)
}
