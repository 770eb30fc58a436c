package saved

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is a saved shell: a script of builtins that brings variables,
// functions, aliases, options, traps and the umask back.
type State struct {
	part [parts][]byte
	Dir  string // $PWD

	// ExitTrap and IntTrap say that the user has a trap for the end of the
	// shell, and for SIGINT.
	ExitTrap, IntTrap bool

	// Readonly are the readonly variables that are not bash's own.
	Readonly []string

	// LogoutAfter is how long bash waits for a line before it ends: TMOUT. 0 is for ever.
	LogoutAfter time.Duration

	// Unsaved is what the shell had and no state has: the list of the history. Who takes a checkpoint
	// adds open descriptors.
	Unsaved []string

	// LeftOut are the options that the shell had set and the state leaves out: "set -e",
	// "set -u". Commands that set them are common, and every bash that got them back would
	// end at the next command that fails.
	LeftOut []string

	// Nameless are the entries of the environment that no builtin lists: see environ.Nameless. Who
	// saves the state sets them.
	Nameless []string

	// Begin are the options that the shell gives to each script by itself, for bash never has
	// them on: see ipc.Fork.
	Begin []string

	// Given is what limpet has set itself of the variables. Who saves the state sets it.
	Given Given

	// Open is how many descriptors bash had when its exit trap ran; 0 if that is not known.
	Open int

	// InFunction says that bash was in a function when it wrote the state: by
	// the exit trap, that is. The variables are then as the function saw them.
	InFunction bool
}

// With returns the state with the variables of these names as they are declared, in the words of
// "declare -p". Those that are not declared are not there.
func (s State) With(names []string, declared []byte) State {
	var kept bytes.Buffer
	for _, d := range declarations(s.part[partVariables]) {
		if !slices.Contains(names, d.name) {
			kept.Write(d.text)
		}
	}
	for _, d := range declarations(declared) {
		if slices.Contains(names, d.name) { // Else a command has forged it.
			kept.Write(d.text)
		}
	}
	s.part[partVariables] = kept.Bytes()
	return s
}

// Declarations returns the variables, in the words of "declare -p". The caller must not change it.
func (s State) Declarations() []byte { return s.part[partVariables] }

// Shopt reports whether an option of shopt is on.
func (s State) Shopt(option string) bool {
	return bytes.Contains(s.part[partOptions], []byte("shopt -s "+option+"\n"))
}

// Size returns how many bytes the state has.
func (s State) Size() (size int) {
	for _, part := range s.part {
		size += len(part)
	}
	return size
}

// In returns the state as it would be in another directory. PWD is that, unless it was made up.
func (s State) In(dir string) State {
	if string(s.part[partDir]) == s.Dir {
		s.part[partDir] = []byte(dir)
	}
	s.Dir = dir
	return s
}

// Parse takes apart what bash has printed of its state into the file name. The seal is in the
// exit trap of limpet's own, which is no part of the state.
func Parse(b []byte, name, id, seal string) (State, error) {
	part := bytes.SplitN(b, []byte{0}, parts+1) // One more is enough to see that it is wrong.
	// A function named declare may have written what is no variable.
	if len(part) != parts || string(part[partSeal]) != id || !bytes.Contains(part[partVariables], []byte(" BASHOPTS=")) {
		return State{}, fmt.Errorf("ipc: the state in %q was not saved whole", name)
	}
	state := State{Dir: string(part[partDir]), InFunction: len(bytes.TrimSpace(part[partFunction])) > 0}
	part[partAliases], state.ExitTrap = userTraps(part[partAliases], seal)
	variables := declarations(part[partVariables])
	for _, variable := range variables {
		if variable.has("r") && !slices.Contains(bashReadonly, variable.name) {
			state.Readonly = append(state.Readonly, variable.name)
		}
	}
	state.LogoutAfter = logoutAfter(variables)
	state.IntTrap = bytes.Contains(part[partAliases], []byte("' SIGINT\n"))
	// A shell with onecmd would end at once.
	part[partSet] = bytes.ReplaceAll(part[partSet], []byte("set -o onecmd\n"), nil)
	if bytes.Contains(part[partSet], []byte("set -o history\n")) {
		state.Unsaved = append(state.Unsaved, "list of the history")
	}
	for option, name := range map[string]string{"errexit": "set -e", "nounset": "set -u"} {
		if with := []byte("set -o " + option + "\n"); bytes.Contains(part[partSet], with) {
			part[partSet] = bytes.ReplaceAll(part[partSet], with, nil)
			state.LeftOut = append(state.LeftOut, name)
		}
	}
	slices.Sort(state.LeftOut)
	if !bytes.HasPrefix(part[partMore], []byte("enable ")) { // Else they are names: see Live.
		state.Open = openDescriptors(part[partMore])
		part[partMore] = nil
	}
	copy(state.part[:], part)
	return state, nil
}

