package shell_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// stateRow sets something up in one bash and looks for it in the next.
type stateRow struct{ name, set, ask, want string }

var stateTable = []stateRow{
	{"variable", `x='a  b'`, `echo "$x"`, "a  b"},
	{"exported", "export X=1", "sh -c 'echo $X'", "1"},
	{"all bytes", `x=$'\x01\x7f\xff\n\t\'"\\$('; y=$x`, `[[ $x == $'\x01\x7f\xff\n\t\'"\\$(' ]] && echo same`, "same"},
	{"readonly", "readonly R=ro", "echo $R; R=2; echo no", "ro"},
	{"integer", "declare -i n=3", "n+=4; echo $n", "7"},
	{"lower case", "declare -l low=ABC", "low=XYZ; echo $low", "xyz"},
	{"array", `a=(1 "two words" '' 4); unset 'a[0]'`, `echo "${#a[@]}:${a[1]}:${!a[*]}"`, "3:two words:1 2 3"},
	{"associative array", `declare -A m=([k]=v ["a b"]="c d" ["]"]=x)`, `echo "${m[k]} ${m[a b]} ${m["]"]}"`, "v c d x"},
	{"nameref", "target=t; declare -n ref=target", "ref=changed; echo $target", "changed"},
	{"unset variable", "unset HOME", "echo ${HOME-unset}", "unset"},
	{"function", "f() { local v=$1; echo got $v; }", "f 1", "got 1"},
	{"function with an odd name", "a-b.c:d() { echo odd; }; function @x { echo at; }", "a-b.c:d; @x", "odd\nat"},
	{"exported function", "g() { echo exp; }; export -f g", "bash -c g", "exp"},
	{"function with a heredoc", "h() { cat <<E\nx $1\nE\n}", "h y", "x y"},
	{"functions named as builtins", "echo() { builtin echo E \"$@\"; }; pwd() { :; }; cd() { builtin cd \"$@\"; }", "echo x", "E x"},
	{"a function named declare", "declare() { :; }; f() { :; }; export -f f", "type -t f; bash -c 'type -t f'", "function\nfunction"},
	{"functions named alias and trap", `shopt -s expand_aliases; alias hi='echo hello'; trap 'echo usr' USR1; alias() { :; }; trap() { :; }`, "hi; kill -USR1 $$; :", "hello\nusr"},
	{"a readonly mark", "readonly LIMPET_SESSION; x=1", "echo $x", "1"},
	{"a function named set", "set() { :; }; shopt -s -o noglob", "[[ -o noglob ]] && echo on", "on"},
	{"alias", "shopt -s expand_aliases; alias hi='echo hello'", "hi", "hello"},
	{"alias that is off", "alias hi='echo hello'", "alias hi; hi 2>/dev/null; echo $?", "alias hi='echo hello'\n127"},
	{"trap", "trap 'echo usr' USR1", "kill -USR1 $$; :", "usr"},
	{"ignored signal", "trap '' USR1", "trap -p USR1", "trap -- '' SIGUSR1"},
	{"trap of several lines", "trap $'echo a\\necho b' USR1", "kill -USR1 $$; :", "a\nb"},
	{"umask", "umask 027", "umask", "0027"},
	{"shopt", "shopt -s nullglob extglob; shopt -u sourcepath", "shopt -q nullglob && shopt -q extglob && ! shopt -q sourcepath && echo ok", "ok"},
	{"set -o", "set -o errtrace; set -f; set -k", "echo $- | grep -o '[fk]' | sort | tr -d '\\n'; [[ -o errtrace ]] && echo E", "fkE"},
	{"noclobber", "set -C", "echo >f1; echo >f1; [[ -o noclobber ]] && echo C", "C"},
	{"extglob function", "shopt -s extglob\ne() { case $1 in +(a|b)) echo m;; esac; }", "e abab", "m"},
	{"IFS", "IFS=:", "x=a:b; set -- $x; echo $#", "2"},
	{"cwd", "mkdir -p sub; cd sub", "echo ${PWD##*/}; /bin/pwd | sed 's,.*/,,'", "sub\nsub"},
	{"cwd through a symlink", "mkdir -p real; ln -sfn real link; cd link", "echo ${PWD##*/}; /bin/pwd -P | sed 's,.*/,,'", "link\nreal"},
	{"OLDPWD", "mkdir -p o; cd o; cd ..", "cd - >/dev/null; echo ${PWD##*/}", "o"},
}

