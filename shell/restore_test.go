package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// printedWrong is a function, in quotes for eval, that bash cannot read back from what it prints of it:
// it leaves out the parenthesis before esac.
const printedWrong = `'f() { case x in (esac) :;; esac; }'`

// What each row sets is followed by what else a session may have. A bash that takes over
// has that, and not what is lost.
var unrestorable = []struct{ name, set, lost string }{
	{"a function that parses no more", `eval ` + printedWrong, "function f"},
	{"an exported function that parses no more", `eval ` + printedWrong + `; export -f f`, "function f"},
	{"two functions that parse no more", `eval ` + printedWrong + `; eval ` + strings.ReplaceAll(printedWrong, "f()", "g()"), "function f, function g"},
}

const others = "kept=1; z() { echo z; }; shopt -s expand_aliases nullglob; alias hi='echo hi'; trap 'echo usr' USR1; set -o errtrace; umask 027"

const askOthers = `echo $kept; z; hi; kill -USR1 $$; shopt -q nullglob && [[ -o errtrace ]] && umask`

const haveOthers = "1\nz\nhi\nusr\n0027"

func TestWhatCannotBeRestoredTakesNothingAlong(t *testing.T) {
	for _, row := range unrestorable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, inBash+row.set)
			run(t, sh, others)
			run(t, sh, inBash+"exit 7")
			res := run(t, sh, askOthers)
			assert.Equal(t, haveOthers, strings.TrimSpace(res.Stdout.String()))
			res = run(t, sh, inBash+"exit 8")
			require.NotNil(t, res.Restart)
			assert.Equal(t, 8, res.ExitCode)
			assert.NotContains(t, res.Restart.String(), "could not take back", "it is told once")
			assert.Equal(t, haveOthers, says(t, sh, askOthers))
		})
	}
}

func TestWhatCannotBeRestoredIsNamed(t *testing.T) {
	for _, row := range unrestorable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			assert.Subset(t, run(t, sh, "set -e; "+row.set).Receipt.NotKept, strings.Split(row.lost, ", "), "it was defined in a fork")
			run(t, sh, inBash+row.set)
			run(t, sh, others)
			state, err := sh.Checkpoint(testenv.Context(t))
			require.NoError(t, err)
			want := "what bash could not take back: " + row.lost

			res := run(t, sh, inBash+"exit 7")
			require.NotNil(t, res.Restart)
			assert.Contains(t, res.Restart.Lost, want)

			restart, err := sh.Restore(testenv.Context(t), state)
			require.NoError(t, err)
			assert.Contains(t, restart.Lost, want)

			other := start(t, &shell.Options{State: &state})
			res = run(t, other, askOthers)
			require.NotNil(t, res.Restart)
			assert.Contains(t, res.Restart.Lost, want)
			assert.Equal(t, haveOthers, strings.TrimSpace(res.Stdout.String()))
		})
	}
}

// What a variable makes bash do by itself is done before it reports on the next line.
func TestAStateByWhichBashEndsOrHangsIsRestoredWithoutTheCause(t *testing.T) {
	testenv.Slow(t)
	t.Parallel() // Some rows wait for a bash that hangs.
	for _, row := range []struct{ set, lost string }{
		{"PROMPT_COMMAND='[[ ! -e spoilt ]] || exit 3'", "variable PROMPT_COMMAND"},
		{"PS0='$([[ ! -e spoilt ]] || kill -9 $$)'", "variable PS0"},
		{"PROMPT_COMMAND='[[ ! -e spoilt ]] || sleep 1000'", "variable PROMPT_COMMAND"},
		{"PS1='$([[ ! -e spoilt ]] || sleep 1000)'", "variable PS1"},
	} {
		t.Run(row.set, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			pid := bashPID(t, sh)
			run(t, sh, row.set)
			run(t, sh, others)
			checkpoint(t, sh)
			killAndWait(t, pid)
			require.NoError(t, os.WriteFile(filepath.Join(sh.Dir(), "spoilt"), nil, 0o600))
			res := run(t, sh, askOthers)
			assert.Equal(t, haveOthers, strings.TrimSpace(res.Stdout.String()))
			require.NotNil(t, res.Restart)
			assert.Contains(t, res.Restart.Lost, "what bash could not take back: "+row.lost)
		})
	}
}

func TestFunctionsNamedBuiltinAndCommandAreRestored(t *testing.T) {
	for _, set := range []string{"builtin() { echo b; }", "builtin() { echo b; }; command() { echo c; }", "eval 'builtin() { return 9; }'"} {
		sh := start(t, nil)
		run(t, sh, set)
		run(t, sh, others)
		checkpoint(t, sh)
		run(t, sh, inBash+"exit 7")
		assert.Equal(t, "function\n"+haveOthers, says(t, sh, "type -t builtin;"+askOthers), set)
	}
}

