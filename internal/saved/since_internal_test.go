package saved

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
)

// sinceTable holds what a shell has, and a script that changes it.
var sinceTable = []struct{ name, before, script string }{
	{"nothing", "x=1", ":"},
	{"the directory", "cd /usr", "cd bin"},
	{"the directory, and back", "cd /usr; cd /tmp; cd /usr", "cd /; cd /usr/bin; cd /usr; cd /tmp"},
	{"the directory, and OLDPWD gone", "cd /usr", "cd /tmp; unset OLDPWD"},
	{"PWD gone", "cd /usr", "cd /tmp; unset PWD"},
	{"PWD made up", "cd /usr", "cd /tmp; PWD=/made/up"},
	{"a variable", "x=1", "y=2; x=3"},
	{"a variable gone", "x=1; export E=e", "unset x E"},
	{"the usual ones gone", ":", "unset IFS PATH OLDPWD"},
	{"exported", "x=1; export y=2", "export x; declare +x y"},
	{"exported and changed", "export y=2", "y=3; declare +x y"},
	{"readonly", "x=1; y=2", "readonly x; readonly y=3 z=4"},
	{"readonly in both", "readonly x=1", "y=$x"},
	{"readonly, and exported now", "readonly x=1", "export x"},
	{"an integer that is none", "x='a b'", "declare -i x"},
	{"an integer that is none, and another", "x='a b'; declare -i x", "declare +i x; x='c d'; declare -i x"},
	{"an integer, exported", "P=/usr/bin", "declare -ix P"},
	{"integers that are none", ":", "a=(x/ 'y z'); declare -ai a"},
	{"no integer any more", "declare -i n=5", "declare +i n; n=abc"},
	{"upper case only from now on", "x=Ab y=Ab z=Ab", "declare -u x; declare -l y; declare -c z"},
	{"another case", "declare -u x=Ab", "declare +u x; declare -l x=Ab"},
	{"an array", ":", "a=([5]=x [1]='y z'); b=(); declare -a c"},
	{"an array changes", "a=(1 2 3)", "unset 'a[1]'; a+=(4)"},
	{"an array becomes a word", "a=(1 2 3)", "unset a; a=1"},
	{"an array becomes a map", "a=(1 2 3)", "unset a; declare -A a=([x]=1)"},
	{"a map with odd keys", "declare -A m", `m["]"]=1; m["'"]=2; m[$'\n']=3; m['$x']=4; m['a b']=5; m['"']=6; m['\']=7; m['[']=8; m['*']=9; k='@'; m[$k]=10; m['` + "`" + `']=11`},
	{"declared only", "x=1", "declare -x X; declare -i I; declare -a A; declare -A M; unset x; declare x"},
	{"a reference", "x=1", "declare -n r=x; r=2"},
	{"a reference elsewhere", "x=1 y=2; declare -n r=x", "declare -n r=y; r=3"},
	{"a reference gone", "x=1; declare -n r=x", "unset -n r"},
	{"a reference becomes a variable", "x=1; declare -n r=x", "unset -n r; r=5"},
	{"a variable becomes a reference", "x=1; r=5", "unset r; declare -n r=x"},
	{"a reference to an element", "a=(1 2)", "declare -n r='a[1]'; r=7"},
	{"references in a circle", ":", "declare -n a=b; declare -n b=a"},
	{"odd bytes", ":", `x=$'\xff\x01\n'; y='declare -x z="1"'; z="a'b"`},
	{"a function", "f() { echo f; }", "g() { echo g; }; f() { echo h; }"},
	{"a function gone", "f() { echo f; }; g() { :; }", "unset -f f"},
	{"odd functions", "eval 'a.b() { :; }'", "eval '=() { echo eq; }; a:b() { :; }; !() { :; }'; unset -f a.b"},
	{"functions with documents", ":", "f() { cat <<EOF\nit's \\$x \"y\"\nEOF\n}\n"},
	{"a function exported", "f() { echo f; }", "export -f f"},
	{"a function not exported any more", "f() { echo f; }; export -f f", "export -nf f"},
	{"a function readonly", "f() { echo f; }", "readonly -f f"},
	{"a function with an extended pattern", ":", "shopt -s extglob\neval 'f() { echo !(x); }'"},
	{"aliases", "alias a=b c=d", "unalias a; alias c=e f='echo \"it'\\''s\"'"},
	{"aliases that are expanded", "shopt -s expand_aliases; alias ls='echo no'", "eval 'f() { \\ls; }'; g() { command ls; }"},
	{"aliases switched on", "alias ls='echo no'; g() { ls; }", "shopt -s expand_aliases; eval 'f() { \\ls; }'"},
	{"functions beside an alias", "g() { ls; }", "f() { ls; }; shopt -s expand_aliases; alias ls='echo no'"},
	{"traps", "trap 'echo usr' USR1; trap : USR2", "trap - USR1; trap 'echo \"a\nb\"' USR2; trap '' HUP"},
	{"traps of bash", ":", "trap 'x=1' ERR; trap : RETURN; trap : DEBUG"},
	{"traps of bash gone", "trap : ERR; trap : DEBUG; trap : RETURN", "trap - ERR DEBUG RETURN"},
	{"the umask", ":", "umask 077"},
	{"options", "shopt -s nullglob; set -f", "shopt -s extglob; shopt -u nullglob; set +f; set -a; set -C"},
	{"posix mode", "shopt -s expand_aliases", "f() { :; }; set -o posix"},
	{"posix mode left", "set -o posix", "set +o posix; a:b() { :; }"},
	{"posix mode, by its variable", ":", "POSIXLY_CORRECT=1"},
	{"in posix mode", "a:b() { :; }; set -o posix", "x=1; f() { :; }"},
	{"positional parameters", "set -- a", "set -- 'a b' '' $'x\ny' \"it's\""},
	{"positional parameters gone", "set -- a", "set --"},
	{"a stack of directories", "cd /usr", "pushd /tmp >/dev/null; pushd / >/dev/null"},
	{"a stack of directories gone", "cd /usr; pushd /tmp >/dev/null; pushd / >/dev/null", "popd >/dev/null"},
	{"completions", "complete -W 'a b' foo; complete -F f bar", "complete -r foo; complete -F g -D; complete -W \"it's\" bar"},
	{"disabled builtins", "enable -n times", "enable times; enable -n pwd"},
	{"limits", ":", "ulimit -c 0; ulimit -S -n 100"},
	{"hard limits", "ulimit -S -n 100", "ulimit -n 90"},
	{"limits in posix mode", ":", "ulimit -S -f 4000; set -o posix"},
	{"arguments that are assignments", "set -k", "x=1; a=(1); f() { :; }"},
	{"a function that hides builtins", "f() { :; }", "builtin() { :; }; x=1"},
	{"functions that hide builtins", "f() { :; }", "builtin() { :; }; command() { :; }; readonly -f f; alias a=b"},
	{"functions named as builtins", ":", "declare() { :; }; eval() { :; }; unset() { :; }; printf() { :; }"},
	{"a state with functions named as builtins", "declare() { :; }; eval() { :; }; unset() { :; }; printf() { :; }; x=1; f() { :; }", "unset x; y=1; \\builtin unset -f f"},
}