// openDescriptors counts the paths of descriptors. Five are those of the save itself: the
// directory that is listed, and two copies of stdout and of stderr.
func openDescriptors(paths []byte) int {
	const own = 5
	if bytes.Contains(paths, []byte("*")) {
		return 0 // There is no such directory, or no globbing.
	}
	return max(len(bytes.Fields(paths))-own, 0)
}

// Bounds of a state, in bytes. Bash takes a second to read some MiB.
const (
	declarationMax = 32 << 20 // of one variable
	stateMax       = 64 << 20 // of all that is kept
	fileMax        = 1 << 30  // of what is read for it
)

// Read reads what a bash has saved in the file name, without the variables that are too large
// for a state: unsaved says which.
func Read(f *os.File, name string) (text []byte, unsaved []string, err error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case st.Size() > fileMax:
		return nil, nil, fmt.Errorf("ipc: %q has more than %d bytes: %w", name, fileMax, fs.ErrInvalid)
	case st.Size() > declarationMax:
		text, large, err := withoutLarge(f, declarationMax, stateMax)
		for _, variable := range large {
			unsaved = append(unsaved, fmt.Sprintf("variable %s, which has more than %d MiB", variable, declarationMax>>20))
		}
		return text, unsaved, err
	}
	text, err = io.ReadAll(io.LimitReader(f, declarationMax))
	return text, nil, err
}

// bashReadonly are readonly from the start.
var bashReadonly = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}

// logoutAfter reads TMOUT, or what it refers to, as bash does: by atoi(3), which skips
// whitespace and keeps the lower half of a number that is too large. Bash has no timeout by one
// that is not positive.
func logoutAfter(all []declaration) time.Duration {
	find := func(name string) declaration {
		i := slices.IndexFunc(all, func(d declaration) bool { return d.name == name })
		if i < 0 {
			return declaration{}
		}
		return all[i]
	}
	d := find("TMOUT")
	for refers := 0; d.has("n") && refers < refersAtMost; refers++ {
		target, _ := d.scalar()
		d = find(target)
	}
	if d.kind() != "" { // A list, or a reference that leads nowhere.
		return 0
	}
	value, _ := d.scalar()
	value = strings.TrimPrefix(value, "$'") // Then bash has written whitespace as escapes, which end with a letter.
	value = strings.TrimPrefix(strings.TrimLeft(value, ` \tnvfr`), "+")
	digits := value[:len(value)-len(strings.TrimLeft(value, "0123456789"))]
	number, _ := strconv.ParseInt(digits, 10, 64) // One that is too large becomes the largest one, and an empty text 0.
	return time.Duration(max(int32(number), 0)) * time.Second
}

// refersAtMost is how many references bash follows (NAMEREF_MAX).
const refersAtMost = 8

// userTraps takes limpet's own exit trap out, and reports whether the user has
// one.
func userTraps(script []byte, seal string) (kept []byte, exitTrap bool) {
	for _, text := range statements(script) {
		if bytes.HasPrefix(text, []byte("trap -- ")) && bytes.HasSuffix(text, []byte(" EXIT\n")) {
			if bytes.Contains(text, []byte(seal)) {
				continue
			}
			exitTrap = true
		}
		kept = append(kept, text...)
	}
	return kept, exitTrap
}

// Variable returns the value of a variable, or of a positional parameter, as bash quotes it,
// and whether it has one; of an element of an array, "name[7]", only that.
func (s State) Variable(name string) (value string, set bool) {
	if n, err := strconv.Atoi(name); err == nil {
		parameters, _ := s.words()
		return "", n <= len(parameters)
	}
	if strings.Trim(name, "!?$#-@*") == "" {
		return "", true // Bash sets them.
	}
	name, index, element := strings.Cut(name, "[")
	for _, d := range declarations(s.part[partVariables]) {
		if d.name == name && element && (d.has("a") || d.has("A")) {
			return "", bytes.Contains(d.text, []byte("["+index+"="))
		}
		if d.name == name {
			return d.scalar()
		}
	}
	return "", false
}