func TestErrexitAndNounsetDoNotComeBack(t *testing.T) {
	sh := start(t, nil)
	res := run(t, sh, "set -euo pipefail; v=1; false; echo no")
	assert.Equal(t, 1, res.ExitCode)
	assert.Empty(t, res.Stdout.String())
	assert.Nil(t, res.Restart)
	res = run(t, sh, "false; echo $v $nosuch; false | true")
	assert.Equal(t, "1\n", res.Stdout.String())
	assert.Zero(t, res.ExitCode)

	// Of a script that deals with jobs bash itself ends.
	res = run(t, sh, inBash+"set -eu; false")
	assert.Equal(t, 1, res.ExitCode)
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Lost, "set -e and set -u (the new bash would end at the next failure, too)")
	res = run(t, sh, "false; echo $v $nosuch; false")
	assert.Equal(t, "1\n", res.Stdout.String())
	assert.Equal(t, 1, res.ExitCode)
	assert.Nil(t, res.Restart)
}

// A command that bash could not read never looks like one that printed nothing.
func TestABashWithoutTheBuiltinsThatReadACommandIsReplaced(t *testing.T) {
	for _, script := range []string{
		"enable -n .", "e=ena; ${e}ble -n .", "e=ena; ${e}ble -n eval", "enable -n . enable", "e=ena; ${e}ble -n . eval enable",
		"enable -n eval enable", "LC_ALL=de_DE.UTF-8; enable -n . enable", "builtin() { return 9; }; enable -n . enable",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, "kept=1")
			run(t, sh, script)
			for range 2 {
				res := run(t, sh, "echo $kept; echo ran >>count; (exit 4)")
				assert.Equal(t, 4, res.ExitCode)
				assert.Equal(t, "1\n", res.Stdout.String())
			}
			assert.Equal(t, "ran\nran", says(t, sh, "cat count"))
		})
	}
}

func TestARestartTellsOfDescriptorsOnlyIfTheyMayHaveBeenOpen(t *testing.T) {
	const lost = "open descriptors and coprocesses"
	for before, may := range map[string]bool{
		"x=1": false, "echo execute ./a >f": false, "cat <f0 <(echo)": false,
		"exec 9</dev/null": true, ": {fd}</dev/null": true, "coproc cat": true, "f() { exec 8</dev/null; }": false,
		"exec 9</dev/null; exec 9<&-": false, "set -f; exec 9</dev/null": true, "eval 'exec 9</dev/null'": true,
		"f() { exec 8</dev/null; }; f": true,
	} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			checkpoint(t, sh) // It is known what the shell has before.
			end := inBash + before + "\nexit 7"
			if strings.HasPrefix(before, "coproc") { // Else it would run in a fork.
				run(t, sh, before)
				end = inBash + "exit 7"
			}
			res := run(t, sh, end)
			require.NotNil(t, res.Restart)
			if may {
				assert.Contains(t, res.Restart.Lost, lost)
			} else {
				assert.Empty(t, res.Restart.Lost)
			}
		})
	}
	sh := start(t, nil)
	pid := bashPID(t, sh)
	run(t, sh, "f() { eval 'exec 9</dev/null'; }")
	checkpoint(t, sh)
	killAndWait(t, pid)
	assert.Empty(t, run(t, sh, "true").Restart.Lost, "nobody has called it")
	run(t, sh, "exec 9</dev/null")
	run(t, sh, "true")
	res := run(t, sh, inBash+"exit 7")
	require.NotNil(t, res.Restart)
	assert.Equal(t, []string{lost}, res.Restart.Lost, "they are seen, too")
}

// A map comes back in another order, a prompt counts on, a trap notes what runs.
func TestWhatIsRestoredIsNotToldAsMissing(t *testing.T) {
	for _, set := range []string{
		"declare -A m; for i in {1..200}; do m[key$i]=$i; done",
		`PROMPT_COMMAND='n=$((n+1))'`, `PROMPT_COMMAND='now=$EPOCHREALTIME'`, `PS1='$((n++)) '`,
		`set -T; trap 'x=$BASH_COMMAND' DEBUG`,
		"my-fn() { echo hi; }; set -o posix", "my-fn() { echo hi; }; POSIXLY_CORRECT=1",
		"a=([5]=x [1]='y z'); b=(); declare -a c; declare -x d; unset e", "x=$'\\xff\\x01'; y='declare -x z=\"1\"'",
		`trap $'echo usr\ncase x in \'y\') ;; esac; : \' EXIT\n\'' USR1`,
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, set)
			checkpoint(t, sh)
			for range 2 {
				res := run(t, sh, inBash+"v=1; exit 7")
				require.NotNil(t, res.Restart)
				assert.Empty(t, res.Restart.Lost)
				assert.Equal(t, "1", says(t, sh, "echo $v; unset v"))
			}
		})
	}
}

