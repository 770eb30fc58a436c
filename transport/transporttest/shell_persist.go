package transporttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// persistent lists what one command sets and another finds.
var persistent = []struct{ name, set, show, want string }{
	{"exported variable", "export a='x y'", "/bin/sh -c 'echo \"$a\"'", "x y\n"},
	{"plain variable", "b=$'two\\nlines'", `echo "$b"; /bin/sh -c 'echo "<$b>"'`, "two\nlines\n<>\n"},
	{"array", "c=(1 '2 3' [7]=seven)", `printf '%s,' "${c[@]}" "${!c[@]}"`, "1,2 3,seven,0,1,7,"},
	{"associative array", "declare -A d=([k]=v ['a b']=w)", `echo "${d[k]}${d[a b]}"`, "vw\n"},
	{"attributes", "declare -i n=5; declare -r ro=1; declare -u up=abc", "n+=2; echo $n $up; (ro=2) 2>/dev/null || echo readonly", "7 ABC\nreadonly\n"},
	{"function", "f() { local x=$1; echo \"f $x\"; }", "f 1", "f 1\n"},
	{"alias", "shopt -s expand_aliases; alias hi='echo hi'", "hi", "hi\n"},
	{"shopt", "shopt -s nullglob extglob", "echo /nothing/*; shopt -q extglob && echo ext", "\next\n"},
	{"set option", "set -o noglob +o braceexpand", "echo * {a,b}", "* {a,b}\n"},
	{"set option of one script", "set -o pipefail -o nounset -o errexit", "false | true; echo $? $nosuch; false; echo on", "0\non\n"},
	{"umask", "umask 027", "umask", "0027\n"},
	{"trap", "trap 'echo usr1' USR1", "kill -USR1 $$", "usr1\n"},
	{"directory", "mkdir -p 'a dir/b'; cd 'a dir/b'", "echo ${PWD##*/}; cd - >/dev/null; echo ${OLDPWD##*/}", "b\nb\n"},
	{"positional parameters", "set -- 1 '2 3'", `echo "$# $2"`, "2 2 3\n"},
	{"status", "(exit 5)", "echo $?", "5\n"},
	{"job", "sleep 1000 &", "kill $! && echo killed", "killed\n"},
	{"descriptor", "exec 7<<<text", "read -u 7 line; echo $line", "text\n"},
	{"hash", "hash -p /bin/echo nosuch", "nosuch yes", "yes\n"},
	{"IFS", "IFS=:", `v=a:b; printf '<%s>' $v`, "<a><b>"},
}

// 16. Variables, arrays, functions, aliases, a venv, shopt, umask and traps
// persist.
func statePersists(t *testing.T, s suite) {
	for _, c := range persistent {
		x := s.start(t)
		x.run(c.set)
		x.want(c.want, c.show)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("not checked: a venv, since there is no python3 here")
		return
	}
	x := s.start(t)
	if x.run("python3 -m venv --without-pip venv").ExitCode != 0 {
		t.Log("not checked: a venv, since python3 cannot make one here")
		return
	}
	x.want("", ". venv/bin/activate")
	x.want(x.file("venv/bin/python3")+"\n", "type -P python3")
	x.want(x.file("venv")+"\n", "python3 -c 'import sys; print(sys.prefix)'")
	x.run("deactivate")
	assert.NotEqual(t, x.file("venv/bin/python3")+"\n", x.run("type -P python3").Stdout.String())
}

// 17. `exit 7` is status 7 at once, as of bash -c, and the state is kept: that of earlier
// commands and that of the script that exits. So is bash, with its jobs, unless the script is
// about them.
func exitKeepsState(t *testing.T, s suite) {
	replaced := 0
	for _, c := range []struct {
		script string
		status int
	}{
		{"exit 7", 7},
		{"f() { exit 8; }; f; echo no", 8},
		{"set -e; false; echo no", 1},
		{"set -u; : $nosuch; echo no", 127},
		{"exec /bin/sh -c 'exit 9'", 9},
		{"exit", 0},
		{"sleep 1000 & exit 3", 3},
		{"trap 'echo bye >&2' EXIT; exit 4", 4},
	} {
		x := s.start(t)
		x.setState()
		x.want("", "sleep 1000 &")
		pid := x.pid()
		res := x.run(c.script)
		assert.NotContains(t, res.Stdout.String(), "no", c.script)
		assert.Equal(t, c.status, res.ExitCode, c.script)
		assert.Nil(t, res.Restart, c.script)
		assert.Equal(t, pid, x.pid(), c.script)
		x.want("1\n", "jobs -r | wc -l")
		x.wantState()

		res = x.run("jobs >/dev/null; " + c.script)
		if c.status != 127 { // In an interactive bash set -u has another one.
			assert.Equal(t, c.status, res.ExitCode, c.script)
		}
		if res.Restart != nil {
			replaced++
			assert.NoError(t, res.Restart.Err, c.script)
		}
		x.wantState()
	}
	assert.Greater(t, replaced, 4, "these end bash itself")
	x := s.start(t)
	x.setState()
	assert.Equal(t, 7, x.run("own=1; g() { echo g; }; exit 7").ExitCode)
	x.want("1 g\n", "echo $own $(g)")
	x.wantState()
	for range 20 {
		assert.Equal(t, 7, x.run("exit 7").ExitCode)
	}
	x.wantState()
}

