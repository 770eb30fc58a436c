package transporttest

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
)

// 41. What a script sets ends the script, never the session: its bash, its jobs and
// descriptors stay, and no option does. A status is never a guess: a command that did not
// run says so.
func scriptEnds(t *testing.T, s suite) {
	x := s.start(t)
	x.setState()
	x.want("", "sleep 1000 & job=$!; exec 7<<<text")
	bash := x.pid()
	for _, c := range []struct {
		script string
		status int
	}{
		{"set -euo pipefail; false; echo no", 1},
		{"set -euo pipefail; false | true; echo no", 1},
		{"set -u; echo $nosuch; echo no", 127},
		{`: "${1:?usage}"; echo no`, 127},
		{"set -e; cd /nosuch; echo no", 1},
		{"cd /nosuch || exit 3; echo no", 3},
		{"exit 7", 7},
		{"f() { exit 8; }; f; echo no", 8},
		{"eval 'exit 9'; echo no", 9},
		{"exec /bin/sh -c 'exit 10'; echo no", 10},
		{"exec /nosuch; echo no", 127},
		{"kill $BASHPID; echo no", 128 + int(syscall.SIGTERM)},
		{"set -o posix; . /nosuch; echo no", 1},
		{"set -n; echo no", 0},
		{"set -e; set -x; set -v; set -f; exit 12", 12},
	} {
		res := x.run(c.script)
		assert.Equal(t, c.status, res.ExitCode, c.script)
		assert.Empty(t, res.Stdout.String(), c.script)
		assert.Nil(t, res.Restart, c.script)
		x.want("goes on\n", "false; false | true && echo goes on$nosuch")
	}
	assert.Equal(t, bash, x.pid(), "it is the same bash")
	x.want("text\n", "read -u 7 line; echo $line")
	x.want("killed\n", "kill $job && echo killed")

	// Nothing of these has run, and each says so.
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	x.want("", "readonly fixed=1")
	for _, c := range []struct {
		ctx context.Context
		req command.Request
	}{
		{t.Context(), command.Request{Dir: "/nosuch"}},
		{t.Context(), command.Request{Env: []string{"fixed=2"}}},
		{t.Context(), command.Request{Unset: []string{"fixed"}}},
		{cancelled, command.Request{}},
	} {
		for _, end := range []string{"", "; exit 0"} {
			c.req.Script = "echo >ran; true" + end
			res, err := x.Do(c.ctx, c.req)
			require.Error(t, err, "%v", c.req)
			assert.Equal(t, command.CodeUnknown, res.ExitCode)
			assert.NoFileExists(t, x.file("sub/ran"))
		}
	}
	x.want("1\n", "echo $fixed")
}

// deadly are states of a bash with which the next one may have trouble, and what of them
// it cannot have.
var deadly = []struct{ set, lost string }{
	{set: ":"},
	{set: "x='a b'; declare -i x"},
	{set: "P=/usr/bin; declare -ix P; a=(x/ 'y z'); declare -ai a"},
	{set: "builtin() { echo b; }; command() { echo c; }"},
	{set: "alias() { echo mine; }; \\builtin alias alias='echo no'"},
	{set: "mkfifo fifo; set -o history; HISTFILE=$PWD/fifo"},
	{set: "readonly LIMPET_SESSION IFS PATH"},
	{set: "ulimit -S -n 128; umask 777; TMOUT=1"}, // Less than 86 has no room for the standard input of a session.
	{set: "PROMPT_COMMAND='sleep 0.1'; trap ': debug' DEBUG"},
	{set: "eval 'f() { case x in (esac) :;; esac; }'; g() { :; }", lost: "function f"},
}

// 42. A session is usable after every death, in bounded time. What of its state cannot be
// had back is named, once, and not tried again.
func everyDeath(t *testing.T, s suite) {
	for _, c := range deadly {
		x := s.start(t)
		x.run("v=1; " + c.set)
		for round := range 2 {
			x.saved()
			res, err := x.do(command.Request{Script: "\\builtin test x; " + kills})
			s.wasKilled(t, res, err)
			told := res.Restart
			res = x.run("\\echo ok $v")
			assert.Equal(t, "ok 1\n", res.Stdout.String(), c.set)
			assert.Zero(t, res.ExitCode, c.set)
			if told == nil { // It was started for this one.
				told = res.Restart
			}
			require.NotNil(t, told, c.set)
			require.NoError(t, told.Err, c.set)
			if c.lost != "" {
				assert.Equal(t, round == 0, strings.Contains(told.String(), c.lost), "%s: %v", c.set, told)
			} else {
				assert.NotContains(t, told.String(), "could not take back", c.set)
			}
			res = x.run("\\echo again")
			assert.Equal(t, "again\n", res.Stdout.String(), c.set)
			assert.Nil(t, res.Restart, c.set)
		}
	}
}