func TestEverythingPersistsFromCommandToCommand(t *testing.T) {
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, row.set)
			assert.Equal(t, row.want, says(t, sh, row.ask))
		})
	}
}

func TestEverythingIsRestoredAfterAnExit(t *testing.T) {
	testenv.Slow(t)
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			exit := inBash + "exit 7"
			if strings.Contains(row.set, "trap") || strings.Contains(row.set, "declare()") {
				// Traps that the same script set are among what is lost. A function of such a name
				// cannot be read, and would have the script run in a fork.
				run(t, sh, row.set)
			} else {
				exit = row.set + "\n" + exit
			}
			res := run(t, sh, exit)
			require.Equal(t, 7, res.ExitCode)
			require.NotNil(t, res.Restart)
			assert.NoError(t, res.Restart.Err)
			assert.Equal(t, row.want, says(t, sh, row.ask))
		})
	}
}

// What a script has changed that ran in a fork comes back, and nothing else.
func TestEverythingComesBackFromAScriptThatExits(t *testing.T) {
	testenv.Slow(t)
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			pid := bashPID(t, sh)
			res := run(t, sh, row.set+"\n\\exit 7")
			assert.Equal(t, 7, res.ExitCode)
			assert.Nil(t, res.Restart)
			assert.Empty(t, res.Receipt.NotKept)
			assert.Equal(t, row.want, says(t, sh, row.ask))
			assert.Equal(t, pid, bashPID(t, sh))
		})
	}
}

func TestEverythingThatWasSavedIsRestoredAfterAKillWhileIdle(t *testing.T) {
	testenv.Slow(t)
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			pid := bashPID(t, sh)
			run(t, sh, row.set)
			checkpoint(t, sh)
			killAndWait(t, pid)
			res, err := sh.Run(testenv.Context(t), "true")
			require.NotNil(t, res.Restart)
			if err == nil { // Else it was sent right before the death was seen.
				assert.Contains(t, res.Restart.Reason, "while it was idle")
			}
			assert.Contains(t, res.Restart.Reason, "signal 9")
			assert.Equal(t, row.want, says(t, sh, row.ask))
		})
	}
}

// A child that a fatal error ends runs the exit trap of its shell. It has an older state than
// bash, or another one.
func TestAChildSavesNoState(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{
		": ${z?} & wait", ": ${z?} | cat", "cat <(: ${z?})", "coproc { : ${z?}; }; wait", "x=$(: ${z?})", "( : ${z?} )",
		"for i in 1 2 3 4 5 6; do : ${z?} & done; wait", "{ x=old; : ${z?}; } | cat", "f() { : ${z?}; }; f | cat; f & wait",
		"( sleep 0.1; : ${z?} ) &", "{ sleep 0.1; : ${z?}; } &", "set -u; : $z | cat; : $z & wait; set +u", "{ set -u; : $z; } & wait",
		"for i in 1 2 3 4 5 6; do { : ${z?}; } & kill -9 $!; done", "exec 9> >(: ${z?})", "trap '{ : ${z?}; } & { x=trap; : ${z?}; } | cat' EXIT",
		"echo | { : ${z?}; }", "shopt -s lastpipe; : ${z?} | :", "y=old; : ${z?} & y=older; wait",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for _, in := range []string{inBash, ""} {
				sh := start(t, nil)
				run(t, sh, "x=1")
				_, _ = sh.Run(testenv.Context(t), in+script) // It may end bash, or fail.
				run(t, sh, "x=2; y=new; wait")
				pid := bashPID(t, sh)
				checkpoint(t, sh)
				killAndWait(t, pid)
				res, err := sh.Run(testenv.Context(t), "true")
				require.NotNil(t, res.Restart, err)
				assert.NotContains(t, res.Restart.String(), "changed")
				assert.Equal(t, "2 new", says(t, sh, "echo $x $y"), in)
			}
		})
	}
}

// killAndWait kills a bash and waits until it is gone.
func killAndWait(t *testing.T, pid int) {
	t.Helper()
	st, err := proc.Read(pid)
	require.NoError(t, err)
	require.NoError(t, proc.Signal(st.ID(), syscall.SIGKILL))
	require.Eventually(t, func() bool {
		now, err := proc.Read(pid)
		return err != nil || now.ID() != st.ID()
	}, testenv.Patience, time.Millisecond)
}

