package ipc

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
)

var update = flag.Bool("update", false, "write testdata/rendered.txt anew")

// rendered are the calls whose text testdata/rendered.txt shows: a row for each field of
// Call and of Fork, named after it, and some for fields that change each other's text. ID,
// Script and Names are the same in all rows that do not say otherwise.
var rendered = []struct {
	name, about string
	call        Call
	merged      bool // stderr into stdout
}{
	{name: "Script", about: "and nothing besides, as most commands are"},
	{name: "Script, of several lines, with quotes", call: Call{Script: "echo 'it''s'\ncat <<EOF\nwide: 世界\nEOF"}},
	{name: "Script, merged", about: "stderr goes where stdout goes", merged: true},
	{name: "ID", call: Call{ID: "OTHER-ID"}},
	{name: "Env", call: Call{Env: []string{"A=1", "B=two words", "C=it's"}}},
	{name: "Back", call: Call{Back: "/home/me"}},
	{name: "Back, Anew", call: Call{Back: "/home/me", Anew: true}},
	{name: "Back, merged", about: "it says on stdout why it fails", call: Call{Back: "/home/me"}, merged: true},
	{name: "Dir", call: Call{Dir: "/srv/a b"}},
	{name: "Status", call: Call{Status: 3}},
	{name: "Inner", call: Call{Inner: true}},
	{name: "Stdin", call: Call{Stdin: true}},
	{name: "Input", call: Call{Stdin: true, Input: "/run/s/in"}},
	{name: "Aside, Input", call: Call{Aside: true, Stdin: true, Input: "/run/s/in"}},
	{name: "Aside", call: Call{Aside: true}},
	{name: "Aside, Stdin", call: Call{Aside: true, Stdin: true}},
	{name: "Before, Traps", about: "what Traps adds is before these", call: Call{Traps: true, Before: []string{`\builtin eval -- '[[ x ]]'`}}},
	{name: "Enable", call: Call{Enable: true}},
	{name: "Names", about: "there is a function named builtin", call: Call{Names: script.ViaCommand}},
	{name: "Names, and one named command", call: Call{Names: script.Plain}},
	{name: "Env, Names", about: "command eval is used for Env", call: Call{Env: []string{"A=1"}, Names: script.Plain}},
	{name: "Back, Before, Dir, Status, Inner", about: "in this order", call: Call{
		Back: "/home/me", Dir: "/srv", Status: 3, Inner: true, Before: []string{`\builtin eval -- '[[ x ]]'`},
	}},
	{name: "Fork", call: Call{Fork: &Fork{}}},
	{name: "Fork, Env, Unset", call: Call{Fork: &Fork{}, Env: []string{"A=1"}, Unset: []string{"B"}}},
	{name: "Fork.Save", call: Call{Fork: &Fork{Save: true}}},
	{name: "Fork.Options", about: "some only where limpet's own words are behind", call: Call{Fork: &Fork{Options: []string{"errexit", "xtrace"}}}},
	{name: "Fork.Trapped, Fork.Save, Inner", call: Call{Fork: &Fork{Trapped: true, Save: true}, Inner: true}},
	{name: "Fork.Disables, Fork.Save", call: Call{Fork: &Fork{Disables: true, Save: true}}},
	{name: "Fork.Traps", about: "of bash, which a fork has not", call: Call{Fork: &Fork{Traps: someState("", "").UserTraps()}}},
	{name: "Fork.Fresh, Fork.Bash, Fork.New", call: Call{Fork: &Fork{Fresh: someState("x=1", "f () \n{ \n    echo f\n}"), Bash: "/bin/bash", New: *someState("", "")}}},
	{name: "Fork.Fresh, Status, Inner, Fork.Save, Env", call: Call{
		Fork: &Fork{Fresh: someState("x=1", ""), Bash: "/bin/bash", New: *someState("", ""), Save: true}, Status: 3, Inner: true, Env: []string{"A=1"},
	}},
}

// someState is what a bash has saved that has the variable and the function.
func someState(variable, function string) *saved.State {
	const seal = "SEAL"
	variables := "declare -r BASHOPTS=\"\"\n"
	for _, name := range []string{"HOSTNAME", "HOSTTYPE", "MACHTYPE", "OPTERR", "OSTYPE", "PATH", "PS4", "SHELL", "TERM"} {
		variables += "declare -- " + name + "=\"as at the start\"\n" // Else a fresh bash would unset them.
	}
	if variable != "" {
		variables += "declare -- " + strings.Replace(variable, "=", "=\"", 1) + "\"\n"
	}
	marks := ""
	if function != "" {
		name, _, _ := strings.Cut(function, " ")
		marks = "declare -f " + name + "\n"
		function += "\n"
	}
	parts := []string{"/home/me", " ", "- ", "umask 0022\n", variables, function, marks, "trap -- 'echo usr1' SIGUSR1\n", "", "", "", "", seal}
	state, err := saved.Parse([]byte(strings.Join(parts, "\x00")), "state", seal, seal)
	if err != nil {
		panic(err)
	}
	return &state
}