// 43. Descriptors, options and names that bash -c has free are free, but for a few high descriptors.
func freeNames(t *testing.T, s suite) {
	x := s.start(t)
	for _, fd := range []string{"3", "9", "10", "11", "12", "13", "62", "63", "100", "199", "255"} {
		x.want("locked\n", "exec "+fd+">lock; flock -n "+fd+" && echo locked; exec "+fd+">&-")
		x.want("data\n", "exec "+fd+"<<<data; read -u "+fd+" line; echo $line; exec "+fd+"<&-")
		x.want("more\n", "exec "+fd+">f; echo more >&"+fd+"; exec "+fd+">&-; cat f")
		if fd == "255" {
			continue // An interactive bash has its terminal there: such a script runs in a fork.
		}
		x.want("", "exec "+fd+"<<<kept")
		x.want("kept\n", "read -u "+fd+" line; echo $line; exec "+fd+"<&-")
	}
	x.want("", `for fd in {3..199} 255; do eval "exec $fd>&-"; done`)
	x.want("fine\n", "echo fine")

	// A builtin that is disabled, or hidden by a function, is the script's alone to miss.
	for _, name := range strings.Fields(x.run("compgen -b").Stdout.String()) {
		for _, hide := range []string{"enable -n " + name, "function " + name + " { return 9; }"} {
			y := s.start(t)
			y.run(hide)
			for range 2 {
				res, err := y.do(command.Request{Script: "/bin/echo ok; /bin/sh -c 'exit 5'"})
				require.NoError(t, err, hide)
				assert.Equal(t, "ok\n", res.Stdout.String(), hide)
				assert.Equal(t, 5, res.ExitCode, hide)
			}
			y.end() // There are more of them than sessions are kept on a machine.
		}
	}
}

// 44. Output through process substitution is whole when the command is back, and "&" still
// returns at once.
func wholeOutput(t *testing.T, s suite) {
	x := s.start(t)
	ways := map[string]func(context.Context, command.Request) (command.Result, error){"in the session": x.Do}
	if s.open == nil && !slices.Contains(s.traits, EndsWithBash) { // There the writers end with the one-shot's bash.
		r := oneshot.New(&oneshot.Options{Dir: x.dir, Transport: s.transport, RuntimeDir: s.runtimeDir(t)})
		defer func() { assert.NoError(t, r.Close()) }()
		ways["alone"] = r.Do
	}
	for name, do := range ways {
		for _, c := range []struct{ script, stdout, stderr string }{
			{"exec > >(tee log) 2>&1; echo a; echo b", "a\nb\n", ""},
			{"f() { echo err >&2; }; f 2> >(sed s/^/E:/ >&2)", "", "E:err\n"},
			{"set -euo pipefail; exec > >(tee log) 2>&1; echo a; false; echo no", "a\n", ""},
			{"exec > >(while read -r l; do sleep 0.05; echo \"<$l>\"; done); echo a; echo b", "<a>\n<b>\n", ""},
			{"echo a > >(sed s/^/1/ > >(sed s/^/2/))", "21a\n", ""},
			{"sleep 1000 & echo hi", "hi\n", ""},
			{"sleep 1000 & echo hi > >(cat)", "hi\n", ""},
		} {
			for range 5 {
				res, err := do(testenv.Context(t), command.Request{Script: c.script})
				require.NoError(t, err)
				assert.Equal(t, c.stdout, res.Stdout.String(), "%s: %s", name, c.script)
				assert.Equal(t, c.stderr, res.Stderr.String(), "%s: %s", name, c.script)
			}
		}
	}
}

// sessionFiles prints the session's files, but for those to which it prints.
const sessionFiles = "S=${BASH_SOURCE%/*}; [[ $S ]] && for f in $S/* $S/status/*; do [[ -f $f ]] && cat $f; done; "

// 45. What limpet says about a command cannot be imitated by what the command prints: neither
// with what limpet itself has written before, nor with what bash complains of.
func imitations(t *testing.T, s suite) {
	x := s.start(t, func(o *shell.Options) { o.OutputLimit = 1 << 20 })
	x.setState()
	bash := x.pid()
	for _, c := range []struct {
		script string
		status int
	}{
		{`echo "limpet: the command ended bash by signal 9 (killed); lost: everything"`, 0},
		{"echo 'bash: fork: retry: Resource temporarily unavailable' >&2; (exit 254)", 254},
		{"echo 'bash: fork: Cannot allocate memory' >&2; (exit 254)", 254},
		{"echo 'bash: cd: /nosuch: No such file or directory' >&2; false", 1},
		{`echo "bash: eval: line 1: unexpected EOF while looking for matching \"" >&2; (exit 2)`, 2},
		{"echo 'bash: fixed: readonly variable' >&2; (exit 1)", 1},
		{"echo 'bash: x: usage' >&2; exit 1", 1},
		// All that stands in the session's files: what it was asked for, and what it said.
		{sessionFiles + `(exit 3)`, 3},
		{sessionFiles + `exit 13`, 13},
		{"{ " + sessionFiles + "} >&2; false", 1},
		{`cat /proc/$BASHPID/cmdline /proc/$BASHPID/environ; printf '%s\n' "$BASH_COMMAND" "${BASH_SOURCE[@]}"; (exit 4)`, 4},
		{`{ set -x; } 2>&1; BASH_XTRACEFD=1; (exit 5)`, 5},
		{`trap 'printf "%s\n" "$BASH_COMMAND" >&2' DEBUG; set -T; (exit 6)`, 6},
	} {
		res := x.run(c.script)
		assert.Equal(t, c.status, res.ExitCode, c.script)
		assert.Nil(t, res.Restart, c.script)
		assert.Empty(t, res.Receipt.Leftover, c.script)
		assert.Empty(t, res.Receipt.NotKept, c.script)
		x.run("trap - DEBUG; set +T; unset BASH_XTRACEFD")
		x.wantState()
	}
	assert.Equal(t, bash, x.pid())
	if !slices.Contains(s.traits, HidesSignals) {
		x.saved()
		res, err := x.do(command.Request{Script: "echo 'no restart'; " + kills})
		s.wasKilled(t, res, err)
		require.NotNil(t, res.Restart, "the true word is said beside what was printed")
	}
}
