package shell_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// oddStates are states that a shell can be in. Whatever becomes of its bash, the next one has
// what the last one had, but for what is lost; and that is named.
var oddStates = []struct {
	name, set string
	lost      []string // what bash cannot take back
	ask       string   // asks for what counts; empty: for all that bash can print
}{
	{name: "nothing", set: ":"},
	{name: "an integer that is none", set: `x='a b'; declare -i x`},
	{name: "an exported integer that is none", set: `P=/usr/bin; declare -ix P`},
	{name: "integers that are none", set: `a=(x/ 'y z'); declare -ai a`},
	{name: "a readonly integer that is none", set: `x='a b'; declare -ir x`},
	{name: "an integer that would run code", set: `x='a[$(touch ran)]'; declare -i x`},
	{name: "a map of integers that are none", set: `declare -A m=([a]='x y' [b]='1/0'); declare -i m`},
	{name: "cases", set: `u=Ab l=Ab c=ab; declare -u u; declare -l l; declare -c c`},
	{name: "cases of arrays", set: `u=(Ab cD); declare -u u; declare -l l=(Ab)`},
	{name: "a map with odd keys", set: `declare -A m; m["]"]=1; m["'"]=2; m[$'\n']=3; m['$x']=4; m['a b']=5; m['"']=6; m['\']=7; m['[']=8; m['*']=9; k='@'; m[$k]=10`},
	{name: "a map with many keys", set: `declare -A m; for i in {1..99}; do m[$i]=$i; done`, ask: `echo ${#m[@]} ${m[7]} ${m[99]}`},
	{name: "a readonly map", set: `declare -rA m=([a]=1)`},
	{name: "declared only", set: `declare -x X; declare -a A; declare -A M; declare -i I; declare y`},
	{name: "arrays", set: `a=([5]=x [1]='y z'); b=(); c=(''); d=($'a\nb')`},
	{name: "exported arrays", set: `declare -ax a=(1 2)`},
	{name: "a reference", set: `x=1; declare -n r=x`},
	{name: "a reference to an element", set: `a=(1 2); declare -n r='a[1]'`},
	{name: "a reference to nothing", set: `declare -n r=nope`},
	{name: "a reference without a target", set: `declare -n r`},
	{name: "references in a circle", set: `declare -n a=b; declare -n b=a`},
	{name: "a readonly reference", set: `x=1; declare -nr r=x`},
	{name: "odd bytes", set: `x=$'\xff\xfe\x01'; y=$'a\nb\tc'; z=é`},
	{name: "a value that looks like a declaration", set: `x=$'1"\ndeclare -- y="2'; y='declare -x z="1"'`},
	{name: "a value of quotes", set: `x="it's \"\$HOME\" \` + "`" + `id\` + "`" + ` \\ !"`},
	{name: "a large value", set: `printf -v x '%*s' 1000000 ''`},
	{name: "many variables", set: `for i in {1..500}; do declare "v$i=$i"; done`},
	{name: "readonly variables", set: `readonly PS1='$ ' IFS PATH HOME`},
	{name: "readonly bash variables", set: `readonly SHELLOPTS BASHOPTS; export SHELLOPTS`},
	{name: "the mark is readonly", set: `readonly LIMPET_SESSION`},
	{name: "IFS is odd", set: `IFS=':/ed'`},
	{name: "IFS is empty", set: `IFS=`},
	{name: "IFS is unset", set: `unset IFS`},
	{name: "PATH is unset", set: `unset PATH`},
	{name: "OLDPWD is unset", set: `cd /usr; cd /tmp; unset OLDPWD`},
	{name: "PWD is unset", set: `unset PWD`},
	{name: "PWD is made up", set: `PWD=/made/up`},
	{name: "HOME, TERM and SHLVL are unset", set: `unset HOME TERM SHLVL OPTIND PS4`},
	{name: "posix mode", set: `set -o posix`},
	{name: "posix mode and odd names", set: `a:b() { :; }; set -o posix`},
	{name: "posix mode by its variable", set: `POSIXLY_CORRECT=1`},
	{name: "posix mode by its variable, readonly", set: `a.b() { :; }; readonly POSIXLY_CORRECT=1`},
	{name: "compatibility", set: `shopt -s compat42`},
	{name: "compatibility by its variable", set: `BASH_COMPAT=4.4`},
	{name: "many options", set: `shopt -s extglob dotglob nullglob globstar lastpipe; shopt -u sourcepath cmdhist; set -fabCE; set -o pipefail`},
	{name: "failglob and nocaseglob", set: `shopt -s failglob nocaseglob nocasematch`},
	{name: "functrace", set: `set -T`},
	{name: "arguments that are assignments", set: `set -k`},
	{name: "extdebug", set: `shopt -s extdebug`},
	{name: "a function that parses no more", set: inBash + `eval ` + printedWrong + `; g() { :; }; alias a=b; trap : USR1`,
		lost: []string{"function f"}, ask: `type -t g; alias a; trap -p`},
	{name: "an extended pattern, which is off by now", set: inBash + `shopt -s extglob; eval 'f() { echo !(x); }'; export -f f; shopt -u extglob; g() { !(:); }`},
	{name: "an extended pattern in a function from a fork", set: `shopt -s extglob; eval 'f() { case $1 in !(a|b)) echo @(x|y) ;; esac; }'; shopt -u extglob; exit 3`},
	{name: "words that look like comments", set: `shopt -u interactive_comments; eval 'f() { echo #x; }'`},
	{name: "an extended pattern", set: "shopt -s extglob\neval 'f() { echo !(x); }'"},
	{name: "functions with odd names", set: `eval '=() { :; }; !() { :; }; a:b() { :; }; a.b() { :; }; a/b() { :; }; 1() { :; }; -x() { :; }'`},
	{name: "functions with documents", set: "f() { cat <<A; cat <<'B'\n$x \"it's\"\nA\n$y `z\nB\n}\ng() { cat <<-X\n\tx\n\tX\n}"},
	{name: "a function with its redirection", set: `f() { echo; } >/dev/null 2>&1`},
	{name: "a function that is a subshell", set: `f() ( echo )`},
	{name: "exported functions", set: `f() { :; }; export -f f; a:b() { :; }; export -f a:b`},
	{name: "readonly functions", set: `f() { :; }; readonly -f f; g() { :; }; declare -ft g`},
	{name: "a function and an alias named alias", set: `alias() { echo mine; }; builtin alias alias='echo no' ls='ls -l'`},
	{name: "a function named builtin", set: `builtin() { echo b; }`, ask: `type -t builtin`},
	{name: "a function named command", set: `command() { echo c; }`},
	{name: "functions named builtin and command", set: `builtin() { echo b; }; command() { echo c; }`, ask: `type -t builtin command`},
	{name: "readonly functions named builtin and command", set: `builtin() { echo b; }; command() { echo c; }; readonly -f builtin command`, ask: `type -t builtin command`},
	{name: "functions named as builtins", set: `eval() { :; }; printf() { :; }; declare() { :; }; unset() { :; }; trap() { :; }; cd() { :; }; shopt() { :; }; source() { :; }; .() { :; }; set() { :; }; exit() { :; }; read() { :; }; return() { :; }; enable() { :; }; kill() { :; }; umask() { :; }; ulimit() { :; }; export() { :; }; local() { :; }; test() { :; }; [() { :; }; :() { :; }`},
	{name: "aliases", set: `alias a=b 'c=echo "it'\''s"' e= g='a; b'`},
	{name: "an alias for every builtin", set: `shopt -s expand_aliases; f() { echo f; }; for b in $(compgen -b); do [[ $b == *[[:alnum:]]* ]] && alias "$b=false"; done`,
		ask: `\alias | \wc -l; \declare -f f; \shopt expand_aliases`},
	{name: "aliases that functions do not use", set: `ls() { :; }; f() { ls; }; shopt -s expand_aliases; alias ls='ls -l' f=g`},
	{name: "traps", set: `trap $'echo "it\'s"\necho \'x\'' USR1; trap '' HUP; trap : USR2`},
	{name: "a trap for the exit", set: `trap 'echo bye >>bye' EXIT`},
	{name: "traps that fail or print", set: `trap 'echo err; false' ERR; trap 'echo ret; false' RETURN`, ask: `trap -p`},
	{name: "a trap for DEBUG that prints", set: `trap 'x=$BASH_COMMAND' DEBUG`, ask: `trap -p`},
	{name: "a trap for DEBUG that fails", set: `trap '! :' DEBUG`, ask: `trap -p`},
	{name: "prompts", set: `PROMPT_COMMAND=(':' 'true'); PS1='$(:)> '; PS2='. '; PS4='+$LINENO '`},
	{name: "a history in a fifo", set: `mkfifo fifo; set -o history; HISTFILE=$PWD/fifo; HISTSIZE=10`},
	{name: "a history", set: `HISTFILE=$PWD/hist HISTFILESIZE=5; set -o history; shopt -s histappend`},
	{name: "the umask", set: `umask 777`},
	{name: "positional parameters", set: `set -- 'a b' '' $'x\ny' "it's" -- -x`},
	{name: "many positional parameters", set: `set -- {1..2000}`},
	{name: "a directory with a newline in its name", set: `mkdir $'a\nb '; cd $'a\nb '; cd - >/dev/null; cd $'a\nb '`},
	{name: "a stack of directories", set: `mkdir 'a b'; pushd 'a b'; pushd /usr; pushd /`},
	{name: "completions", set: `complete -W "a b it\'s" foo; complete -F _f -o nospace bar; complete -D -F _d; complete -E -W x; complete -C 'x y' '!'`},
	{name: "disabled builtins", set: `enable -n times pwd`},
	{name: "limits", set: `ulimit -c 0; ulimit -S -n 200; ulimit -S -s 4096`},
	{name: "few descriptors", set: `ulimit -n 30`},
	{name: "small files", set: `ulimit -f 4000`},
	{name: "little memory", set: `ulimit -v 4000000`},
	{name: "little processor time", set: `ulimit -S -t 1000`},
	{name: "TMOUT", set: `export TMOUT=1`},
	{name: "TMOUT, readonly", set: `readonly TMOUT=900`},
	{name: "errexit", set: `set -e`, ask: `:`},
	{name: "an ignored EOF", set: `set -o ignoreeof`},
	{name: "restricted names", set: `BASH_ENV=/nope ENV=/nope SHELL=/bin/false; export SHELL`},
	{name: "special variables unset", set: `unset RANDOM SECONDS LINENO BASH_ARGV0 DIRSTACK COMP_WORDBREAKS HISTCMD GROUPS`, ask: `echo ok`},
	{name: "getopts", set: `set -- -a -b x; getopts ab o; getopts ab o`},
	{name: "locales", set: `LC_ALL=C; LANG=nope_NOPE; export LC_ALL`},
}

// A shell that a command has made useless is given up: the next command has one that works.
func TestAShellThatIsOfNoUseIsReplaced(t *testing.T) {
	testenv.Slow(t)
	for _, set := range []string{
		"ulimit -f 0", "ulimit -f 0; echo x >f", "set -r", "ulimit -n 3", "ulimit -v 100",
		"builtin() { :; }; command() { :; }; eval() { :; }; .() { :; }; printf() { :; }",
		"builtin() { :; }; command() { :; }; printf() { :; }",
		"enable -n . eval builtin printf declare", "readonly IFS=x PWD OLDPWD", "exec 0<&- 1>&- 2>&-",
		"shopt -s extdebug; set -T; trap 'true' DEBUG", "set -v", "set -x", "set -n", "set -t", "set -euo pipefail",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			run(t, sh, "kept=1")
			checkpoint(t, sh)
			_, _ = sh.Run(testenv.Context(t), set) // It may end bash, or fail: what counts is the next one.
			for range 2 {
				res := run(t, sh, "\\echo ok $kept")
				assert.Equal(t, "ok 1\n", res.Stdout.String())
				assert.Zero(t, res.ExitCode)
			}
		})
	}
}

