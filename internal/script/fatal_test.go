package script_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// variables are those that are set for the commands of TestFatal.
var variables = map[string]string{
	"one": "1", "null": "", "zero": "0", "ref": "one", "lost": "nope", "spaces": "a b", "sum": "nope+1", "arr": "1", "HOME": "/",
}

const setup = "one=1 null= zero=0 ref=one lost=nope spaces='a b' sum=nope+1 arr=(1) HOME=/\n"

func lookup(name string) (value string, set bool) {
	name, element, _ := strings.Cut(name, "[")
	value, set = variables[name]
	return value, set && (element == "" || element == "0]")
}

// TestFatal has real bash as the oracle: after a fatal expansion, "bash -c" ends with 127 and
// does not run the next line. Bash goes on with that line after any other error in the table.
func TestFatal(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for _, test := range []struct {
		command string
		plain   bool // fatal without nounset
		nounset bool // fatal with it
	}{
		{": $one $@ $* $# $? $- $_ $0", false, false},
		{": $x", false, true},
		{": ${x}", false, true},
		{`: "$x"`, false, true},
		{": '$x' \\$x $'$x'", false, false},
		{": $1", false, true},
		{": ${12}", false, true},
		{": $!", false, true},

		{": ${x?}", true, true},
		{": ${x:?}", true, true},
		{": ${null?}", false, false},
		{": ${null:?}", true, true},
		{": ${one:?}", false, false},
		{": ${1?}", true, true},
		{": ${@?}", true, true},
		{": ${*:?}", true, true},
		{": ${#?}", false, false},
		{": ${x[1]?}", true, true},
		{": ${arr[@]:?}", false, false},
		{": ${x[@]?}", true, true},
		{": ${HOME+${x?}}", true, true},
		{": ${x+${y?}}", false, false},
		{": ${x-${y?}}", true, true},
		{": ${one-${y?}}", false, false},
		{": ${null:-${y?}}", true, true},
		{": ${x/${y?}}", false, true},
		{": ${one/${y?}}", true, true},
		{": ${!ref?}", false, false},
		{": ${!lost?}", true, true},
		{": ${!null?}", false, false},

		{": ${#x}", false, true},
		{": ${x%a} ", false, true},
		{": ${x/a}", false, true},
		{": ${x:1}", false, true},
		{": ${x^}", false, true},
		{": ${x@Q}", false, true},
		{": ${one#$x}", false, true},
		{": ${one:$x}", false, true},
		{": ${one:x}", false, true},
		{": ${x-} ${x:-} ${x+a} ${x:+a}", false, false},
		{": ${x=a}", false, false},
		{": ${x-$y}", false, true},
		{": ${x:+$y}", false, false},
		{": ${x[0]}", false, true},
		{": ${x[@]} ${x[*]} ${#x[@]} ${#x[0]}", false, false},
		{": ${x[@]:0} ${x[@]%a} ${@:1} ${*%x}", false, false},
		{": ${!x*} ${!x[@]}", false, false},
		{": ${!x}", false, false},
		{": ${!lost}", false, true},
		{": ${!lost-1}", false, false},
		{": ${!spaces}", false, false},

		{": ${x@Z}", false, true},
		{": ${one@Z}", true, true},
		{`: "a@b.c ${one@Z}"`, true, true},
		{": ${one@QQ}", true, true},
		{": ${arr[0]@Z}", true, true},
		{": ${one@}", true, true},
		{": ${x@}", false, true},
		{": ${#@} ${!one@}", false, false},
		{": ${one@k}", false, false},
		{": ${@@Z}", false, false},
		{": ${x;y}", false, false},
		{": ${one:1/0}", false, false},
		{": $((1/0))", false, false},

		{": $((x))", false, true},
		{": $(($x))", false, true},
		{": $[x]", false, true},
		{": $((one + zero))", false, false},
		{": $((x=1))", false, false},
		{": $((x++))", false, true},
		{": $((x+=1))", false, true},
		{": $((0 && x)) $((zero && x)) $((one || x)) $((1 ? 2 : x))", false, false},
		{": $((1 && x))", false, true},
		{": $((0 && $x))", false, true},
		{": $((! zero || x))", false, false},
		{": $((lost))", false, true},
		{": $((sum))", false, true},
		{": $((x[1]))", false, true},
		{": $((y=${x?}))", true, true},
		{"((x))", false, true},
		{"let x+1", false, true},
		{"let 'x+1'", false, true},

		{"[[ $x ]]", false, true},
		{"[[ x -eq 1 ]]", false, true},
		{"[[ -v x ]]", false, false},
		{"[[ 1 == 2 && $x ]]", false, false},
		{"[[ -n ${x-} && $x = a ]]", false, false},
		{"[[ -z ${x-} || $x = a ]]", false, false},
		{"[[ -v x && $x ]]", false, false},
		{"[[ ! -v x && $x ]]", false, true},
		{"[[ $one == 1 && $x ]]", false, true},
		{"[[ -z $x || -n $x ]]", false, true},
		{"test -v x", false, false},

		{"y=$x", false, true},
		{"y=$x cat", false, true},
		{"cat $x", false, true},
		{"cat >$x", false, false},
		{"cat <<<${x?}", false, false},
		{": <<<$x", false, true},
		{": >${x?}", true, true},
		{"cat <<E\n$x\nE\n", false, false},
		{": <<E\n$x\nE\n", false, true},
		{": <<'E'\n$x\nE\n", false, false},
		{"{ :; } <<<$x", false, true},
		{"a=(${x?})", true, true},
		{"arr[${x?}]=1", true, true},
		{"declare y=$x", false, true},
		{"for i in $x; do :; done", false, true},
		{"for ((i=x; i<1; i++)); do :; done", false, true},
		{"case $x in *) :;; esac", false, true},
		{"if :; then : $x; fi", false, true},
		{"time : $x", false, true},
		{"! : $x", false, true},
		{"(: $x)", false, false},
		{": $(: ${x?})", false, false},
		{": $x | :", false, false},
		{": | : ${x?}", false, false},
		{": ${x?} &", false, false},
		{"f() { : ${x?}; }", false, false},
	} {
		assert.Equal(t, test.plain, script.Fatal(test.command, "braceexpand:hashall", lookup), "%q", test.command)
		assert.Equal(t, test.nounset, script.Fatal(test.command, "braceexpand:nounset", lookup), "%q under nounset", test.command)
		require.Equal(t, test.plain, bashEnds(t, setup+test.command), "bash runs %q", test.command)
		require.Equal(t, test.nounset, bashEnds(t, "set -u\n"+setup+test.command), "bash runs %q under nounset", test.command)
	}
}