// A shell that is brought from one state to the next has that.
func TestSinceLeadsFromOneStateToTheOther(t *testing.T) {
	for _, row := range sinceTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			states := statesOf(t, row.before, row.script)
			before, after := states[0], states[1]
			if strings.Contains(row.script, "/made/up") {
				after.Dir = "/tmp"
			}
			got := statesOf(t, row.before, after.Since(before))[1]
			if strings.Contains(row.script, "/made/up") {
				got.Dir = "/tmp" // No shell believes PWD.
			}
			assert.Empty(t, texts(after.Since(got)), "what is missing")
			assert.Empty(t, texts(got.Since(after)), "what is too much")
			assert.Equal(t, after.Dir, got.Dir)
			if row.script == ":" {
				assert.Empty(t, after.Since(before))
			}
		})
	}
}

// A piece that bash cannot take is known, and takes no other along.
func TestAPieceThatIsRefusedTakesNoOtherAlong(t *testing.T) {
	bad := []Piece{
		newPiece("bad", "syntax", []byte("declare -- x=( \"")),
		newPiece("bad", "readonly", []byte("declare -- UID=7")),
		newPiece("bad", "demand", []byte("eval ': ${nope?}'")),
		{Kind: kindFunction, Name: "f", text: []byte("f () { echo !(x); }\n"), function: true},
		newPiece("bad", "status", []byte("unalias -- none")),
	}
	var pieces []Piece
	var want []int
	for i, p := range bad {
		want = append(want, len(pieces))
		pieces = append(pieces, p, newPiece(kindVariable, "v", []byte("declare -- v"+string(rune('a'+i))+"=1")))
	}
	refused := filepath.Join(t.TempDir(), "refused")
	states := feed(t, []string{restore(t, script.ViaBuiltin, pieces, refused)}, []script.Names{script.ViaBuiltin})
	said, err := os.ReadFile(refused)
	require.NoError(t, err)
	assert.Equal(t, strings.Trim(fmt.Sprint(want), "[]"), strings.Join(strings.Fields(string(said)), " "))
	for i := range bad {
		assert.Contains(t, string(states[0].part[partVariables]), "declare -- v"+string(rune('a'+i))+"=\"1\"\n")
	}
}

