package saved

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// functionsOf is a state with the functions that the script defines, as bash
// writes them.
func functionsOf(t *testing.T, script string) State {
	t.Helper()
	out, err := exec.CommandContext(testenv.Context(t), "bash", "-c", script+"\ndeclare -f").Output()
	require.NoError(t, err)
	var s State
	s.part[partFunctions] = out
	return s
}

// What bash itself writes is the oracle.
func TestFunctionsTakesApartWhatBashWrites(t *testing.T) {
	for _, names := range [][]string{nil, {"f"}, {"a:b", "é", "my-f", "trap"}} {
		var script, bodies string
		for _, name := range names {
			script += name + "() { local x=$1; g() { echo $x; }; (:); cat <<X\n}\n  g () \nX\n}\n"
			bodies += "\ndeclare -f " + name + "; printf '\\0'"
		}
		out, err := exec.CommandContext(testenv.Context(t), "bash", "-c", script+bodies).Output()
		require.NoError(t, err)
		want := make(map[string]string)
		for i, name := range names {
			want[name] = strings.Split(string(out), "\x00")[i]
		}
		assert.Equal(t, want, functionsOf(t, script).Functions())
	}
	assert.Empty(t, State{}.Functions())
}

// A command can forge the state, and must not make the program run out of memory,
// stack or time by it.
func TestAForgedStateIsReadInLittleTime(t *testing.T) {
	list := func(count int, line string) []byte {
		var b strings.Builder
		for i := range count {
			b.WriteString(strings.ReplaceAll(line, "N", strconv.Itoa(i)))
		}
		return []byte(b.String())
	}
	deep := func(opened string) []byte { return []byte("f () \n" + strings.Repeat(opened, 1<<17)) }
	for name, forged := range map[string]State{
		"functions that call each other": {part: [parts][]byte{partFunctions: list(10_000, "fN () \n{ \n    fN+1; trap\n}\n")}},
		"a function of many lines":       {part: [parts][]byte{partFunction: []byte("f"), partFunctions: slices.Concat([]byte("f () \n"), list(100_000, "    :\n"))}},
		"a function that nests":          {part: [parts][]byte{partFunction: []byte("f"), partFunctions: deep("{ ")}},
		"expansions that nest":           {part: [parts][]byte{partFunction: []byte("f"), partFunctions: deep("$(")}},
		"a call that nests":              {part: [parts][]byte{partFunction: []byte(strings.Repeat("f ", 1<<17)), partFunctions: []byte("f () \n{ \n" + strings.Repeat("local a;", 1<<12) + "}\n")}},
		"many variables":                 {part: [parts][]byte{partVariables: list(20_000, "declare -- vN=\"x\"\n")}},
		"a variable that nests":          {part: [parts][]byte{partVariables: []byte("declare -- v=" + strings.Repeat("$(", 1<<17))}},
		"a quote that is open":           {part: [parts][]byte{partVariables: []byte(strings.Repeat("declare -- v=\"\n", 1<<16))}},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				forged.Functions()
				forged.Leave(forged)
			}()
			select {
			case <-done:
			case <-testenv.Context(t).Done():
				t.Fatal("it goes on and on")
			}
		})
	}
}

// What bash itself writes is the oracle.
func TestDeclarationsTakesApartWhatBashWrites(t *testing.T) {
	for _, script := range []string{
		`x=1`, `x=`, `declare x`, `declare -i x`, `x=$'a\nb'`, `x='a"b\c$d'`, `x=\'`, `x=$'\x01\\\''`, `x=$'a\ndeclare -- y="1"\n'`,
		`x=(a b)`, `x=()`, `declare -a x`, `x=("a b" $'c\nd' 'e"f')`, `declare -A x=([a]=1 ["b c"]=2 [$'d\n']=3 ['"']=4 [']']=5)`,
		`y=1; declare -n x=y`, `declare -r x=1`, `export x=é`, `x=$'\xff'`, `declare -u x=a`,
	} {
		cmd := exec.CommandContext(testenv.Context(t), "bash", "-c", script+"\ndeclare -p; printf '\\0'; declare -p x 2>/dev/null || { declare -p | grep -a ' x='; }")
		cmd.Env = []string{"z=1"}
		out, err := cmd.Output()
		require.NoError(t, err, script)
		all, want, _ := strings.Cut(string(out), "\x00")
		var again, found string
		for _, d := range declarations([]byte(all)) {
			assert.NotEmpty(t, d.name, "%q", d.text)
			again += string(d.text)
			if d.name == "x" {
				found += string(d.text)
			}
		}
		assert.Equal(t, all, again, script)
		assert.Equal(t, want, found, script)
	}
}

func TestLeaveTakesLocalsBack(t *testing.T) {
	s := functionsOf(t, `f() { local a=1 b; declare c=2; declare -g d=3; g; }; g() { typeset e; }`)
	s.InFunction = true
	s.part[partFunction] = []byte("g f main ")
	s.part[partVariables] = []byte("declare -- a=\"1\"\ndeclare -- c=\"2\"\ndeclare -- d=\"3\"\ndeclare -- e\ndeclare -- z=\"new\"\n")
	var before State
	before.part[partVariables] = []byte("declare -- a=\"0\"\ndeclare -- d=\"0\"\ndeclare -- z=\"0\"\n")
	left := s.Leave(before)
	assert.False(t, left.InFunction)
	assert.Equal(t, "declare -- d=\"3\"\ndeclare -- z=\"new\"\ndeclare -- a=\"0\"\n", string(left.part[partVariables]))
}
