package script_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// names returns the names of the traits that are set, one space between them.
func names(traits script.Traits) string {
	var set []string
	v := reflect.ValueOf(traits)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			set = append(set, v.Type().Field(i).Name)
		}
	}
	return strings.Join(set, " ")
}

// library has a function for each kind of trait that a call brings in.
var library = map[string]string{
	"leave":   "leave () \n{ \n    exit 3\n}",
	"through": "through () \n{ \n    leave\n}",
	"loop":    "loop () \n{ \n    loop;\n    return 1\n}",
	"strict":  "strict () \n{ \n    set -eu\n}",
	"broken":  "broken () \n{ \n    if\n}",
	"apart":   "apart () \n( exit 3 )",
	"typeset": "typeset () \n{ \n    exit\n}",
	"kills":   "kills () \n{ \n    kill $$\n}",
}

// TestTraits reads each script, for a shell that has the functions of library, and the readonly
// variables RO and UID.
func TestTraits(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"", ""},
		{"# exit", ""},
		{"true", ""},
		{"ls -l /usr/local/bin", ""},
		{"echo exit set -e return trap", ""},
		{"echo 'set -e; exit'", ""},
		{`echo "exit"; printf '%s\n' "declare -r"`, ""},
		{"cat <<'E'\nexit ${x?} $!\nE", ""},
		{"cat <<E\nexit\nE", ""},
		{"cat <<E\n${x?}\nE", "Demands"},
		{"echo \"${x:-'${y?}'}\"", "Demands"},
		{"cat <<E\n${x:-$'\\x24{y?}'}\nE", "Unknown Changes"},
		{"echo '${y?}'", ""},
		{"echo a; echo b", ""},
		{"echo a\necho b", "Lines"},
		{"if true\nthen echo a\nfi", ""},
		{"cat <<E\nexit\\\n\nE", ""},
		{"cat <<'E'\nE\\\n\nexit\nE", ""},
		{"cat <<-\\E\n\texit\n\tE", ""},
		{"cat <<A <<'B C'\nexit\nA\nexit\nB C", ""},
		{"cat <<'E' |\nexit\nE\n cat", "Pipeline"},
		{"cat <<E \\\n-\nexit\nE", ""},
		{"echo $(cat <<E\nexit)\nE\n)", ""},
		{"bash -c 'set -e; exit'", ""},
		{"env exit; nohup exit; \\time exit", ""},

		// Unreadable.
		{"echo (", "Unreadable"},
		{"if true", "Unreadable"},
		{"echo 'a", "Unreadable"},
		{"cat <<E\nx\nE ", "Unreadable"},
		{"echo a\\", "Unreadable"},
		{"exit\r\n", "Unreadable"},
		{"exit\x00", "Unreadable"},
		{"f() echo", "Unreadable"},
		{"echo ${ exit;}", "Unreadable"},
		{"echo \"$\\\n{x?}\"", "Unreadable"},
		{"echo `echo \"$\\\\\n{x?}\"`", "Unreadable"},
		{"cat <<E\nE\\\n\nexit\nE", "Unreadable"},
		{"cat <<E\n\\\nE\nexit\nE", "Unreadable"},
		{"cat <<-E\n\tE\\\n\nexit\nE", "Unreadable"},
		{"cat <<\"E\\$x\"\nE$x\nexit\nE\\$x", "Unreadable"},
		{"cat <<$'E'\nE\nexit", "Unreadable"},
		{"cat <<E\n${x:-'\nE\nexit\n'}\nE", "Unreadable"},
		{"cat <<E\n`ls`E\nexit\nE", "Unreadable"},
		{"echo $(cat <<E\nE)\nexit\nE\n)", "Unreadable"},
		{"echo <(cat <<E\nE a)\nexit\nE\n)", "Unreadable"},
		{"echo $(cat <<E)\nexit\nE\n", "Unreadable"},
		{"echo `cat <<E\nE\n`", "Unreadable"},
		{"cat <<E\n$(cat <<F\nF\n)\nE", "Unreadable"},
		{"ls {a[1]}>x", "Descriptors Arithmetic Changes"},
		{"echo ${a[1]}>x", ""},
		{"echo ${x@Z}", "Unreadable"},
		{strings.Repeat("(", 1000) + "a" + strings.Repeat(")", 1000), "Unreadable"},
		{"echo " + strings.Repeat("a", 64<<10), "Unreadable"},

		// Exits.
		{"exit", "Exits"},
		{"cd x || exit 1", "Exits Changes"},
		{"true # a \\\nexit", "Exits Lines"},
		{"{ true; # a \\\nexit # b \\\n\n}", "Exits"},
		{"true # a \\\\\nexit", "Exits Lines"},
		{"true `: # a \\\nexit`", "Unreadable"},
		{"true '# a \\\nexit'", ""},
		{"'exit'", "Exits"},
		{`\exit`, "Exits"},
		{`ex"it" 3`, "Exits"},
		{"$'exit'", "Exits"},
		{"builtin exit", "Exits"},
		{"builtin -- exit", "Exits"},
		{"command exit", "Exits"},
		{"command -p -- exit", "Exits"},
		{"command -v exit", ""},
		{"command -pV exit", ""},
		{"command builtin exit", "Exits"},
		{"! exit", "Exits"},
		{"time exit", "Exits"},
		{"X=1 exit", "Exits"},
		{"{ exit; }", "Exits"},
		{"if exit; then :; fi", "Exits"},
		{"for i in 1; do exit; done", "Exits Changes"},
		{"case a in a) exit;; esac", "Exits"},
		{"while :; do exit; done", "Exits"},
		{"logout", "Exits"},
		{"suspend", "Exits"},
		{"(exit)", ""},
		{"echo $(exit) `exit` <(exit)", ""},
		{"exit | true", "Pipeline"},
		{"true | exit", "Pipeline"},
		{"cat | while read x; do exit 1; done", "Pipeline"},
		{"exit & true", "Background"},
		{"exec ls", "Exits Changes"},
		{"exec -a name -c ls", "Exits Changes"},
		{"exec -a name", "Changes"},
		{"exec", "Changes"},
		{"exec 3>x", "Descriptors Changes"},
		{"exec >x 2>&1 </dev/null", "Changes"},
		{"exec 2>&1 5<x", "Descriptors Changes"},
		{"exec {fd}>x", "Descriptors Changes"},
		{"exec 3>&-", "Descriptors Changes"},
		{"command exec 3>x", "Descriptors Changes"},
		{"exec ls 3>x", "Exits Changes"},
		{`exec "$@" 3>x`, "Exits Descriptors Changes"},
		{`exec "${x-$@}" 3>x`, "Exits Descriptors Changes"},
		{`exec "${x-$y}" 3>x`, "Exits Changes"},
		{`exec "$cmd" 3>x`, "Exits Changes"},
		{"kill $$", "Exits PID"},
		{"kill -9 $$", "Exits PID"},
		{"kill -s TERM $BASHPID", "Exits"},
		{`kill "${$}"`, "Exits PID"},
		{"kill -- -$$", "Exits PID"},
		{"kill 0", "Exits"},
		{"kill -TERM -1", "Exits"},
		{"kill -1 123", ""},
		{"kill -0 $$", "PID"},
		{"kill -l", ""},
		{"kill $pid", ""},
		{"kill %1", "Jobs"},
		{"kill $!", "Jobs"},
		{"(sleep 5; kill $$) & make", "Exits PID Background"},
		{"(kill $BASHPID)", ""},

		// Functions of the script.
		{"f() { exit; }", "Functions Changes"},
		{"f() { exit; }; f", "Exits Functions Changes"},
		{"f() { exit; }; 'f'", "Exits Functions Changes"},
		{"f() { exit; }; g() { f; }; g", "Exits Functions Changes"},
		{"f() { g; }; g() { exit; f; }; f", "Exits Functions Changes"},
		{"f() { exit; }; (f)", "Functions Changes"},
		{"f() (exit); f", "Functions Changes"},
		{"(f() { exit; }); f", ""},
		{"f() { exit; }; builtin f", "Functions Changes"},
		{"f() { g() { exit; }; }; f; g", "Exits Functions Changes"},
		{"f() { return; }; f", "Functions Changes"},
		{"f() { eval return; }; f", "Sources Functions Changes"},
		{"function f { set -e; }; f", "Options Functions Changes"},
		{"f() { kill $$; }; (f)", "Exits PID Functions Changes"},
		{"eval 'f() { exit; }'; f", "Exits Sources Functions Changes"},
		{"f; eval 'f() { exit; }'; f", "Exits Sources Functions Changes"},
		{"builtin() { :; }", "BuiltinFunction Functions Changes"},
		{"function command { :; }", "CommandFunction Functions Changes"},
		{"(command() { :; })", ""},

		// Functions of the shell.
		{"leave", "Exits"},
		{"through", "Exits"},
		{"(through)", ""},
		{"command leave", ""},
		{"loop", ""},
		{"strict", "Options Changes"},
		{"broken", "Unknown Changes"},
		{"(broken)", ""},
		{"apart", ""},
		{"typeset x", "Exits Changes"},
		{"builtin typeset x", "Changes"},
		{"true | kills", "Exits PID Pipeline"},
		{"f() { leave; }; f", "Exits Functions Changes"},

		// Returns.
		{"return 3", "Returns"},
		{"eval 'return 3'", "Returns Sources"},
		{"(return 3)", "Returns"},

		// Options.
		{"set -e", "Options Changes"},
		{"set -euo pipefail", "Options Changes"},
		{"set -eo pipefail -u", "Options Changes"},
		{"set -o pipefail", "Options Changes"},
		{"set -fo nounset", "Options Changes"},
		{"set +e", "Changes"},
		{"set +o posix", "Changes"},
		{"set +e -x", "Options Changes"},
		{"set -o posix", "Options Modal Changes"},
		{"set -oo noglob verbose", "Options Verbose Changes"},
		{"set -o noglob", "Changes"},
		{"set -CfabhkmBETPH", "Changes"},
		{"set -o", "Changes"},
		{"set -- -e", "Changes"},
		{"set - -e", "Changes"},
		{"set a -e", "Changes"},
		{`set -- "$@"`, "Changes"},
		{`set "$@"`, "Options Modal Verbose Changes"},
		{"set $flags", "Options Modal Verbose Changes"},
		{`set "a$x"`, "Changes"},
		{"set -o $name", "Options Modal Verbose Changes"},
		{"set -f$x", "Options Modal Verbose Changes"},
		{"builtin set -e", "Options Changes"},
		{"(set -e; false)", ""},
		{"shopt -so errexit", "Options Shopt Changes"},
		{"shopt -s -o pipefail", "Options Shopt Changes"},
		{"shopt -uo errexit", "Shopt Changes"},
		{"shopt -s nullglob", "Shopt Changes"},
		{"shopt -s failglob", "Shopt Failglob Changes"},
		{"shopt -s lastpipe; echo | exit 3", "Exits Shopt Pipeline Lastpipe Changes"},
		{"echo | exit 3; shopt -s lastpipe", "Exits Shopt Pipeline Lastpipe Changes"},
		{"shopt -s lastpipe; exit 3 | cat | read x", "Shopt Pipeline Lastpipe Changes"},
		{"shopt -s lastpipe; (echo | exit 3)", "Shopt Lastpipe Changes"},
		{"(shopt -s lastpipe); echo | exit 3", "Pipeline"},
		{"shopt -u expand_aliases", "Shopt Aliases Changes"},
		{"shopt -s $name", "Options Modal Verbose Shopt Lastpipe Aliases Failglob Changes"},
		{"shopt $all", "Options Modal Verbose Shopt Lastpipe Aliases Failglob Changes"},
		{"POSIXLY_CORRECT=", "Options Modal Changes"},
		{"export POSIXLY_CORRECT=1", "Options Modal Changes"},
		{"unset x", "Functions Changes"},
		{"set -u; export PATH=/usr/local/bin:$PATH; cd \"$NOPE\"", "Options Changes"},

		// Demands.
		{": ${x?}", "Demands"},
		{`: "${1:?usage}"`, "Demands"},
		{"(: ${x?})", ""},
		{"x=${y:-${z?}}", "Demands Changes"},
		{"echo '${x?}'", ""},
		{"echo @(a|${x?})", "Demands"},
		{": ${x-?}", ""},
		{"ls >${x?}", "Demands"},
		{"[[ ${x?} ]]", "Demands Test"},
		{"a=([1]=${x?})", "Demands Changes"},

		// Traps.
		{"trap 'rm x' EXIT", "Traps ExitTrap Changes"},
		{"trap 'rm x' 0", "Traps ExitTrap Changes"},
		{"trap -- '' sigexit", "Traps ExitTrap Changes"},
		{"trap - EXIT", "Traps ExitTrap Changes"},
		{"trap EXIT", "Traps ExitTrap Changes"},
		{"trap 'exit' INT TERM", "Traps Changes"},
		{"trap 'a' INT $sig", "Traps ExitTrap Changes"},
		{`trap "rm $x" INT`, "Traps Changes"},
		{"trap", "Traps ListsTraps Changes"},
		{"trap -p", "Traps ListsTraps Changes"},
		{"trap -p EXIT", "Traps ListsTraps Changes"},
		{"trap -l", "Traps Changes"},
		{"(trap x EXIT)", ""},
		{"echo trap", ""},

		// Unknown.
		{". ./x", "Unknown Sources Changes"},
		{"source x", "Unknown Sources Changes"},
		{"$cmd", "Unknown Changes"},
		{`"$@"`, "Unknown Changes"},
		{"$(which ls)", "Unknown Changes"},
		{"(. ./x)", ""},
		{`"$HOME/bin/x"`, ""},
		{"$HOME/bin/x", ""},
		{"~/bin/x", ""},
		{`"$DIR"/run.sh`, ""},
		{`"$DIR/$x"`, ""},
		{`"$@/x$y"`, "Unknown Changes"},
		{"./x", ""},
		{"ex?t", "Unknown Changes"},
		{"{exit,3}", "Unknown Changes"},
		{"builtin $x", "Unknown Changes"},
		{"command $x", "Unknown Changes"},
		{"mapfile -C f x", "Unknown Changes"},
		{"compgen -F f", "Unknown Changes"},
		{"fc -s", "Unknown Changes"},
		{"fc -l", "Changes"},
		{"echo ${x@P}", "Unknown Changes"},
		{"echo ${x@Q}", ""},
		{"eval", "Sources"},
		{"eval 'exit 3'", "Exits Sources"},
		{"eval set -e", "Options Sources Changes"},
		{"eval -- exit", "Exits Sources"},
		{`eval "echo \$x"`, "Sources"},
		{`eval "exit # $x"`, "Unknown Sources Changes"},
		{"eval $x", "Unknown Sources Changes"},
		{"eval '((('", "Unknown Sources Changes"},
		{"(eval $x)", ""},
		{"eval 'eval \"exit\"'", "Exits Sources"},
		{"X=1 eval 'exit'", "Exits Sources"},
		{strings.Repeat("eval ", 5000) + "exit", "Unknown Sources Changes"},

		// Jobs and descriptors.
		{"sleep 1 &", "Background"},
		{"{ exit; } &", "Background"},
		{"(sleep 1 &)", ""},
		{"coproc cat", "Background Descriptors Changes"},
		{"coproc C { exit; }", "Background Descriptors Changes"},
		{"echo $!", "Jobs"},
		{"(echo $!)", ""},
		{"wait", "Jobs"},
		{"wait -p x", "Jobs Changes"},
		{"jobs -l", "Jobs"},
		{"jobs -x exit", "Exits Jobs"},
		{"fg", "Jobs"},
		{"%1", "Jobs"},
		{"date +%Y; printf %s a", ""},
		{"ls {fd}>x", "Descriptors Changes"},
		{"exec {fd}>&-", "Descriptors Changes"},
		{"exec 10>x", "Descriptors High Changes"},
		{"cat <&10", "High"},
		{"echo >&12", "High"},
		{"echo >&2 9>x", ""},
		{"read -u 10 x", "High Changes"},
		{"read -ru10", "High Changes"},
		{"read -u 3", "Changes"},
		{"mapfile -u 11", "High Changes"},
		{"cat /dev/fd/10", "High"},
		{"cat </dev/fd/63", "High"},
		{"cat /dev/fd/9", ""},
		{"echo 'see /dev/fd/10'", ""},
		{"(exec 10>x)", ""},

		// The small ones.
		{"a | b", "Pipeline"},
		{"a |& b", "Pipeline"},
		{"a || b", ""},
		{"(a | b)", ""},
		{"echo 'a | b'", ""},
		{"[[ a ]]", "Test"},
		{"enable -n .", "Enable Changes"},
		{"ulimit -n 10", "Limits Changes"},
		{"alias ll='ls -l'", "Aliases Changes"},
		{"unalias -a", "Aliases Changes"},

		// Arithmetic.
		{"echo $((1+2))", ""},
		{"echo $((1/0))", "Arithmetic"},
		{"echo $((x))", "Arithmetic Changes"},
		{"echo $(($# - 1))", ""},
		{"((x++))", "Arithmetic Changes"},
		{"((1))", ""},
		{"let x=1", "Arithmetic Changes"},
		{"builtin let x=1", "Arithmetic Readonly Changes"},
		{"for ((i=0; i<3; i++)); do :; done", "Arithmetic Changes"},
		{"for ((;;)); do :; done", ""},
		{"[[ a -eq b ]]", "Test Arithmetic Changes"},
		{"[[ $# -eq 0 ]]", "Test"},
		{"[[ $x == 0 ]]", "Test"},
		{"[[ $x =~ a ]]", "Test Changes"},
		{"[[ -v a[i] ]]", "Test Arithmetic Changes"},
		{"[ $x -eq 0 ]", ""},
		{"[ -v a[i] ]", "Arithmetic Changes"},
		{"echo ${x:1}", ""},
		{"echo ${x:1:3}", ""},
		{"echo ${x:1/0}", "Arithmetic"},
		{"echo ${x:n}", "Arithmetic Changes"},
		{"echo ${x:1:-3}", "Arithmetic"},
		{"echo ${a[0]} ${a[@]} ${#a[*]}", ""},
		{"echo ${a[-1]}", "Arithmetic"},
		{"echo ${a[i]}", "Arithmetic Changes"},
		{"echo ${!x}", "Arithmetic"},
		{"echo ${!x-y}", "Arithmetic"},
		{"echo ${!a[@]} ${!x*}", ""},
		{"echo ${!a[@]-y}", "Arithmetic"},
		{"a[-9]=1", "Arithmetic Changes"},
		{"a[1]=1", "Changes"},
		{"a=([x]=1)", "Arithmetic Changes"},
		{"read 'a[x]'", "Arithmetic Changes"},
		{"declare -i x", "Changes"},
		{"printf %d 3", ""},

		// Readonly.
		{"readonly x", "Readonly Changes"},
		{"builtin readonly x=1", "Readonly Changes"},
		{"declare -r x=1", "Readonly Changes"},
		{"declare -rx x", "Readonly Changes"},
		{"local -xr x", "Readonly Changes"},
		{"declare -x x=-r", "Changes"},
		{"declare $opts x", "Arithmetic Readonly Changes"},
		{"RO=1", "Readonly Changes"},
		{"(RO=1)", ""},
		{"RO=1 ls", "Readonly"},
		{"echo $RO RO=1", ""},
		{"read RO", "Readonly Changes"},
		{"read -a RO", "Readonly Changes"},
		{`read "$x"`, "Arithmetic Readonly Changes"},
		{"for RO in 1; do :; done", "Readonly Changes"},
		{"declare RO=1", "Readonly Changes"},
		{"builtin export RO=1", "Readonly Changes"},
		{"printf -v RO x", "Readonly Changes"},
		{"printf -vRO x", "Readonly Changes"},
		{"mapfile RO", "Readonly Changes"},
		{"getopts ab RO", "Readonly Changes"},
		{"unset RO", "Readonly Functions Changes"},
		{"unset 'RO[1]'", "Arithmetic Readonly Functions Changes"},
		{"((RO=1))", "Arithmetic Readonly Changes"},
		{"let RO++", "Arithmetic Readonly Changes"},
		{"echo ${RO:=1}", "Readonly Changes"},
		{"ls {RO}>x", "Descriptors Readonly Changes"},
		{"declare -n RO", "Readonly Changes"},

		// Changes.
		{"x=1", "Changes"},
		{"x=1 ls", ""},
		{"cd", "Changes"},
		{"umask 0", "Changes"},
		{"read x", "Changes"},
		{"echo ${x:=y}", "Changes"},
		{"echo ${x=y}", "Changes"},
		{"echo ${x:-y}", ""},
		{"echo $((x=1))", "Arithmetic Changes"},
		{"printf -v x y", "Changes"},
		{"printf '%s\\n' $x", ""},
		{"shift", "Changes"},
		{"select x in a; do :; done", "Changes"},
		{"pushd /", "Changes"},
		{"type ls; hash; times; pwd; test a; [ a ]", ""},
		{"(x=1; cd /)", ""},
		{"nameref x=1", ""},
		{"git status && make", ""},
	} {
		lib := script.NewLibrary(library).WithReadonly([]string{"RO", "UID"})
		got := names(script.Read(test.script).Traits(lib))
		assert.Equal(t, test.want, got, "script: %.200q", test.script)
	}
}