func TestADeadShellSaysWhatWasLost(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "sleep 1000 & disown; until [[ /proc/$!/exe -ef $(type -P sleep) ]]; do :; done; exec 9</dev/null")
	checkpoint(t, sh)
	res, err := sh.Run(testenv.Context(t), "y=unsaved; "+killBash)
	require.Error(t, err)
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Reason, "the command ended bash by signal 9")
	assert.Contains(t, res.Restart.Restored, "variables")
	lost := strings.Join(res.Restart.Lost, "; ")
	assert.Contains(t, lost, "what the last command changed")
	assert.Contains(t, lost, "sleep 1000")
	assert.Contains(t, lost, "open descriptors")
	assert.Equal(t, "gone", says(t, sh, "echo ${y-gone}"))
	assert.Nil(t, run(t, sh, "true").Restart, "it is told once")
}

func TestTheHookAndTheLogAreToldOfARestart(t *testing.T) {
	var told []string
	sh := start(t, &shell.Options{Hooks: shell.Hooks{Restarted: func(r *command.Restart) { told = append(told, r.Reason) }}})
	run(t, sh, inBash+"exit 5")
	assert.Equal(t, []string{"the command ended bash with status 5"}, told)
}

func TestADeletedDirectoryDoesNotBrickTheShell(t *testing.T) {
	top := t.TempDir()
	sh := start(t, &shell.Options{Dir: top})
	run(t, sh, "mkdir -p a/b; cd a/b; x=1")
	require.NoError(t, os.RemoveAll(filepath.Join(top, "a")))
	assert.Equal(t, "1", says(t, sh, "echo $x"))
	res := run(t, sh, inBash+"exit 3")
	require.NotNil(t, res.Restart)
	assert.Equal(t, top, sh.Dir())
	assert.Contains(t, strings.Join(res.Restart.Lost, "; "), filepath.Join(top, "a/b"))
	assert.NotContains(t, res.Restart.Restored, "working directory")
	assert.Equal(t, "1 "+top, says(t, sh, "echo $x $PWD"))
}

// The kernel calls it "/x/gone (deleted)", which is no path.
func TestADirectoryThatWasDeletedKeepsItsName(t *testing.T) {
	top := testenv.TempDir(t)
	sh := start(t, &shell.Options{Dir: top})
	gone := filepath.Join(top, "gone")
	run(t, sh, "mkdir gone; cd gone; rmdir ../gone")
	assert.Equal(t, gone, sh.Dir())
	for _, req := range []command.Request{{Script: "pwd", Stdin: strings.NewReader("")}, {Script: "pwd", Dir: "."}} {
		_, err := sh.Do(testenv.Context(t), req)
		dir, ok := errors.AsType[*shell.DirError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, gone, dir.Dir)
		assert.ErrorIs(t, err, os.ErrNotExist)
	}
	assert.Equal(t, "here", says(t, sh, "echo here"))

	require.NoError(t, os.Mkdir(gone, 0o755))
	for _, req := range []command.Request{{Script: "pwd -P", Stdin: strings.NewReader("")}, {Script: "pwd -P", Dir: "."}} {
		res, err := sh.Do(testenv.Context(t), req)
		require.NoError(t, err)
		assert.Equal(t, gone+"\n", res.Stdout.String())
	}

	run(t, sh, "cd "+top+"; mkdir other; cd other; rmdir ../other; PWD=made-up")
	assert.Equal(t, filepath.Join(top, "other"), sh.Dir())
	run(t, sh, "cd "+top+"; mkdir 'odd (deleted)'; cd 'odd (deleted)'")
	assert.Equal(t, filepath.Join(top, "odd (deleted)"), sh.Dir())
}

