package shell_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is a sort of hostile command.
type kind struct {
	name string

	// make returns a script. @WORK@ in it is an empty directory, @FILES@ the one
	// below which the session has its files.
	make func(*rand.Rand) string

	// sameStatus says that in a fresh shell the script has the status that bash -c
	// has, when nobody stops it.
	sameStatus bool

	// leaves says that a later command may have another status than in a fresh shell.
	leaves bool

	// endless says that the script ends only when it is stopped.
	endless bool
}

// step is a hostile command, and when it is stopped.
type step struct {
	kind     *kind
	script   string
	after    time.Duration // 0: never
	byCaller bool          // by the context, not by Request.Timeout
}

func (s step) String() string {
	stop := ""
	if s.after > 0 {
		who := "its Timeout"
		if s.byCaller {
			who = "its context"
		}
		stop = fmt.Sprintf(", stopped by %s after %v", who, s.after)
	}
	return fmt.Sprintf("%s%s: %q", s.kind.name, stop, s.script)
}

// newStep makes a step of the kind.
func newStep(k *kind, r *rand.Rand) step {
	s := step{kind: k, script: k.make(r)}
	switch {
	case k.endless:
		s.after = time.Duration(50+r.IntN(200)) * time.Millisecond
	case r.IntN(8) == 0:
		s.after = time.Duration(1 + r.IntN(2_000_000)) // Below 2 ms: often before bash has begun.
	case r.IntN(8) == 0:
		s.after = time.Duration(1+r.IntN(50)) * time.Millisecond
	}
	s.byCaller = s.after > 0 && r.IntN(2) == 0
	return s
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// fixed makes the same script each time.
func fixed(script string) func(*rand.Rand) string {
	return func(*rand.Rand) string { return script }
}

// oneOf makes one of the scripts.
func oneOf(scripts ...string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return pick(r, scripts) }
}

// with replaces the %s of the script by one of the words.
func with(script string, words []string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return strings.ReplaceAll(script, "%s", pick(r, words)) }
}

// The names that steps disable, redefine, protect and fire. What the check after each
// step says itself, echo, is not among them: a shell without it does what it was told.
var (
	builtins = strings.Fields(`. : [ alias bg break builtin caller cd command compgen complete continue declare
		dirs disown enable eval exec exit export false fc fg getopts hash help history jobs kill let local
		logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend
		test times trap true type typeset ulimit umask unalias unset wait`)
	words     = strings.Fields("cat ls rm mv readlink sleep grep sed awk git python3 bash sh env mkdir") // programs
	variables = strings.Fields(`IFS PATH PWD OLDPWD HOME PS1 PS2 PS4 PROMPT_COMMAND TMOUT HISTFILE HISTCONTROL MAILCHECK
		BASH_ENV ENV LIMPET_SESSION OPTIND OPTARG REPLY RANDOM SECONDS LINENO TIMEFORMAT BASH_XTRACEFD FUNCNEST
		SHLVL COLUMNS LINES GLOBIGNORE CDPATH SHELLOPTS BASHOPTS DIRSTACK PIPESTATUS COPROC _ x status id f fd`)
	signals = strings.Fields("HUP INT QUIT TERM USR1 USR2 PIPE ALRM CHLD CONT TSTP WINCH")
	places  = []string{"$$", "$BASHPID"}
)

// eachFile runs a command for each file that the session's bash has open below its own
// directory, as $t.
func eachFile(command string) string {
	return `for f in /proc/$$/fd/*; do t=$(readlink "$f"); case $t in @FILES@/*) ` + command + ` ;; esac; done; :`
}

