package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

	// Unsaved is what the shell had and no state has: positional parameters, a stack of
	// directories.
	Unsaved []string

	// LeftOut are the options that the shell had set and the state leaves out: "set -e",
	// "set -u". Commands that set them are common, and every bash that got them back would
	// end at the next command that fails.
	LeftOut []string

	// InFunction says that bash was in a function when it wrote the state: by
	// the exit trap, that is. The variables are then as the function saw them.
	InFunction bool
}

// RenameState has the state saved under a name that nobody knows yet, in case that
// something else is in the place of the state by now.
func (d *Dir) RenameState() error {
	d.stateName = NewID()
	return d.touch(d.stateName, "")
}

// SaveLines are the lines that make bash save its state and report; back is
// where it goes before, if that is not empty and still there.
func (d *Dir) SaveLines(n Names, id, back string) string {
	lines := saveTo(n, d.statePath(), id) + "; " + d.Report(n, id) + "\n"
	if back != "" {
		lines = d.goBack(n, back, os.DevNull) + "; " + lines
	}
	return lines
}

// ExitTrap is the command that installs the trap by which bash saves its state
// when it exits. It is the one trace of limpet that a command can see, by
// "trap -p"; it is taken out around scripts that deal with traps.
func (d *Dir) ExitTrap(seal string) string {
	return `\builtin trap -- ` + Quote(d.exitTrapBody(seal)) + " EXIT"
}

// NoExitTrap takes it out.
const NoExitTrap = `\builtin trap - EXIT`

func (d *Dir) exitTrapBody(seal string) string { return saveTo(ViaBuiltin, d.exitPath(), seal) }

// What bash writes by name: its state, when it is idle and when it exits, and
// OLDPWD while a request has a directory of its own.
const (
	stateName  = "state"
	exitName   = "exit"
	oldDirName = "oldpwd"
)

func (d *Dir) statePath() string  { return filepath.Join(d.path, d.stateName) }
func (d *Dir) exitPath() string   { return filepath.Join(d.path, exitName) }
func (d *Dir) oldDirPath() string { return filepath.Join(d.path, oldDirName) }

// Saved reads the state that was saved under id.
func (d *Dir) Saved(id, seal string) (State, error) { return d.readState(d.stateName, id, seal) }

// SavedAtExit reads what the exit trap saved.
func (d *Dir) SavedAtExit(seal string) (State, error) { return d.readState(exitName, seal, seal) }

func (d *Dir) readState(name, id, seal string) (State, error) {
	b, err := d.readBounded(name)
	if err != nil {
		return State{}, err
	}
	part := bytes.SplitN(b, []byte{0}, parts+1) // One more is enough to see that it is wrong.
	// A function named declare may have written what is no variable.
	if len(part) != parts || string(part[partSeal]) != id || !bytes.Contains(part[partVariables], []byte(" BASHOPTS=")) {
		return State{}, fmt.Errorf("ipc: the state in %q was not saved whole", name)
	}
	state := State{Dir: string(part[partDir]), InFunction: len(bytes.TrimSpace(part[partFunction])) > 0}
	part[partAliases], state.ExitTrap = userTraps(part[partAliases], seal)
	state.Readonly = readonlyNames(part[partVariables])
	state.IntTrap = bytes.Contains(part[partAliases], []byte("' SIGINT\n"))
	// A shell with onecmd would end at once.
	part[partSet] = bytes.ReplaceAll(part[partSet], []byte("set -o onecmd\n"), nil)
	parameters, directories, _ := bytes.Cut(part[partCounts], []byte(" "))
	if string(parameters) != "0" && !state.InFunction {
		state.Unsaved = append(state.Unsaved, "positional parameters")
	}
	if len(directories) > 1 || bytes.ContainsAny(directories, "23456789") { // Bash counts the working directory.
		state.Unsaved = append(state.Unsaved, "stack of directories (pushd)")
	}
	for option, name := range map[string]string{"errexit": "set -e", "nounset": "set -u"} {
		if with := []byte("set -o " + option + "\n"); bytes.Contains(part[partSet], with) {
			part[partSet] = bytes.ReplaceAll(part[partSet], with, nil)
			state.LeftOut = append(state.LeftOut, name)
		}
	}
	slices.Sort(state.LeftOut)
	copy(state.part[:], part)
	return state, nil
}

// stateMax is more than any shell's state.
const stateMax = 64 << 20

// readBounded reads a file that a command may have replaced.
func (d *Dir) readBounded(name string) ([]byte, error) {
	f, err := openRegular(d.root, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	if st, err := f.Stat(); err != nil || st.Size() > stateMax {
		return nil, fmt.Errorf("ipc: %q has more than %d bytes: %w", name, stateMax, errors.Join(err, fs.ErrInvalid))
	}
	return io.ReadAll(io.LimitReader(f, stateMax))
}

// bashReadonly are readonly from the start.
var bashReadonly = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}

func readonlyNames(variables []byte) (names []string) {
	for _, d := range declarations(variables) {
		if d.has("r") && !slices.Contains(bashReadonly, d.name) {
			names = append(names, d.name)
		}
	}
	return names
}

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
