package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// scriptEnds are ways in which a script ends. E is exit, under a name that only bash could tell.
var scriptEnds = []struct{ name, script string }{
	{"at its end", `:`},
	{"an exit", `exit 3`},
	{"an exit in a function", `f() { exit 3; }; f`},
	{"an exit in two functions", `g() { exit 3; }; f() { g; }; f`},
	{"an exit that only bash can tell", `$E 3`},
	{"such an exit in a function", `f() { $E 3; }; f`},
	{"such an exit in two functions", `g() { local y=1; $E 3; }; f() { local x=1; g; }; f`},
	{"such an exit behind a local variable of the name", `f() { local TOKEN=mine; $E 3; }; f`},
	{"an exit in a function in posix mode", `set -o posix; f() { exit 3; }; f`},
	{"an exit in posix mode", `set -o posix; $E 3`},
	{"an exit in a sourced file", `. ./lib`},
	{"an exit in a function of a sourced file", `. ./library; f`},
	{"an exit in the last command of a pipeline", `shopt -s lastpipe; f() { exit 3; }; echo | f`},
	{"such an exit there", `shopt -s lastpipe; f() { $E 3; }; echo | f`},
	{"a fatal expansion", `: ${nosuch?}`},
	{"a fatal expansion in a function", `f() { : ${nosuch?}; }; f`},
	{"nounset in a function", `f() { set -u; : $nosuch; }; f`},
	{"errexit", `set -e; false`},
	{"errexit in a function", `f() { set -e; false; }; f`},
	{"errexit in two functions", `g() { false; }; f() { g; }; set -e; f`},
	{"a return", `f() { return 3; }; f; return 4`},
	{"another program", `exec true`},
	{"another program from a function", `f() { exec true; }; f`},
	{"no such program", `exec ./nosuch`},
	{"an error of the syntax", `echo (`},
	{"a readonly variable", `f() { readonly r=5; r=6; }; f`},
	{"a division by zero in posix mode", `set -o posix; : $((1/0))`},
	{"a file that is not there in posix mode", `set -o posix; . ./nosuch`},
	{"a signal", `kill -KILL $BASHPID`},
	{"a signal in a function", `f() { kill -KILL $BASHPID; }; f`},
	{"a signal that is no end for an interactive shell", `f() { kill -TERM $BASHPID; }; f`},
	{"a signal behind which the exit trap runs", `f() { kill -HUP $BASHPID; sleep 9; }; f`},
	{"a trap for EXIT", `trap 'echo $TOKEN' EXIT; f() { exit 3; }; f`},
	{"a change of the variable", `TOKEN=other; $E 3`},
	{"a declaration of the variable", `declare -x TOKEN=other; f() { $E 3; }; f`},
	{"a readonly variable of the name in a function", `f() { local -r TOKEN=other; $E 3; }; f`},
	{"the variable is unset", `unset TOKEN; $E 3`},
	{"a command that exports all", `set -a; x=$TOKEN; x=; f() { $E 3; }; f`},
}

// What belongs to a request does not outlive it, whichever way its script ends, in a fork or in
// the session's bash.
func TestWhatBelongsToARequestEndsWithIt(t *testing.T) {
	testenv.Slow(t)
	for _, before := range []struct{ name, set, want string }{
		{"unset", "", "unset"},
		{"exported", "export TOKEN=old", `declare -x TOKEN="old"`},
		{"a variable", "TOKEN=old", `declare -- TOKEN="old"`},
	} {
		for _, in := range []string{"", inBash} {
			for i, end := range scriptEnds {
				if before.set != "export TOKEN=old" && i%6 != 2 && !testenv.All() {
					continue // The others differ by little.
				}
				name := before.name + "/" + end.name
				if in != "" {
					name += ", in bash"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					home, other := t.TempDir(), t.TempDir()
					require.NoError(t, os.WriteFile(filepath.Join(other, "lib"), []byte("exit 3\n"), 0o600))
					require.NoError(t, os.WriteFile(filepath.Join(other, "library"), []byte("f() { exit 3; }\n"), 0o600))
					sh := start(t, &shell.Options{Dir: home})
					run(t, sh, "cd /; cd "+home+"; E=exit; "+before.set)
					checkpoint(t, sh)
					// It may end bash, or fail: what counts is the next one.
					_, _ = sh.Do(testenv.Context(t), command.Request{
						Script: in + end.script, Env: []string{"TOKEN=secret", "ANOTHER=secret"}, Dir: other,
					})
					assert.Equal(t, home, sh.Dir())
					res := run(t, sh, `declare -p TOKEN 2>/dev/null || echo unset; echo ${ANOTHER-unset}; env | grep secret; pwd; echo $OLDPWD; declare -p | grep -c secret`)
					got := strings.Split(strings.TrimSpace(res.Stdout.String()), "\n")
					assert.Equal(t, []string{before.want, "unset", home, "/", "0"}, got)
				})
			}
		}
	}
}

// On a full disk bash cannot write down what a request hides. The script takes the file away here.
func TestARequestLeavesNothingWhereBashCouldNotWriteDownWhatItHides(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "E=exit; export TOKEN=old")
	checkpoint(t, sh)
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: inBash + `rm "${BASH_SOURCE%/*}/before"; f() { $E 3; }; f`, Env: []string{"TOKEN=secret", "ANOTHER=secret"},
	})
	require.NoError(t, err)
	require.NotNil(t, res.Restart)
	assert.Equal(t, `declare -x TOKEN="old" unset`, says(t, sh, `echo "$(declare -p TOKEN) ${ANOTHER-unset}"`))
}
