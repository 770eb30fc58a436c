package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// endings are scripts that end, or bend, the shell that runs them. Each runs beside a file lib
// that says "from_lib=1; false".
var endings = []string{
	"exit 7", "exit", "trap 'echo bye $?' EXIT; w=1; false", "f() { exit 7; }; f; echo no", "if true; then exit 0; fi", "(exit 3); exit",
	"set -e; false; echo no", "set -euo pipefail; false | true; echo no", "set -e; f() { false; echo no; }; f",
	"set -u; echo $nosuch; echo no", ": ${nosuch?}; echo no", ": ${nosuch:?why}; echo no", "set -eu; echo $nosuch",
	"trap 'echo usr' USR1; kill -USR1 $$; echo on", "trap 'echo bye $?' EXIT; exit 3", "trap 'echo bye $?' EXIT; (exit 4)",
	"trap 'echo err' ERR; false; trap - ERR", "trap 'echo bye' EXIT; set -e; false",
	". ./lib; echo $? $from_lib", "source ./lib", "set -e; . ./lib; echo no", ". ./nosuch; echo $?",
	"x='exit 5'; eval \"$x\"; echo no", "x='echo $((1+1))'; eval \"$x\"", "return 3; echo on",
	"exec true", "exec sh -c 'exit 9'", "kill -9 $BASHPID", "kill -9 $$", "kill -TERM $$; echo no",
	"readonly r=1; r=2; echo on", "echo 'open", "set -o posix; . ./nosuch; echo no",
}

// bashC runs a script by "bash -c".
func bashC(t *testing.T, dir, script string) (stdout string, code int) {
	t.Helper()
	cmd := exec.CommandContext(testenv.Context(t), "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	code = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return string(out), code
}

// A script ends as bash -c does, and the session's bash stays, with its jobs and descriptors.
func TestAScriptThatEndsItsShellEndsAlone(t *testing.T) {
	for _, script := range endings {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			require.NoError(t, os.WriteFile(filepath.Join(sh.Dir(), "lib"), []byte("from_lib=1; false"), 0o600))
			stdout, code := bashC(t, sh.Dir(), script)
			pid := bashPID(t, sh)
			run(t, sh, "sleep 1000 &")
			run(t, sh, "exec 3>f; v=kept")
			job := says(t, sh, "echo $!; jobs -p")

			res := run(t, sh, script)
			assert.Equal(t, code, res.ExitCode)
			assert.Equal(t, stdout, res.Stdout.String())
			assert.Nil(t, res.Restart)

			assert.Equal(t, pid, bashPID(t, sh))
			assert.Equal(t, job, says(t, sh, "echo $!; jobs -p"))
			run(t, sh, "echo to f >&3; echo $v >&3")
			assert.Equal(t, "to f\nkept", says(t, sh, "cat f"))
			assert.Zero(t, run(t, sh, "kill %1").ExitCode)
			assert.Equal(t, "143", says(t, sh, "wait $!; echo $?"))
			assert.Equal(t, "on", says(t, sh, "false; echo $nosuch ${nosuch-on}"), "strict options end with the script")
		})
	}
}

// Jobs and descriptors cannot come back from a fork.
func TestAForkSaysWhatItCannotGiveBack(t *testing.T) {
	for _, row := range []struct{ script, lost string }{
		{"set -e; exec 3>f", "descriptors"},
		{"set -e; exec {fd}>f; x=1", "descriptors"},
		{"set -e; sleep 1000 &", "jobs"},
		{"sleep 1000 & exit 0", "jobs"},
		{"x=1; exec true", "became another program"},
		{"x=1; kill -9 $BASHPID", "was killed"},
		{"trap : EXIT; x=1; exit", "trap for EXIT"},
		{"set -e; x=1", ""},
		{"exit 3", ""},
		{"trap : EXIT; x=1", ""},
		{"set -e; sleep 0 & wait", ""},
		{"exec 3>f; sleep 1000 &", ""}, // It is safe in bash itself.
	} {
		t.Run(row.script, func(t *testing.T) {
			t.Parallel()
			res := run(t, start(t, nil), row.script)
			assert.Nil(t, res.Restart)
			if row.lost == "" {
				assert.Empty(t, res.Receipt.NotKept)
				return
			}
			assert.Len(t, res.Receipt.NotKept, 1)
			assert.Contains(t, strings.Join(res.Receipt.NotKept, "; "), row.lost)
		})
	}
}