// bashEnds reports whether "bash -c" ends with 127, and does not run the line behind text.
func bashEnds(t *testing.T, text string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", text+"\necho NEXT")
	cmd.Dir = t.TempDir()
	output, err := cmd.Output()
	require.NoError(t, context.Cause(t.Context()))
	if strings.HasSuffix(string(output), "NEXT\n") {
		return false
	}
	require.Error(t, err, "%q", text)
	require.Equal(t, 127, cmd.ProcessState.ExitCode(), "%q", text)
	return true
}

// TestFatalHeads has the heads of loops and cases that $BASH_COMMAND shows instead of the command.
func TestFatalHeads(t *testing.T) {
	for _, head := range []string{"for i in $x", "select i in $x", "case $x in "} {
		assert.True(t, script.Fatal(head, "nounset", lookup), head)
		assert.False(t, script.Fatal(head, "", lookup), head)
	}
	assert.False(t, script.Fatal("for i in $one", "nounset", lookup))
	assert.False(t, script.Fatal("echo (", "nounset", lookup))
}

// TestFatalEnds has values that name themselves, and each other.
func TestFatalEnds(t *testing.T) {
	values := map[string]string{"a": "a+b", "b": "a+a+b"}
	assert.False(t, script.Fatal("((a))", "nounset", func(name string) (string, bool) { return values[name], true }))
}

func FuzzFatal(f *testing.F) {
	for _, seed := range []string{": ${x@Z}@}", "[[ -n ${x-} && $x ]] <<<$y", "((a?b:c&&d))", "let 'x' a[1]", "case $x in ", "${@:1:x} ${!x} ${#a[0]}"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		script.Fatal(text, "nounset", lookup)
		script.Fatal("((v))", "nounset", func(string) (string, bool) { return text, true })
	})
}