// What is too large for a state is named, and nothing else is lost.
func TestALargeVariableIsRestoredAndALargerOneIsNamed(t *testing.T) {
	testenv.Slow(t)
	t.Parallel() // It computes for long under the race detector.
	sh := start(t, nil)
	type row struct {
		mib  string
		want string
		lost []string
	}
	rows := []row{{"4", "4194304", nil}}
	if testenv.All() {
		rows = []row{{"20", "20971520", nil}, {"40", "0", []string{"variable x, which has more than 32 MiB"}}}
	}
	for _, row := range rows {
		run(t, sh, "y=1; printf -v x '%*s' $(("+row.mib+"<<20)) ''; z=2")
		pid := bashPID(t, sh)
		checkpoint(t, sh)
		killAndWait(t, pid)
		res := run(t, sh, `echo ${#x} $y $z`)
		assert.Equal(t, row.want+" 1 2\n", res.Stdout.String())
		require.NotNil(t, res.Restart)
		assert.Equal(t, row.lost, res.Restart.Lost)
	}
}

// Whatever sets TMOUT: bash reads it by atoi(3), through references too.
func TestTMOUTDoesNotEndAnIdleShell(t *testing.T) {
	testenv.Slow(t)
	file := filepath.Join(t.TempDir(), "profile")
	require.NoError(t, os.WriteFile(file, []byte("TMOUT=1\nreadonly TMOUT\nexport TMOUT\n"), 0o600))
	type row struct {
		before, set, want string
		init              []string

		sh  *shell.PersistentShell
		pid int
	}
	rows := []row{
		{set: "TMOUT=1"},
		{set: "export TMOUT=1"},
		{set: "readonly TMOUT=1"},
		{set: "declare -i TMOUT=1"},
		{set: "read TMOUT <<<1"},
		{set: "printf -v TMOUT 1"},
		{set: "eval TMOUT=1"},
		{set: "f() { TMOUT=1; }; f"},
		{set: "f() { declare -g TMOUT=1; exit 3; }; f"},
		{set: "TMOUT=' 1'", want: " 1"},
		{set: "TMOUT=$'\\n\\t+1 second'", want: "\n\t+1 second"},
		{set: "TMOUT=4294967297", want: "4294967297"},
		{set: "v=1; declare -n TMOUT=v"},
		{set: "v=1; declare -n w=v TMOUT=w"},
		{set: ":", init: []string{file}},
		// A save that takes that long is put off for more than a second.
		{before: "for i in {1..8000}; do printf -v v$i %0999d 0; done", set: "TMOUT=1"},
	}
	idle := func() {
		for i := range rows {
			row := &rows[i]
			row.sh = start(t, &shell.Options{InitFiles: row.init})
			row.pid = bashPID(t, row.sh)
			run(t, row.sh, "set -- parameter; sleep 100 &")
			run(t, row.sh, cmp.Or(row.before, ":"))
			checkpoint(t, row.sh)
			run(t, row.sh, row.set)
		}
		three := time.NewTimer(3 * time.Second) // Three times what bash would wait.
		defer three.Stop()
		<-three.C
	}
	// Bash is given a line every third of a second. Where the machine itself stands still for as long as that leaves, bash is right.
	const most, tries = 300 * time.Millisecond, 5
	for try := 1; ; try++ {
		stood := stoodStill(idle)
		if stood < most || try == tries {
			break
		}
		t.Logf("the machine stood still for %v: again", stood)
		for _, row := range rows {
			require.NoError(t, row.sh.Close())
		}
	}
	for _, row := range rows {
		t.Run(row.set, func(t *testing.T) {
			res := run(t, row.sh, `echo "$$ $TMOUT $1"; jobs -r`)
			assert.Nil(t, res.Restart)
			begins := fmt.Sprintf("%d %s parameter\n", row.pid, cmp.Or(row.want, "1"))
			assert.True(t, strings.HasPrefix(res.Stdout.String(), begins), res.Stdout.String())
			assert.Contains(t, res.Stdout.String(), "sleep 100")
		})
	}
}

