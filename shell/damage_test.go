package shell_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// removeRuntime deletes all that limpet has in a runtime directory.
func removeRuntime(t *testing.T, base string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(base, "limpet-*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, dir := range found {
		// Out of the way first: the shell is quick to make it anew.
		gone := filepath.Join(t.TempDir(), "gone")
		require.NoError(t, os.Rename(dir, gone))
		require.NoError(t, os.RemoveAll(gone))
	}
}

func TestARuntimeDirThatWasDeletedWhileIdleIsMadeAnew(t *testing.T) {
	base := t.TempDir()
	sh := start(t, &shell.Options{RuntimeDir: base})
	run(t, sh, "x=1")
	removeRuntime(t, base)
	res := run(t, sh, "echo $x; (exit 4)")
	assert.Equal(t, 4, res.ExitCode)
	assert.Equal(t, "1\n", res.Stdout.String())
	assert.Nil(t, res.Restart)
}

func TestARuntimeDirThatWasDeletedDuringACommandDoesNotLoseIt(t *testing.T) {
	for _, poll := range []time.Duration{0, time.Millisecond} {
		t.Run("Poll "+poll.String(), func(t *testing.T) {
			base := t.TempDir()
			sh := start(t, &shell.Options{RuntimeDir: base, Poll: poll})
			run(t, sh, "x=1")
			gate := filepath.Join(t.TempDir(), "go")
			done := begin(t, sh, testenv.Context(t), "until [[ -e "+gate+" ]]; do sleep 0.01; done; echo $x; (exit 4)")
			removeRuntime(t, base)
			testenv.Await(t, "the runtime directory to be made anew", func() bool {
				found, _ := filepath.Glob(filepath.Join(base, "limpet-*", "*", "*", "inner")) // The pattern is right.
				return len(found) > 0
			})
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			got := await(t, done)
			require.NoError(t, got.err)
			assert.Equal(t, 4, got.res.ExitCode)
			assert.Equal(t, "1\n", got.res.Stdout.String())
			assert.Nil(t, got.res.Restart)
		})
	}
}

func TestADeletedRuntimeDirAndADeadBashDoNotBrickTheShell(t *testing.T) {
	base := t.TempDir()
	sh := start(t, &shell.Options{RuntimeDir: base})
	run(t, sh, "x=1")
	checkpoint(t, sh)
	pid := bashPID(t, sh)
	removeRuntime(t, base)
	killAndWait(t, pid)
	res := run(t, sh, "echo $x")
	assert.Equal(t, "1\n", res.Stdout.String())
}

func TestASecondShellStartsAfterTheRuntimeDirWasDeleted(t *testing.T) {
	base := t.TempDir()
	start(t, &shell.Options{RuntimeDir: base})
	removeRuntime(t, base)
	second, err := shell.Start(testenv.Context(t), &shell.Options{RuntimeDir: base})
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

func TestDeletingOneDirectoryOfTheSessionDoesNotBrickTheShell(t *testing.T) {
	for _, part := range []string{"out", "status"} {
		t.Run(part, func(t *testing.T) {
			base := t.TempDir()
			sh := start(t, &shell.Options{RuntimeDir: base})
			run(t, sh, "x=1")
			found, err := filepath.Glob(filepath.Join(base, "limpet-*", "*", "*", part))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, os.RemoveAll(found[0]))
			assert.Equal(t, "1", says(t, sh, "echo $x"))
		})
	}
}

// Each row is followed by a command that must be answered as if nothing were.
func TestNothingThatAScriptDoesCutsTheLine(t *testing.T) {
	testenv.Slow(t)
	for _, test := range []struct{ name, script string }{
		{"a function named builtin", "builtin() { echo hijacked; return 9; }"},
		{"builtin and command", "builtin() { return 9; }; command() { return 8; }"},
		{"a function named eval", "eval() { return 9; }"},
		{"a function named printf", "printf() { return 9; }"},
		{"a function named cd", "cd() { return 9; }"},
		{"a function named .", "function . { return 9; }"},
		{"a function named source", "source() { return 9; }"},
		{"functions named trap, set, shopt, declare", "trap() { return 9; }; set() { return 9; }; shopt() { return 9; }; declare() { return 9; }"},
		{"a function named test", "test() { return 9; }; [() { return 9; }"},
		{"functions named true, :, return, exit", "true() { return 9; }; :() { return 9; }; return() { builtin return 9; }; exit() { builtin return 9; }"},
		{"set -e", "set -e"},
		{"set -u", "set -u"},
		{"set -eu -o pipefail", "set -euo pipefail"},
		{"set -x", "set -x"},
		{"set -v", "set -v"},
		{"set -k", "set -k"},
		{"set -n", "set -n"},
		{"set -f", "set -f"},
		{"set -a", "set -a"},
		{"set -p", "set -o privileged"},
		{"set -t", "shopt -so onecmd 2>/dev/null; :"},
		{"posix", "set -o posix"},
		{"noclobber", "set -C"},
		{"IFS", "IFS=0123456789abcdef"},
		{"exec >f", "exec >here"},
		{"exec 2>&-", "exec 2>&-"},
		{"exec <", "exec </dev/null"},
		{"exec 0<&-", "exec 0<&- 1>&- 2>&-"},
		{"PWD", "PWD=/nowhere; unset OLDPWD"},
		{"readonly PWD", "readonly PWD OLDPWD"},
		{"a DEBUG trap", "trap 'false' DEBUG"},
		{"an ERR trap", "set -E; trap 'echo err' ERR"},
		{"a RETURN trap", "set -T; trap 'false' RETURN"},
		{"extdebug", "shopt -s extdebug; trap 'true' DEBUG"},
		{"aliases", "shopt -s expand_aliases; alias printf=false eval=false .=false case=false builtin=false cd=false"},
		{"PS4 and prompts", "PS1='$ '; PS2='> '; PS4='+ '; PROMPT_COMMAND='echo prompt'"},
		{"LC_ALL", "LC_ALL=C; LANG=tr_TR.UTF-8"},
		{"history", "set -o history; set -H"},
		{"nullglob and failglob", "shopt -s nullglob failglob dotglob nocasematch"},
		{"POSIXLY_CORRECT", "POSIXLY_CORRECT=1"},
		{"jobs", "set -m"},
		{"enable -n", "enable -n eval cd test"},
		{"BASH_COMPAT", "BASH_COMPAT=4.2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			_, err := sh.Run(testenv.Context(t), "kept=1")
			require.NoError(t, err)
			_, err = sh.Run(testenv.Context(t), test.script)
			require.NoError(t, err)
			for range 2 {
				res, err := sh.Run(testenv.Context(t), `/bin/echo "out:$kept"; /bin/echo err >&2; /bin/sh -c 'exit 5' || /bin/sh -c 'exit 6'`)
				require.NoError(t, err)
				assert.Equal(t, 6, res.ExitCode)
				if test.name != "set -v" {
					assert.Contains(t, res.Stdout.String(), "out:1\n")
				}
				assert.Contains(t, res.Stderr.String(), "err\n")
			}
		})
	}
}