func TestARestartTellsOfWhatNoStateHas(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "set -o history; history -s something")
	checkpoint(t, sh)
	res := run(t, sh, inBash+"exit 7")
	require.NotNil(t, res.Restart)
	assert.Equal(t, []string{"list of the history"}, res.Restart.Lost)
}

func TestARestartTellsOfWhatThereWasAlone(t *testing.T) {
	sh := start(t, &shell.Options{Env: []string{}})
	res := run(t, sh, inBash+"exit 7")
	require.NotNil(t, res.Restart)
	assert.Empty(t, res.Restart.Lost)
	for _, kind := range []string{"functions", "aliases", "options", "traps", "umask", "limits", "completions", "positional parameters"} {
		assert.NotContains(t, res.Restart.Restored, kind)
	}
	run(t, sh, "f() { :; }; alias a=b; shopt -s nullglob; trap : USR1; umask 007; ulimit -c 0; complete -W a b; set -- x; pushd /; enable -n times")
	checkpoint(t, sh)
	res = run(t, sh, inBash+"exit 7")
	require.NotNil(t, res.Restart)
	assert.Empty(t, res.Restart.Lost)
	assert.Equal(t, []string{
		"working directory", "variables", "functions", "aliases", "options", "traps", "umask", "positional parameters",
		"stack of directories", "completions", "disabled builtins", "limits",
	}, res.Restart.Restored)
}

// Such a script has run, whatever it has made of bash.
func TestAScriptThatDisablesWhatItUsesRunsOnce(t *testing.T) {
	for _, script := range []string{
		"enable -n eval; eval true", "f() { enable -n eval; eval x; }; f", `enable -n eval; echo "bash: eval: nope" >&2; false`,
		"enable -n .; . /dev/null", `echo "bash: builtin: eval: nope" >&2; false`, `e=ena; ${e}ble -n eval; eval true`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, "x=1")
			res := run(t, sh, "echo ran >>count; "+script)
			assert.NotZero(t, res.ExitCode)
			assert.NotEmpty(t, res.Stderr.String())
			assert.Equal(t, "ran", says(t, sh, "cat count"))
		})
	}
}

func TestFunctionsThatHideTheStateDoNotWipeIt(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "x=1")
	checkpoint(t, sh)
	run(t, sh, "builtin() { :; }; command() { :; }; declare() { :; }")
	run(t, sh, inBash+"\\exit 7")
	assert.Equal(t, "1 yes", says(t, sh, "echo $x ${HOME+yes}"))
}

// Bash needs some descriptors to read its commands: a limit below that goes with the bash that
// has it, or with the script in a fork, and is told.
func TestALimitOfDescriptorsEndsNoSession(t *testing.T) {
	for n := 3; n <= 20; n++ {
		sh := start(t, nil)
		narrow := fmt.Sprintf("ulimit -S -n %d", n)
		_, err := sh.Run(testenv.Context(t), narrow) // Bash ends under the least of them.
		require.NoError(t, err, narrow)
		for range 2 {
			assert.Equal(t, "ok\n", run(t, sh, "echo ok").Stdout.String(), narrow)
		}
	}
	sh := start(t, nil)
	res := run(t, sh, "set -e; x=kept; ulimit -S -n 10")
	assert.Equal(t, []string{"limit (ulimit -n), under which bash could run no other script"}, res.Receipt.NotKept)
	assert.Equal(t, "kept\n", run(t, sh, "echo $x").Stdout.String())
}

// A script that may itself be why bash complains must not run twice, nor look as if it had run.
func TestAScriptThatStarvesBashRunsOnce(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "PROMPT_COMMAND='{ :; } >/dev/null'")
	_, err := sh.Run(testenv.Context(t), "echo ran >>count; ulimit -S -n 4; false")
	_ = err // Bash may have complained behind it.
	assert.Equal(t, "ran\n", run(t, sh, "cat count").Stdout.String())

	sh = start(t, nil)
	run(t, sh, "ulimit -S -n 4")
	res, err := sh.Run(testenv.Context(t), "ulimit -S -n 100; echo ran")
	if err == nil {
		assert.Equal(t, "ran\n", res.Stdout.String())
	}
	assert.Equal(t, "ok\n", run(t, sh, "echo ok").Stdout.String())
}
