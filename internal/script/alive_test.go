package script_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
)

// TestNothingEndsBash has real bash as the oracle: an interactive bash goes on after a script
// whose traits do not say that it may end.
func TestNothingEndsBash(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"(exit 3)", "echo $(exit 3)", "exit 3 | true", "true | exit 3", "true | while read x; do exit 1; done", "exit & wait",
		"f() { exit; }", "f() { exit; }; (f)", "f() (exit); f", "(f() { exit; }); f", "f() { return 3; }; f", "builtin nosuch",
		"command -v exit", "'echo' exit", "cat <<'E'\nexit\nE", "eval 'echo exit'", "eval '(exit)'", "return 3",
		"exec", "exec 3>&1", "exec 3>/nosuch/x", "kill -0 $$", "kill -l", "(kill $BASHPID)", "set -- -e; false", "set +e; false", "(set -e; false)",
		"echo $((1/0))", "((1/0))", "x=abc; echo ${x:1/0}", "a[-9]=1", "echo ${!nope}", "readonly r=1; r=2", "shopt -s failglob; echo /nosuch/*x",
		"trap 'exit 3' USR1", "env exit", "[[ a -eq 1/0 ]]", "let 1/0", "echo ${x:-a} ${x+b}", "shift 9", "break", "cd /nosuch", "unset UID",
		"ulimit -n nosuch", "local x", "printf -v 'a[' x", "mapfile -u 9", "wait %9", "fg", "disown", "nosuch", "/nosuch/x", "time (exit 3)", "! (exit)",
		"(: ${x?})", "case exit in exit) echo exit;; esac", "f() { f2; }; f", "test -v 'a[1/0]'", "declare -i i=1/0", "coproc exit",
	} {
		traits := script.Read(text).Traits(nil)
		require.False(t, traits.Unreadable || traits.Exits || traits.Options || traits.Demands || traits.Unknown, "%q has %s", text, names(traits))
		cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-i")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // It has no terminal to take.
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(text+"\necho ALIVE\n")
		output, err := cmd.Output()
		assert.NoError(t, err, "%q", text)
		assert.Contains(t, string(output), "ALIVE\n", "%q", text)
	}
}
