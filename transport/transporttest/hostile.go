package transporttest

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// hostile lists what a user may do to a shell. Then a command must still print
// "ok 1" and have status 5.
var hostile = []string{
	"set -u", "set -o pipefail", "set -f", "set -C", "set -x", "set -v", "set -n; :", "set -a", "set -b", "set -h", "set -k",
	"set -m", "set -T", "set -E", "set -P", "set -B", "set -o posix", "set -o vi", "set -H",
	"IFS=", "IFS=0123456789", "IFS=' 0/'", "unset IFS", "unset PATH", "PATH=/nosuch", "unset HOME PWD OLDPWD",
	"PWD=/forged", "PS1='$(echo evil)'; PS2='> '; PS4='$(echo evil >&2)+'; PROMPT_COMMAND='echo prompt'",
	"exec >f", "exec 2>f", "exec >f 2>&1", "exec </dev/zero", "exec <f.in", "exec 1>&- 2>&- 0<&-",
	"cd() { echo cd; return 1; }", "pwd() { echo pwd; }", "echo1() { :; }; printf() { command echo printf; return 3; }",
	"eval() { return 9; }", "builtin() { return 9; }", "command() { return 9; }", "exit() { return 9; }", "return() { :; }",
	"test() { return 9; }; [() { return 9; }", "source() { :; }; .() { :; }", "trap() { :; }", "shopt() { :; }; set() { :; }",
	"declare() { :; }; local() { :; }; export() { :; }", "builtin() { :; }; command() { :; }",
	"shopt -s expand_aliases; alias printf='echo alias' eval=false .=false builtin=false case=false", "enable -n eval",
	"trap 'echo debug >/dev/null' DEBUG", "trap 'echo err >/dev/null' ERR", "trap 'echo exit' EXIT", "trap '' INT TERM",
	"shopt -s extdebug", "shopt -s nullglob failglob", "shopt -s dotglob globstar nocaseglob", "shopt -s xpg_echo", "shopt -s lastpipe",
	"shopt -s compat31", "shopt -s execfail", "shopt -s checkjobs; sleep 1000 &", "shopt -s restricted_shell", "shopt -s syslog_history",
	"history() { :; }; set -o history", "readonly x=1; x=2", "ulimit -n 20", "umask 777", "LC_ALL=C; LANG=nosuch", "POSIXLY_CORRECT=1",
	"BASH_ENV=/nosuch; ENV=/nosuch", "TMOUT=1", "MAILCHECK=0; MAIL=/dev/null", "unset BASH_VERSION SHLVL", "FUNCNEST=1", "exec 255>&-",
	"disown -a", "set -- -e; :", "complete -F x y", "fc -l", "bind '\"a\":b'", "logout", "hash -r; enable -a >/dev/null",
}

// 18. Options, IFS, redirections of the shell itself, and functions and
// aliases with the names of builtins cannot break the protocol.
func hostileOptions(t *testing.T, s suite) {
	for _, script := range hostile {
		x := s.start(t)
		x.want("", "v=1; : >f.in")
		x.run(script)
		for range 2 {
			res := x.run("\\echo ok \"$v\"; /bin/sh -c 'exit 5'")
			assert.Equal(t, "ok 1\n", res.Stdout.String(), script)
			assert.Equal(t, 5, res.ExitCode, script)
			assert.NotContains(t, res.Stderr.String(), "limpet", "the protocol shows after %s", script)
		}
	}

	x := s.start(t)
	res := x.run("set -x; echo traced; exit 3")
	assert.Regexp(t, `^\++ echo traced\n\++ exit 3\n$`, res.Stderr.String(), "the trace is of the script alone") // How deep eval is shows in the pluses.
	assert.Equal(t, 3, res.ExitCode)
	assert.Empty(t, x.run("echo untraced").Stderr.String())

	// set -e ends the script that has set it, and no bash; it ends with the script.
	x = s.start(t)
	res = x.run("v=1; set -euo pipefail; echo one; true | false | true; echo two")
	assert.Equal(t, "one\n", res.Stdout.String())
	assert.Equal(t, 1, res.ExitCode)
	assert.Nil(t, res.Restart)
	for range 2 {
		res = x.run("false; echo $v goes on; false")
		assert.Equal(t, "1 goes on\n", res.Stdout.String())
		assert.Equal(t, 1, res.ExitCode)
		assert.Nil(t, res.Restart)
	}
	res = x.run("true | false | true")
	assert.Zero(t, res.ExitCode)
	assert.Equal(t, []int{0, 1, 0}, res.Receipt.Pipeline)
	res = x.run("if false; then :; fi; echo $v")
	assert.Equal(t, "1\n", res.Stdout.String())

	// An option that stays is each script's, and ends no bash either.
	x = s.start(t, func(o *shell.Options) { o.KeepOptions = true })
	x.run("v=1; set -euo pipefail")
	for range 2 {
		x.want("1 on\n", "[[ $- == *e* ]] && echo $v on") // Inside of $() it would be off.
		res = x.run("echo one; true | false | true; echo two")
		assert.Equal(t, "one\n", res.Stdout.String())
		assert.Equal(t, 1, res.ExitCode)
		assert.Nil(t, res.Restart)
	}

	// With no builtin left that reports, bash is replaced: that is all.
	for _, script := range []string{
		"builtin() { :; }; command() { :; }; eval() { :; }; printf() { :; }; .() { :; }", "enable -n printf",
	} {
		x = s.start(t)
		_, _ = x.do(command.Request{Script: script}) // It may be told that nobody knows how it ended.
		x.want("fine\n", "\\echo fine")
	}

	// What is redirected goes where it should.
	x = s.start(t)
	x.run("exec >f; echo in the file")
	x.want("in the file\nhere\n", "cat f; echo here")
}