// kinds are all there are.
var kinds = []*kind{
	// Scripts that end themselves, by options, errors and exits.
	{name: "errexit", sameStatus: true, make: oneOf(
		"set -e; false; echo no", "set -euo pipefail\nfalse | true\necho no", "set -e; f_st() { return 4; }; f_st; echo no",
		"set -e; (exit 9); echo no", "set -eE; trap 'echo err' ERR; x_st=$(exit 3); echo no")},
	{name: "nounset", sameStatus: true, make: oneOf(
		`set -u; echo "$NOPE_st"; echo no`, "set -u\ncd \"$NOPE_st\"\necho no", `set -u; export LD=/usr/local/lib; : $NOPE_st; echo no`)},
	{name: "options", sameStatus: true, make: oneOf(
		"set -x; :; false", "set -v\nfalse", "set -xv; (exit 3)", "set -f; echo *", "set -euxo pipefail; true", "set -o pipefail; false | true")},
	{name: "noexec", make: oneOf("set -n; exit 4", "set -o noexec\nfalse", "eval 'set -n'; exit 5")},
	{name: "posix", leaves: true, make: oneOf("set -o posix", "set -o posix; . ./none_st; echo no", "set -o posix; eval if; echo no",
		"set -o posix; exec 7</none; echo no", "POSIXLY_CORRECT=1; break; :", "set +o posix")},
	{name: "exit", sameStatus: true, make: oneOf(
		"exit 7", "exit", "f_st() { exit 8; }; f_st; echo no", "cd ./none_st 2>/dev/null || exit 9", "eval 'exit 10'",
		"trap 'exit 11' EXIT; exit 12", "while :; do exit 13; done", "(exit 14)", "false | exit 15", "exit 300", "trap 'echo bye' EXIT; exit 16")},
	{name: "fatal", sameStatus: true, make: oneOf(
		"echo ${NOPE_st?gone}; echo no", "echo ${NOPE_st:?}\necho no", "echo $((1/0)); echo no", "x_st=1; echo ${!x_st-}; (exit 5)",
		"x_st=abc; : ${x_st:1/0}; (exit 6)", "a_st[-9]=1; (exit 7)", "[ 1 -zz 2 ]", "let 1/0")},
	{name: "syntax", sameStatus: true, make: oneOf("if", "echo \"unclosed", "fi; echo no", "f_st() {", "echo a; )", "cat <<X\nnever ends", "eval 'if'; (exit 4)",
		"eval '((('; (exit 5)", "case x in", "for", "echo 'a\nb", "{ echo a; (exit 3)", "x=(1", "[[ a", "a &&", "|")},
	{name: "unclosed", make: oneOf("echo $(echo a", "x=$((1 + ", "cat <<X\n$(echo a)\nX ", "echo `echo a", "echo ${x", "cat <(echo a", "\\")},
	{name: "exec", sameStatus: true, make: oneOf("exec true", "exec sh -c 'exit 5'", "exec /none_st", "(exec false)", "exec -a x sh -c 'exit 6'")},

	// What takes the shell's own means away.
	{name: "enable", leaves: true, make: with("enable -n %s", builtins)},
	{name: "enable by variable", leaves: true, make: with(`b_st='%s'; enable -n "$b_st"`, builtins)},
	{name: "enable all", leaves: true, make: fixed(`for b in $(compgen -b); do [[ $b == echo ]] || enable -n "$b"; done`)},
	{name: "function", leaves: true, make: func(r *rand.Rand) string {
		body := pick(r, []string{":", "(exit 3)", "command true", "echo own", "cat", "while [[ $# -gt 0 ]]; do exit 4; done"})
		return fmt.Sprintf("function %s { %s; }", pick(r, append(builtins, words...)), body)
	}},
	{name: "function by eval", leaves: true, make: with("eval 'function %s { return 9; }'", builtins)},
	{name: "exported function", leaves: true, make: with("function %s { echo own; }; declare -fx %s", builtins)},
	{name: "alias", leaves: true, make: with("shopt -s expand_aliases; alias %s='/bin/false own'", append(builtins[4:], words...))},
	{name: "alias that opens", leaves: true, make: oneOf("shopt -s expand_aliases\nalias o_st='cat <<X'\no_st\nin", "shopt -s expand_aliases\nalias q_st='echo \"'\nq_st\nin")},
	{name: "readonly", leaves: true, make: with("readonly %s", variables)},
	{name: "readonly value", leaves: true, make: with("readonly %s=/st", variables)},
	{name: "unset", leaves: true, make: with("unset %s", variables)},
	{name: "unset everything", leaves: true, make: fixed(`for v in $(compgen -v); do unset "$v"; done 2>/dev/null; unalias -a; for v in $(compgen -A function); do unset -f "$v"; done`)},
	// Not of _: bash evaluates the last argument of each command then, and fails by that.
	{name: "integer attribute", leaves: true, make: with("declare -i %s", slices.DeleteFunc(slices.Clone(variables), func(v string) bool { return v == "_" }))},
	{name: "name reference", leaves: true, make: with("unset x_st; declare -n x_st=%s; x_st=y", variables)},
	{name: "case attribute", leaves: true, make: with("declare -u %s; %s=abc", variables)},
	{name: "separators", leaves: true, make: oneOf("IFS=", "IFS=/", "IFS='0123456789'", "IFS='ok'", "IFS=$'\\n'", "IFS='. :='")},
	{name: "path", leaves: true, make: oneOf("PATH=", "PATH=/none", "unset PATH", "hash -p /bin/false cat", "PATH=@WORK@:$PATH")},
	{name: "prompts", leaves: true, make: oneOf("PROMPT_COMMAND='echo prompt; exit 3'", "PS1='$(exit 3)p'", "PS0='zero $(echo 0)'", "PS4='$(echo four >&2)'",
		"PS2=two", "PROMPT_COMMAND=('echo one' 'kill -9 $$')", "PS4='${NOPE_st?no}'", "PS1='\\$(sleep 100)'")},
	{name: "timeout", leaves: true, make: oneOf("TMOUT=1", "export TMOUT=1", "readonly TMOUT=1", "TMOUT=1; sleep 1.1")},
	{name: "history", leaves: true, make: oneOf("set -o history; HISTFILE=@WORK@/h", "history -s 'exit 3'; fc -s", "set -H", "set -o history; mkfifo @WORK@/hf; HISTFILE=@WORK@/hf", "HISTSIZE=0")},
	{name: "shopt", leaves: true, make: with("shopt -s %s", strings.Fields("failglob nullglob nocasematch extglob lastpipe inherit_errexit execfail xpg_echo gnu_errfmt "+
		"localvar_inherit compat31 interactive_comments huponexit checkjobs autocd dotglob expand_aliases varredir_close promptvars"))},
	{name: "set", leaves: true, make: with("set -%s", strings.Split("abefhkmptuvxCEHPTBn", ""))},
	{name: "set minus t", make: fixed("set -t; (exit 3)")},

	// Traps.
	{name: "trap", leaves: true, make: with("trap 'x_st=1' %s", append(signals, "EXIT", "ERR", "DEBUG", "RETURN"))},
	{name: "trap that ignores", leaves: true, make: with("trap '' %s", signals)},
	{name: "trap that speaks", leaves: true, make: with("trap 'echo trapped' %s", strings.Fields("EXIT ERR RETURN USR1 TERM"))},
	{name: "trap that exits", leaves: true, make: with("trap 'exit 9' %s", append(signals, "EXIT", "ERR"))},
	// Not for CHLD: bash forks for a command that it does not find, and may run that trap for ever.
	{name: "trap that fails", leaves: true, make: with("trap 'none_st; false' %s", strings.Fields("EXIT ERR DEBUG RETURN"))},
	{name: "trap without sense", leaves: true, make: with("trap 'if' %s", strings.Fields("EXIT ERR RETURN INT"))},
	{name: "trap and signal", leaves: true, make: with("trap 'echo got' %s; kill -%s $BASHPID; :", strings.Fields("HUP INT QUIT TERM USR1 USR2 PIPE"))},

	// Descriptors.
	{name: "exec number", leaves: true, make: func(r *rand.Rand) string {
		fd := pick(r, []int{3, 4, 5, 9, 10, 11, 12, 13, 14, 20, 60, 63, 100, 200, 254, 255})
		return fmt.Sprintf(pick(r, []string{"exec %d>@WORK@/fd", "exec %d</dev/null", "exec %d<<<data", "exec %d>&-", "exec %d<>@WORK@/fd", "exec %d>&1", "exec %d>&2"}), fd)
	}},
	{name: "exec variable", leaves: true, make: oneOf("exec {fd}>@WORK@/fd", "for i in 1 2 3; do exec {fd}</dev/null; done", "exec {fd}<>@WORK@/fd; exec {fd}>&-")},
	{name: "close all", leaves: true, make: fixed(`for ((i = 3; i < 256; i++)); do eval "exec $i>&-"; done`)},
	{name: "close those open", leaves: true, make: fixed(`for f in /proc/$BASHPID/fd/*; do i=${f##*/}; ((i > 2)) && eval "exec $i>&-"; done 2>/dev/null; :`)},
	{name: "open all", leaves: true, make: fixed(`for ((i = 3; i < 256; i++)); do eval "exec $i</dev/null"; done`)},
	{name: "standard streams", leaves: true, make: oneOf("exec </dev/null", "exec <&-", "exec >&-", "exec 2>&-", "exec >&- 2>&- <&-", "exec >@WORK@/out 2>&1", "exec 1>&2",
		"exec > >(cat) 2>&1; echo a", "exec < <(echo x)", "exec 2> >(cat >&2)")},
	{name: "trace descriptor", leaves: true, make: oneOf("BASH_XTRACEFD=1; set -x; :", "exec 9>@WORK@/x; BASH_XTRACEFD=9; set -x", "BASH_XTRACEFD=1; set -x; : | :",
		"BASH_XTRACEFD=255", "unset BASH_XTRACEFD", "BASH_XTRACEFD=10; set -x; :")},

	// Limits. Bash cannot take a hard one back: it has to be replaced where it cannot work.
	{name: "ulimit", leaves: true, make: oneOf("ulimit -Sn 16", "ulimit -Sn 6", "ulimit -Sc 0", "ulimit -Sf 1", "ulimit -Sf 0", "ulimit -Su 3", "ulimit -n 30", "ulimit -Ss 256")},

	// Signals.
	{name: "kill", leaves: true, make: func(r *rand.Rand) string {
		return "kill -" + pick(r, append(signals, "KILL", "TERM", "STOP", "INT")) + " " + pick(r, places)
	}},
	{name: "kill in between", leaves: true, make: func(r *rand.Rand) string {
		return "echo a; (kill -" + pick(r, signals) + " " + pick(r, places) + "); echo b | cat; echo c"
	}},
	{name: "kill from behind", leaves: true, make: func(r *rand.Rand) string {
		return "(sleep 0.0" + pick(r, []string{"1", "2", "5"}) + "; kill -" + pick(r, []string{"KILL", "TERM", "INT", "HUP"}) + " $$) >/dev/null 2>&1 &"
	}},

	// The session's own files.
	{name: "rm of files", leaves: true, make: fixed(eachFile(`rm -f "$t"`))},
	{name: "rm of directories", leaves: true, make: fixed(eachFile(`rm -rf "${t%/*}"`))},
	{name: "mv of files", leaves: true, make: fixed(eachFile(`mv "$t" "$t.moved"`))},
	{name: "mv of directories", leaves: true, make: fixed(eachFile(`mv "${t%/*}" "${t%/*}.moved"`))},
	{name: "chmod of files", leaves: true, make: fixed(eachFile(`chmod 000 "$t" "${t%/*}"`))},
	{name: "links for files", leaves: true, make: fixed(eachFile(`ln -sfn /dev/null "$t"`))},
	{name: "truncated files", leaves: true, make: fixed(eachFile(`: >"$t"`))},
	{name: "written files", leaves: true, make: fixed(eachFile(`echo junk >>"$t"`))},

	// What stays behind.
	{name: "job", leaves: true, make: oneOf("sleep 1000 &", "sleep 1000 & echo hi", "(sleep 1000 &)", "setsid sleep 1000 &", "nohup sleep 1000 >/dev/null 2>&1 &",
		"(trap '' INT TERM; sleep 1000) &", "yes >/dev/null &", "(echo late; sleep 1000) & disown")},
	{name: "coproc", leaves: true, make: oneOf("coproc cat", "coproc C_st { sleep 1000; }", "coproc exit 3", "coproc cat; exec {fd}<&${COPROC[0]}")},
	{name: "jobs of its own", leaves: true, make: oneOf("set -m", "set -m; sleep 1000 &", "set -m; false | true", "set +m")},
	{name: "big", leaves: true, make: oneOf("big_st=$(head -c 300000 /dev/zero | tr '\\0' x)", "printf -v big_st '%1000000s'", "a_st=({1..20000})",
		"for i in {1..300}; do eval \"f_$i() { echo $i; }\"; done", "export big_st=$(head -c 100000 /dev/zero | tr '\\0' y)")},
	{name: "odd state", leaves: true, make: oneOf("x_st='a b'; declare -i x_st", "shopt -s extglob; eval 'f_st() { echo !(x); }'; shopt -u extglob", "declare -A m_st=([a]=1); readonly m_st",
		"declare -ra r_st=(1 2)", "declare -gt t_st=1", "set -- a 'b c' $'d\\ne'", "umask 777", "cd @WORK@; mkdir -p gone; cd gone; rmdir ../gone", "hash -r; shift 9", "SECONDS=-5; RANDOM=1; LINENO=9")},

	// Scripts without an end.
	{name: "loop", endless: true, make: oneOf("while :; do :; done", "while true; do sleep 0.01; done", "for ((;;)); do true; done", "f_st() { while [[ 1 ]]; do [[ 1 ]]; done; }; f_st",
		"until false; do echo x; done", "yes", "cat /dev/zero", "x=$(while :; do :; done)", "(while :; do :; done)", ": | while :; do :; done", "set -e; while :; do :; done")},
	{name: "wait", endless: true, leaves: true, make: oneOf("sleep 1000 & wait", "sleep 1000", "sleep 1000 | sleep 1000", "sleep 1000 & wait $!", "read x </dev/tty || sleep 1000", "coproc cat; read -u ${COPROC[0]}",
		"mkfifo @WORK@/p.$RANDOM; cat @WORK@/p.*", "cat <(sleep 1000)", "sleep 1000 > >(cat)", "set -e; sleep 1000", "(sleep 1000)", "x=$(sleep 1000)", "exec sleep 1000")},
	{name: "deaf", endless: true, leaves: true, make: oneOf("trap '' INT; sleep 1000", "trap '' INT TERM; while :; do :; done", "(trap '' INT TERM HUP; while :; do sleep 1; done)", "trap 'echo no' INT; while :; do sleep 0.1; done",
		"bash -c 'trap \"\" INT TERM; sleep 1000 & wait'", "setsid sleep 1000", "trap 'sleep 1000' EXIT; sleep 1000", "sh -c 'kill -STOP $$; sleep 1000'", "while :; do kill -INT $BASHPID; done")},
}