// kills kills the session's bash. A script with $$ runs in a bash of its own.
const kills = "bash -c 'kill -9 $PPID'"

// wasKilled checks what came of a command that killed its bash.
func (s suite) wasKilled(t *testing.T, res command.Result, err error) {
	t.Helper()
	if slices.Contains(s.traits, HidesSignals) {
		require.NoError(t, err)
		assert.Equal(t, 128+int(syscall.SIGKILL), res.ExitCode)
		return
	}
	var dead *shell.DeadError
	require.ErrorAs(t, err, &dead)
	assert.Equal(t, syscall.SIGKILL, dead.Signal)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
}

// 19. A killed bash is back with cwd, variables and functions, and the result
// says so.
func killedBash(t *testing.T, s suite) {
	x := s.start(t)
	x.setState()
	x.want("", "sleep 1000 &")
	res, err := x.do(command.Request{Script: "echo partial; " + kills + "; echo no"})
	s.wasKilled(t, res, err)
	assert.Equal(t, "partial\n", res.Stdout.String())
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Restored, "functions")
	if !slices.Contains(s.traits, EndsWithBash) {
		assert.Contains(t, res.Restart.String(), "job ", "the job is none of the new bash's")
	}
	x.wantState()

	for range 3 { // From outside, while it is idle.
		pid := x.pid()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		testenv.Await(t, "bash's death", func() bool { return !testenv.Alive(pid) })
		res := x.run("echo hi")
		assert.Equal(t, "hi\n", res.Stdout.String())
		require.NotNil(t, res.Restart)
		assert.Contains(t, res.Restart.Reason, "idle")
		x.wantState()
	}
}

// 19. The state is saved also while command follows command without a pause: a
// bash that is killed then has lost at most what the last moment changed.
func killedWhenBusy(t *testing.T, s suite) {
	const busy = time.Second
	for range 3 {
		x := s.start(t)
		x.setState()
		for began := time.Now(); time.Since(began) < busy; {
			x.want("", "true")
		}
		pid := x.pid()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		testenv.Await(t, "bash's death", func() bool { return !testenv.Alive(pid) })
		t.Log(x.run("true").Restart)
		x.wantState()
	}
}

// 20. A deleted working directory does not brick the session.
func deletedDir(t *testing.T, s suite) {
	x := s.start(t)
	x.want("", "v=1; mkdir -p gone/sub; cd gone/sub; rm -r ../../gone")
	for range 2 {
		res := x.run("echo $v; /bin/echo hi")
		assert.Equal(t, "1\nhi\n", res.Stdout.String())
		assert.Zero(t, res.ExitCode)
	}
	x.saved() // Else the last state may be of a moment before.
	res, err := x.do(command.Request{Script: kills})
	s.wasKilled(t, res, err)
	require.NotNil(t, res.Restart)
	x.wantDir(x.dir, x.want("1\n"+x.dir+"\n", "echo $v; pwd")) // The nearest parent that is there.
	assert.Contains(t, res.Restart.String(), filepath.Join(x.dir, "gone/sub"))
	x.want(x.dir+"\n", "pwd -P")

	// By somebody else, and made again.
	x.want("", "mkdir again; cd again")
	require.NoError(t, os.Remove(x.file("again")))
	x.want("1\n", "echo $v")
	require.NoError(t, os.Mkdir(x.file("again"), 0o700))
	s.give(t, x.file("again"))
	x.want(x.file("again")+"\n", "cd "+x.file("again")+"; pwd -P")

	_, err = x.do(command.Request{Script: "pwd", Dir: x.file("nosuch")})
	var missing *shell.DirError
	assert.ErrorAs(t, err, &missing)
	x.want("1\n", "echo $v")
}