func TestOptionsOfAScriptEndWithIt(t *testing.T) {
	states := statesOf(t, "set -o history", "set -euo pipefail; set -xv; set +o history; set -f; trap 'echo bye' EXIT")
	assert.Equal(t, []string{"set +o history", "set -o noglob"}, texts(states[1].Since(states[0])))
}

func texts(pieces []Piece) (all []string) {
	for _, p := range pieces {
		if p.Kind != "" {
			all = append(all, strings.TrimSpace(string(p.script(""))))
		}
	}
	return all
}

// statesOf returns the states of a bash after each step: a script, or pieces.
func statesOf(t *testing.T, steps ...any) []State {
	t.Helper()
	n := script.ViaBuiltin
	var lines []string
	var names []script.Names
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			for _, name := range []string{"builtin", "command"} {
				if strings.Contains(s, name+"() {") {
					n = NamesAfter(n, []Piece{{Name: name, function: true}})
				}
			}
			lines = append(lines, "\\eval "+script.Quote(s)+"\n")
		case []Piece:
			lines = append(lines, restore(t, script.ViaBuiltin, s, filepath.Join(t.TempDir(), "refused")))
			n = NamesAfter(n, s)
		}
		names = append(names, n)
	}
	return feed(t, lines, names)
}

// restore returns the line by which bash takes the pieces.
func restore(t *testing.T, n script.Names, pieces []Piece, refused string) string {
	t.Helper()
	before, text := Script(n, pieces, refused)
	file := filepath.Join(t.TempDir(), "pieces")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return fmt.Sprintf("%s%s. %s >/dev/null 2>&1\n", before, n, script.Quote(file))
}

// feed has an interactive bash read lines, and returns its state after each.
func feed(t *testing.T, lines []string, names []script.Names) (states []State) {
	t.Helper()
	var input strings.Builder
	input.WriteString("unset -v PS1 PS2 HISTFILE; set +o history +o histexpand; shopt -u expand_aliases\n")
	dir := t.TempDir()
	file := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	for i, line := range lines {
		input.WriteString(line)
		fmt.Fprintf(&input, "{ %s; } 2>/dev/null >|%s\n", Commands(names[i], "id", Nothing), script.Quote(file(i)))
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "--noediting", "-i")
	cmd.Stdin = strings.NewReader(input.String())
	var said bytes.Buffer
	cmd.Stderr = &said
	_ = cmd.Run() // Its status is that of the last line.
	for i := range lines {
		b, err := os.ReadFile(file(i))
		require.NoError(t, err, said.String())
		state, err := Parse(b, file(i), "id", "seal")
		require.NoError(t, err, said.String())
		states = append(states, state)
	}
	return slices.Clip(states)
}

// What a trap for DEBUG, or set -x with BASH_XTRACEFD=1, prints between the traps is neither a trap
// nor an alias.
func TestTheTrapsOfAForkAreTrapsAlone(t *testing.T) {
	said := "+ builtin trap -p\ntrap -- 'exit' INT\ntrap -- 'echo dbg' DEBUG\ndbg\n+++ builtin printf '\\0'\n"
	all := withTraps([]byte("alias a='b'\ntrap -- 'old' USR1\n"), trapsIn([]byte(said)), "0123")
	assert.Equal(t, "alias -- a='b'\ntrap -- 'exit' INT\ntrap -- 'echo dbg' DEBUG\n", string(all))
}