// TestAliases keeps what an alias stands for from going by unseen.
func TestAliases(t *testing.T) {
	lib := script.NewLibrary(nil).WithAliases(map[string]string{
		"e": "exit", "s": "set", "ls": "ls --color", "doc": "cat <<EOF", "loop": "loop x", "two": "cd /; kill $$", "pipe": "f | wc",
	})
	for _, test := range []struct{ script, want string }{
		{"e 3", "Exits"},
		{`\e 3`, ""},
		{"s -e", "Options Changes"},
		{"ls /", ""},
		{"doc\nexit\nEOF", "Unreadable Exits Lines"},
		{"loop", ""},
		{"two", "Exits PID Changes"},
		{"pipe", "Pipeline"},
	} {
		assert.Equal(t, test.want, names(script.Read(test.script).Traits(lib)), "script: %q", test.script)
	}
}

// TestLastpipe keeps the last command of a pipeline from going by unseen where it runs in the shell.
func TestLastpipe(t *testing.T) {
	lib := script.NewLibrary(map[string]string{"leave": "leave () \n{ \n    exit 3\n}\n"}).WithLastpipe(true)
	for _, test := range []struct{ script, want string }{
		{"echo | leave", "Exits Pipeline"},
		{"echo | cat | read x", "Pipeline Changes"},
		{"leave | cat", "Pipeline"},
		{"(echo | leave)", ""},
	} {
		assert.Equal(t, test.want, names(script.Read(test.script).Traits(lib)), "script: %q", test.script)
	}
}

