package ipc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// State is a saved shell: a script of builtins that brings variables,
// functions, aliases, options, traps and the umask back.
type State struct {
	Script []byte
	Dir    string

	// ExitTrap says that the user has an EXIT trap.
	ExitTrap bool
}

// SaveLines are the lines that make bash save its state and report.
func (d *Dir) SaveLines(n Names, id string) string {
	return saveTo(n, d.statePath(), id) + "; " + d.Report(n, id) + "\n"
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

func (d *Dir) statePath() string { return filepath.Join(d.path, "state") }
func (d *Dir) exitPath() string  { return filepath.Join(d.path, "exit") }

// Saved reads the state that was saved under id.
func (d *Dir) Saved(id, seal string) (State, error) { return d.readState(d.statePath(), id, seal) }

// SavedAtExit reads what the exit trap saved.
func (d *Dir) SavedAtExit(seal string) (State, error) { return d.readState(d.exitPath(), seal, seal) }

func (d *Dir) readState(path, id, seal string) (State, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	b, sealed := bytes.CutSuffix(b, []byte("# "+id+"\n"))
	if !sealed {
		return State{}, fmt.Errorf("ipc: the state in %q was not saved whole", path)
	}
	return d.ownTraces(State{Script: b}, seal), nil
}

// ownTraces takes limpet's own exit trap out of the state.
func (d *Dir) ownTraces(s State, seal string) State {
	lines := bytes.SplitAfter(s.Script, []byte("\n"))
	kept := lines[:0]
	// Bash prints its traps behind everything that a user could have named.
	for _, line := range lines {
		// A trap of several lines has its name on the last one.
		if bytes.HasSuffix(line, []byte("' EXIT\n")) {
			if bytes.Contains(line, []byte(seal)) {
				continue
			}
			s.ExitTrap = true
		}
		kept = append(kept, line)
	}
	s.Script = bytes.Join(kept, nil)
	return s
}

// Restore writes the script that brings a state back, and returns the lines
// that run it and report.
func (d *Dir) Restore(s State, id string) (string, error) {
	var b strings.Builder
	if s.Dir != "" {
		fmt.Fprintf(&b, "\\builtin cd -- %s\n", Quote(s.Dir))
	}
	b.Write(s.Script)
	if err := d.writeEval(b.String()); err != nil {
		return "", err
	}
	// Readonly variables of bash's own refuse to be set, which is right.
	return fmt.Sprintf("\\builtin . %s >/dev/null 2>&1; %s\n", Quote(d.eval.path), d.Report(ViaBuiltin, id)), nil
}