// stoodStill returns the longest time for which this program was not run while something was done.
func stoodStill(do func()) (longest time.Duration) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for last := time.Now(); ; {
			select {
			case <-over:
				return
			case <-ticks.C:
			}
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	}()
	do()
	close(over)
	<-ended
	return longest
}

// everything prints what bash has, but for what it changes itself.
const everything = `{
	\builtin declare -p; \builtin declare -f; \builtin declare -F; \builtin alias -p; \builtin trap -p
	\builtin shopt -p; \builtin set +o; \builtin umask; \builtin ulimit -Sa; \builtin ulimit -Ha; \builtin complete -p
	\builtin enable -n; \builtin printf '%q ' "$@"; \builtin dirs -l -p; } 2>&1`

// changing are the declarations that are never the same. Bash gives COMP_WORDBREAKS its value
// when somebody asks for it.
var changing = regexp.MustCompile(`(?m)^declare -\S+ (_|BASH\w*|EPOCH\w+|RANDOM|SRANDOM|SECONDS|PPID|LINENO|PIPESTATUS|LIMPET_SESSION|FUNCNAME|HISTCMD|COLUMNS|LINES|COMP_WORDBREAKS)\b.*\n`)

func TestEveryStateSurvivesItsBash(t *testing.T) {
	testenv.Slow(t)
	for i, row := range oddStates {
		deaths := 1
		if i%4 == 0 || testenv.All() {
			deaths = 2 // What was restored is restored again.
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			pid := bashPID(t, sh)
			_, err := sh.Run(testenv.Context(t), row.set)
			require.NoError(t, err)
			ask := row.ask
			if ask == "" {
				ask = everything
			}
			want := answerOf(t, sh, ask)
			state := checkpoint(t, sh)
			for round := range deaths {
				killAndWait(t, pid)
				res := run(t, sh, "\\echo ok $$")
				require.Regexp(t, `^ok \d+\n$`, res.Stdout.String())
				assert.Zero(t, res.ExitCode)
				pid, err = strconv.Atoi(strings.Fields(res.Stdout.String())[1])
				require.NoError(t, err)
				require.NotNil(t, res.Restart)
				if round == 0 {
					assert.Equal(t, row.lost, notTaken(res.Restart.Lost), "what is missing is named")
				} else {
					assert.Empty(t, notTaken(res.Restart.Lost), "once")
				}
				assert.Equal(t, want, answerOf(t, sh, ask))
			}

			other := start(t, &shell.Options{State: &state})
			res := run(t, other, "\\echo ok")
			assert.Equal(t, "ok\n", res.Stdout.String())
			if row.lost != nil {
				require.NotNil(t, res.Restart)
				assert.Equal(t, row.lost, notTaken(res.Restart.Lost))
			}
			assert.Equal(t, want, answerOf(t, other, ask))

			restart, err := sh.Restore(testenv.Context(t), state)
			require.NoError(t, err)
			assert.Equal(t, row.lost, notTaken(restart.Lost))
			assert.Equal(t, want, answerOf(t, sh, ask))
		})
	}
}

// answerOf runs a script that asks for the state, and returns what it prints without what changes.
func answerOf(t *testing.T, sh *shell.PersistentShell, ask string) string {
	t.Helper()
	res := run(t, sh, ask)
	return changing.ReplaceAllString(res.Stdout.String(), "")
}

// notTaken returns the names of what bash could not take back.
func notTaken(lost []string) (names []string) {
	for _, text := range lost {
		if list, ok := strings.CutPrefix(text, "what bash could not take back: "); ok {
			names = append(names, strings.Split(list, ", ")...)
		}
	}
	return slices.Clip(names)
}