func TestTheUsersExitTrapRunsAndItsOutputBelongsToTheCommand(t *testing.T) {
	sh := start(t, nil)
	res := run(t, sh, "trap 'echo bye; echo err >&2' EXIT; v=1")
	assert.Equal(t, "bye\n", res.Stdout.String())
	assert.Equal(t, "err\n", res.Stderr.String())
	assert.Nil(t, res.Restart)
	assert.Equal(t, "1", says(t, sh, "trap -p EXIT; echo $v"), "it ends with its script")

	// A script that deals with jobs sets it for bash itself.
	run(t, sh, inBash+"trap 'echo bye; echo err >&2' EXIT")
	assert.Equal(t, "trap -- 'echo bye; echo err >&2' EXIT", says(t, sh, inBash+"trap -p EXIT"))
	res = run(t, sh, inBash+"echo out; exit 4")
	assert.Equal(t, 4, res.ExitCode)
	assert.Equal(t, "out\nbye\n", res.Stdout.String())
	assert.Contains(t, res.Stderr.String(), "err")
	require.NotNil(t, res.Restart)
	assert.Equal(t, "1", says(t, sh, "echo $v"))
	assert.Equal(t, "trap -- 'echo bye; echo err >&2' EXIT", says(t, sh, inBash+"trap -p EXIT"), "it is restored")
}

func TestNoTrapOfOursIsToBeSeen(t *testing.T) {
	sh := start(t, nil)
	assert.Empty(t, says(t, sh, "trap -p; trap"))
	assert.Empty(t, says(t, sh, "declare -F; alias; history"))
	assert.Empty(t, says(t, sh, "compgen -v | grep -i limpet | grep -vE '^LIMPET_(SESSION|DEBUG|TEST_REAPER|TEST_ALL|TEST_STAND_IN)$'"))
}

func TestResetBringsBackTheStateAfterStart(t *testing.T) {
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	require.NoError(t, os.WriteFile(rc, []byte("fromrc=1"), 0o600))
	sh := start(t, &shell.Options{Dir: dir, InitFiles: []string{rc}})
	run(t, sh, "x=1; fromrc=2; cd /; f() { :; }")
	pid, err := strconv.Atoi(says(t, sh, "sleep 1000 & echo $!"))
	require.NoError(t, err)
	require.NoError(t, sh.Reset(testenv.Context(t)))
	assert.Equal(t, dir, sh.Dir())
	res := run(t, sh, "echo ${x-unset} $fromrc $PWD; declare -F")
	assert.Equal(t, "unset 1 "+dir+"\n", res.Stdout.String())
	assert.Nil(t, res.Restart)
	left, err := proc.Read(pid)
	assert.True(t, err != nil || left.Zombie(), "%+v", left)
}

func TestResetRevivesAShellWhoseBashIsDead(t *testing.T) {
	sh := start(t, nil)
	killAndWait(t, bashPID(t, sh))
	require.NoError(t, sh.Reset(testenv.Context(t)))
	res := run(t, sh, "echo back")
	assert.Nil(t, res.Restart)
	assert.Equal(t, "back\n", res.Stdout.String())
}

func TestAShellThatCannotBeReplacedSaysSoAndTriesAgain(t *testing.T) {
	link := filepath.Join(t.TempDir(), "bash")
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(bash, link))
	sh := start(t, &shell.Options{Bash: link})
	run(t, sh, "x=1")
	require.NoError(t, os.Rename(link, link+".away"))
	res := run(t, sh, inBash+"exit 6")
	assert.Equal(t, 6, res.ExitCode)
	require.NotNil(t, res.Restart)
	require.Error(t, res.Restart.Err)
	res, err = sh.Run(testenv.Context(t), "true")
	require.Error(t, err)
	assert.Equal(t, -1, res.ExitCode)
	require.NoError(t, os.Rename(link+".away", link))
	res = run(t, sh, "echo $x")
	assert.Equal(t, "1\n", res.Stdout.String())
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Reason, "with status 6")
}

// With attributes that have bash evaluate, or refuse, what limpet's own commands leave in variables, a state is saved all the same.
func TestAStateIsSavedWhateverAttributesTheVariablesOfBashHave(t *testing.T) {
	for _, set := range []string{
		"declare -i _", "declare -u _", "declare -l _", "readonly _", "declare -n _", "declare -i IFS", "declare -l IFS", "declare -i OPTIND", "declare -u REPLY",
		"declare -i PWD", "declare -i OLDPWD", "readonly PWD", "readonly OLDPWD", "declare -n REPLY",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, "x=kept")
			_, _ = sh.Run(testenv.Context(t), set) // Bash evaluates the last argument of this already, and may fail.
			checkpoint(t, sh)
			killAndWait(t, bashPID(t, sh))
			assert.Equal(t, "kept", strings.TrimSpace(run(t, sh, `echo "$x"`).Stdout.String()))
		})
	}
}