func TestAStrictInitFileIsForEachScript(t *testing.T) {
	init := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(init, []byte("set -eu; v=1"), 0o600))
	sh := start(t, &shell.Options{InitFiles: []string{init}})
	for range 2 {
		res := run(t, sh, "echo $v; v=2; false; echo no")
		assert.Equal(t, 1, res.ExitCode)
		assert.Nil(t, res.Restart)
		res = run(t, sh, "echo $nosuch")
		assert.Equal(t, 1, res.ExitCode, "as with bash -euc")
		assert.Nil(t, res.Restart)
	}
	assert.Equal(t, "2 on", says(t, sh, "set +e; false; echo $v on"))
	res := run(t, sh, "false; echo on")
	assert.Equal(t, "on\n", res.Stdout.String(), "it is off from then on")
	assert.Nil(t, res.Restart)
	require.NoError(t, sh.Reset(testenv.Context(t)))
	assert.Equal(t, 1, run(t, sh, "false; echo no").ExitCode)
}

func TestARequestHasItsVariablesInAForkToo(t *testing.T) {
	for _, script := range []string{"set -e; ", "set -e; : $$; "} { // The second has a bash of its own.
		sh := start(t, nil)
		run(t, sh, "export KEPT=old; PLAIN=old; GONE=1; export SECRET=1")
		res, err := sh.Do(testenv.Context(t), command.Request{
			Script: script + `echo "$KEPT $PLAIN $NEW ${GONE-unset} ${SECRET-unset}"; sh -c 'echo "$KEPT $PLAIN $NEW ${SECRET-unset}"'; PLAIN=changed other=new; exit 3`,
			Env:    []string{"KEPT=1", "PLAIN=p", "NEW=$(echo no) 'q'"}, Unset: []string{"GONE", "SECRET"},
		})
		require.NoError(t, err)
		assert.Equal(t, 3, res.ExitCode)
		assert.Equal(t, "1 p $(echo no) 'q' unset unset\n1 p $(echo no) 'q' unset\n", res.Stdout.String())
		assert.Empty(t, res.Receipt.NotKept)
		assert.Equal(t, "old old unset 1 1 new", says(t, sh, `echo "$KEPT $PLAIN ${NEW-unset} $GONE $SECRET $other"`))
		assert.Equal(t, "old unset unset 1", says(t, sh, `sh -c 'echo "$KEPT ${PLAIN-unset} ${NEW-unset} $SECRET"'`))
	}
}

// Functions that a script names like what limpet itself uses come back too.
func TestAForkMayDefineFunctionsNamedAsBuiltins(t *testing.T) {
	for _, define := range []string{
		"builtin() { echo b; }", "builtin() { echo b; }; command() { echo c; }", "trap() { :; }; printf() { :; }; declare() { :; }",
		"exit() { \\builtin exit 4; }", "eval() { :; }; set() { :; }; unset() { :; }",
	} {
		t.Run(define, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			pid := bashPID(t, sh)
			res := run(t, sh, "set -e; x=new; "+define)
			assert.Zero(t, res.ExitCode)
			assert.Empty(t, res.Receipt.NotKept)
			name, _, _ := strings.Cut(define, "(")
			for range 2 {
				res = run(t, sh, "type -t "+name+"; echo $x $$; \\exit 4")
				assert.Equal(t, 4, res.ExitCode)
				assert.Contains(t, res.Stdout.String(), "function\nnew ")
			}
			assert.Nil(t, res.Restart)
			assert.Equal(t, strconv.Itoa(pid), says(t, sh, "echo $$"))
		})
	}
}

// A fresh bash cannot take everything of a state, and a fork has not all traps.
func TestAForkTakesNothingAwayThatItNeverHad(t *testing.T) {
	for _, script := range []string{"set -e; x=1", "set -e; x=1; : $$", "trap : USR2; x=1"} { // The last two have a bash of their own.
		sh := start(t, nil)
		level := says(t, sh, "echo $SHLVL")
		run(t, sh, inBash+`shopt -s extglob; eval 'f() { echo !(x); }'; shopt -u extglob; trap : RETURN USR1`)
		assert.Empty(t, run(t, sh, script).Receipt.NotKept)
		assert.Equal(t, "f\n1 "+level, says(t, sh, "declare -F f; echo $x $SHLVL"), script)
		traps := says(t, sh, inBash+"trap -p RETURN USR1")
		assert.Equal(t, "trap -- ':' RETURN\ntrap -- ':' SIGUSR1", traps, script)
	}
}