// TestNoLibrary keeps a script readable without a library, and with an empty one.
func TestNoLibrary(t *testing.T) {
	read := script.Read("leave; RO=1; exit")
	assert.Equal(t, "leave; RO=1; exit", read.Text())
	assert.Equal(t, "Exits Changes", names(read.Traits(nil)))
	assert.Equal(t, "Exits Changes", names(read.Traits(&script.Library{})))
}

func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		script.Read("cd /tmp && git status -s | head -n 20")
	}
}

func BenchmarkTraits(b *testing.B) {
	b.ReportAllocs()
	read, lib := script.Read("cd /tmp && git status -s | head -n 20"), script.NewLibrary(library)
	for b.Loop() {
		read.Traits(lib)
	}
}

func FuzzTraits(f *testing.F) {
	for _, seed := range []string{
		"set -euo pipefail; f() { exit; }; f | cat <<E\n$x\nE", "eval eval 'f() { f; }'; f", "[[ -v a[$((x))] ]] && let 'a=1'",
		"declare -r \"$x\" a[1]=(b)", "coproc X { ${x@P}; }", "echo @(${x) ${!a-${b:?}}", "kill -s; exec -a; trap --; read -u; printf -v; set -o",
		"exec {a}>&- 10<>x", "command -- builtin -- eval -- '", "mapfile -C; wait -p; test -v; [ -v; shopt -so; jobs -x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := script.Read(text).Traits(script.NewLibrary(map[string]string{"f": text, "g": "g () { f; }"}))
		if got.Unreadable {
			assert.Equal(t, script.Traits{Unreadable: true}, got)
		}
	})
}

// TestHostile has texts that are as long and as deep as Read takes them. A goroutine that is out of
// stack would end the test binary.
func TestHostile(t *testing.T) {
	testenv.Slow(t)
	for _, unit := range []string{
		"(')'", "((')'", "$(')'", "`", "${x:-'}'", "a|", "a&&", "!", "if ", "while ", "f() ", "function f ", "time ", "coproc ", "<<a ", "{ '}' ",
		"eval ", "builtin ", "command ", "[[ ! ", "$((- ", "case a in a) ", "a[']'", "f;f(){ f;};", "x=", "echo @($(", "\"$(", "[[ ( ')' ", "eval \\\"",
	} {
		for _, text := range []string{strings.Repeat(unit, (64<<10)/len(unit)), "((" + strings.Repeat("-", 60<<10) + "1))", strings.Repeat(unit, 400)} {
			got := script.Read(text).Traits(script.NewLibrary(map[string]string{"f": "f () { " + text + "; }"}))
			assert.Equal(t, got.Unreadable, got == script.Traits{Unreadable: true}, "unit: %q", unit)
			script.Fatal(text, "nounset", lookup)
		}
	}
}
