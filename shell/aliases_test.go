package shell_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func TestAliasesAreExpandedIfSomebodyAsksForIt(t *testing.T) {
	init := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(init, []byte("alias early='echo from init'\nin_init=$(early)\n"), 0o600))
	sh := start(t, &shell.Options{Aliases: true, InitFiles: []string{init}})
	assert.Equal(t, "from init from init", says(t, sh, "echo $in_init $(early)"))
	run(t, sh, "alias hi='echo hello'")
	assert.Equal(t, "hello you", says(t, sh, "hi you"))
	assert.Equal(t, "next line", says(t, sh, "alias nl='echo next'\nnl line"))
	for _, name := range []string{"builtin", "eval", "printf", "command", "cd", "trap", "read", "return", "echo"} {
		run(t, sh, "\\alias "+name+"='false'")
	}
	assert.Equal(t, "fine", says(t, sh, "\\echo fine"))
	run(t, sh, "\\unalias -a; alias hi='echo hello'")

	run(t, sh, inBash+"exit 3")
	assert.Equal(t, "hello again", says(t, sh, "hi again"), "by the bash that took over")
	require.NoError(t, sh.Reset(testenv.Context(t)))
	assert.Equal(t, 127, run(t, sh, "hi").ExitCode)
	assert.Equal(t, "from init", says(t, sh, "early"))
	run(t, sh, "shopt -u expand_aliases")
	assert.Equal(t, 127, run(t, sh, "early").ExitCode)
	run(t, sh, inBash+"exit 3")
	assert.Equal(t, 127, run(t, sh, "early").ExitCode, "it stays as the script has set it")
}

func TestAliasesAreNotExpandedOtherwise(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "alias hi='echo hello'")
	assert.Equal(t, 127, run(t, sh, "hi").ExitCode)
	assert.Equal(t, "alias hi='echo hello'", says(t, sh, "alias"))
}

// A script that sets a trap, asks for $$ or sources a file runs in a fork that becomes a bash of its own,
// see ipc.Fork.Fresh.
func TestAliasesAreExpandedInForksAndBehindThem(t *testing.T) {
	sh := start(t, &shell.Options{Aliases: true})
	run(t, sh, "alias hi='echo hello'")
	for _, script := range []string{
		"hi you; exit 0", "set -e; hi you", "trap : USR1; hi you", ": $$; hi you; exit 0", "alias ho=hi; hi you; exit 0",
	} {
		assert.Equal(t, "hello you", says(t, sh, script), script)
		assert.Equal(t, "hello again", says(t, sh, "hi again"), "behind %s", script)
	}
	assert.Equal(t, "hello ho", says(t, sh, "ho ho"), "defined in a fork")
	run(t, sh, "f() { hi from a function; }")
	assert.Equal(t, "hello from a function", says(t, sh, "trap : USR2; f"))

	for _, name := range []string{"builtin", "eval", "printf", "command", "cd", "trap", "read", "return", "echo", "shopt", "set", "exit"} {
		run(t, sh, "\\alias "+name+"='false'")
	}
	assert.Equal(t, "fine", says(t, sh, ": $$; \\trap : USR1; \\echo fine; \\exit 0"))
	assert.Equal(t, "fine", says(t, sh, "\\echo fine"))
	run(t, sh, "\\unalias -a")
	run(t, sh, "alias hi='echo hello'; shopt -u expand_aliases; exit 0")
	assert.Equal(t, 127, run(t, sh, "trap : USR1; hi").ExitCode, "switched off by a script")
	assert.Equal(t, 127, run(t, sh, "hi").ExitCode)
}