// shown is where the session directory seems to be.
const shown = "/run/limpet"

// render returns what bash is sent for a call: what it reads from files, and the lines. An
// ID is random, and longer.
func render(t *testing.T, c Call, merged bool) (files, lines string) {
	t.Helper()
	d, err := newDir(filepath.Join(t.TempDir(), "session"), 1<<20, nil)
	require.NoError(t, err)
	defer d.close()
	c.ID = cmp.Or(c.ID, "SOME-ID.")
	c.Script = cmp.Or(c.Script, "echo hello")
	c.Names = cmp.Or(c.Names, script.ViaBuiltin)
	c.stdout = d.path + "/out/1"
	if !merged {
		c.stderr = d.path + "/out/2"
	}
	if c.Traps {
		c.Before = append([]string{noExitTrap}, c.Before...)
	}
	if c.Fork != nil {
		fork := *c.Fork
		c.Fork = &fork
	}
	require.NoError(t, d.writeCall(c))
	for _, name := range []string{evalName, freshName, forkSaveName, forkEndName} {
		b, err := os.ReadFile(filepath.Join(d.path, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		if name != evalName {
			files += "--- " + name + "\n"
		}
		files += string(b)
	}
	show := func(text string) string { return strings.ReplaceAll(text, d.path, shown) }
	return show(files), show(d.lines(c))
}

// What bash is sent is in testdata/rendered.txt, to be read, and to be looked at when it
// changes: go test ./ipc -run Rendered -update.
func TestWhatIsRenderedIsTheGoldenTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What bash is sent for a command, by the fields of ipc.Call: the file that it sources, others\n" +
		"# that it reads then, and the two lines on its stdin. Then what limpet sends on its own account.\n" +
		"# docs/protocol.md says why it is so; go test ./ipc -run Rendered -update writes this file.\n")
	section := func(name, about, text string) {
		if about != "" {
			name += ": " + about
		}
		fmt.Fprintf(&b, "\n=== %s\n%s", name, text)
	}
	_, usual := render(t, Call{}, false)
	for i, row := range rendered {
		files, lines := render(t, row.call, row.merged)
		if i > 0 && lines == usual {
			lines = "(the lines are those above)\n"
		} else {
			lines = "--- lines\n" + lines
		}
		section(row.name, row.about, files+lines)
	}
	const id, seal = "SOME-ID.", "SEAL"
	d := &dir{path: shown, stateName: stateName, eval: pinned{path: shown + "/eval"}}
	section("the first line to a new bash", "it sources the prelude", d.startLine(id))
	section("the copy of descriptor 0", "before the first command with Stdin", keepCommands()+"\n")
	section("the second line once more", "a signal may have thrown it away", closing(Call{ID: id, Names: script.ViaBuiltin}))
	section("saving the state", "", saveTo(script.ViaBuiltin, d.statePath(), id, saved.Nothing)+"; "+report(script.ViaBuiltin, id)+"\n")
	section("going back first, if a request had a directory", "", d.goBack(script.ViaBuiltin, "/home/me", os.DevNull)+"\n")
	section("the trap that saves the state when bash exits", "", d.exitTrap(seal)+"\n")
	section("switching options off", "", switchOff(script.ViaBuiltin, []string{"errexit", "nounset"}, id))

	golden := filepath.Join("testdata", "rendered.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String())
}

// A field without a row would be rendered in no text that anybody reads.
func TestEachFieldOfACallIsRendered(t *testing.T) {
	named := make(map[string]bool)
	for _, row := range rendered {
		for _, field := range strings.Split(row.name, ", ") {
			named[field] = true
		}
	}
	for prefix, of := range map[string]reflect.Type{"": reflect.TypeFor[Call](), "Fork.": reflect.TypeFor[Fork]()} {
		for _, field := range reflect.VisibleFields(of) {
			assert.True(t, !field.IsExported() || named[prefix+field.Name], "no row has the name of the field %s%s", prefix, field.Name)
		}
	}
	seen := make(map[string]string)
	for _, row := range rendered {
		files, lines := render(t, row.call, row.merged)
		assert.Empty(t, seen[files+lines], "%s makes no difference", row.name)
		seen[files+lines] = row.name
	}
}
