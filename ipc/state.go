package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
)

// renameState has the state saved under a name that nobody knows yet, in case that
// something else is in the place of the state by now.
func (d *dir) renameState() error {
	d.stateName = environ.NewID()
	return d.touch(d.stateName, "")
}

// saveLines are the lines that make bash save its state and report; back is
// where it goes before, if that is not empty and still there; more is what else it prints.
func (d *dir) saveLines(n script.Names, id, back string, more saved.More) string {
	d.emptyEval()
	lines := saveTo(n, d.statePath(), id, more) + "; " + report(n, id) + "\n"
	if back != "" {
		lines = d.goBack(n, back, os.DevNull) + "; " + lines
	}
	return noInteger(n) + lines
}

// noInteger is a line that takes the attribute -i from $_. With it bash evaluates the last argument of each command, limpet's own
// too, gives up the line where that is no number, and would never report.
func noInteger(n script.Names) string { return fmt.Sprintf("%sdeclare +i _ 2>/dev/null\n", n) }

// exitTrap is the command that installs the trap by which bash saves its state
// when it exits. It is the one trace of limpet that a command can see, by
// "trap -p"; it is taken out around scripts that deal with traps.
func (d *dir) exitTrap(seal string) string {
	return ownExitTrap(script.ViaBuiltin, saveTo(script.ViaBuiltin, d.exitPath(), seal, saved.Descriptors))
}

// ownExitTrap is the command that has a shell run commands when it exits. Bash runs such a trap in a
// child of the shell, too, that a fatal error ends, as in ": ${x?} | cat". That has an older state than
// the shell by the time it ends, so it runs nothing.
//
// It is told by a case and no builtin: in a child that a loop has started, those may return 0
// whatever they find (bash 5.2). Neither set -x nor a DEBUG trap prints anything of it.
func ownExitTrap(n script.Names, commands string) string {
	return fmt.Sprintf(`%strap -- '{ case ${BASHPID-} in "'"${BASHPID-unknown}"'") '%s' ;; esac; } >/dev/null 2>&1' EXIT`, n, script.Quote(commands))
}

// noExitTrap takes it out.
const noExitTrap = `\builtin trap - EXIT`

// What bash writes by name: its state, when it is idle and when it exits, and what a command
// hides from the session.
const (
	stateName  = "state"
	exitName   = "exit"
	beforeName = "before"

	refusedName = "refused" // the pieces of a state that it could not take
)

func (d *dir) statePath() string  { return filepath.Join(d.path, d.stateName) }
func (d *dir) exitPath() string   { return filepath.Join(d.path, exitName) }
func (d *dir) beforePath() string { return filepath.Join(d.path, beforeName) }

// writeBefore is the command by which bash writes down what a command hides from the session:
// OLDPWD by itself, for [dir.goBack], and the declarations of all, for the state that a bash leaves that
// does not come back from the command. In an || list no ERR trap minds a variable that is not there.
func (d *dir) writeBefore(c Call) string {
	n, names := c.Names, c.hidden()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(`{ %sprintf '%%s\0' "${OLDPWD-}"; %sdeclare -p %s; %sprintf '\0%%s' %s; } 2>/dev/null >|%s || %s:; `,
		n, n, strings.Join(names, " "), n, c.ID, script.Quote(d.beforePath()), n)
}

// before reads the declarations that writeBefore has written for a command. It reports false
// if the command did not come to that.
func (d *dir) before(id string) (declared []byte, ok bool) {
	b, err := d.readByName(beforeName)
	fields := bytes.SplitN(b, []byte{0}, 3)
	if err != nil || len(fields) != 3 || string(fields[2]) != id {
		return nil, false
	}
	return fields[1], true
}

func (d *dir) refusedPath() string { return filepath.Join(d.path, refusedName) }

// forget empties a file that bash has written by name. It stays there: bash would make it anew with what its umask lets the
// owner have.
func (d *dir) forget(name string) error {
	if f, err := files.OpenRegular(d.root, name, os.O_WRONLY|os.O_TRUNC); err == nil {
		_ = f.Close() // Nothing was written.
		return nil
	}
	return d.replace(name, "") // It is gone, or is something else by now.
}

// savedAtExit reads what the exit trap saved. Call it when bash has ended.
// It can be called again.
func (d *dir) savedAtExit(seal string) (saved.State, error) {
	if d.atExit == nil {
		state, err := d.takeState(exitName, seal, seal)
		d.atExit = &savedAtExit{state, err}
	}
	return d.atExit.state, d.atExit.err
}

// savedAtExit is what bash has saved when it ended.
type savedAtExit struct {
	state saved.State
	err   error
}

// takeState reads a state, and empties the file if it is large: the state is in memory
// from then on, and the runtime directory may be small.
func (d *dir) takeState(name, id, seal string) (saved.State, error) {
	return d.takeFile(name, func(b []byte) (saved.State, error) { return saved.Parse(b, name, id, seal) })
}

// takeFile is for a file with a state in it.
func (d *dir) takeFile(name string, parse func([]byte) (saved.State, error)) (saved.State, error) {
	f, err := files.OpenRegular(d.root, name, os.O_RDWR)
	if err != nil {
		return saved.State{}, err
	}
	defer f.Close() // Only its size is changed.
	b, unsaved, err := saved.Read(f, name)
	var state saved.State
	if err == nil {
		state, err = parse(b)
	}
	state.Unsaved = append(state.Unsaved, unsaved...)
	if err != nil {
		if full := files.Room(f); full != nil {
			err = &DiskError{Dir: d.path, Err: fmt.Errorf("there was no room to save the shell's state: %w", full)}
		}
	}
	if st, e := f.Stat(); err != nil || e != nil || st.Size() > files.RoomStep {
		_ = f.Truncate(0) // If it fails, the next command finds out whether there is room.
	}
	return state, err
}

// saveTo is a command list that writes the state to path: see [saved.Commands].
func saveTo(n script.Names, path, id string, more saved.More) string {
	return fmt.Sprintf("{ %s; } 2>/dev/null >|%s || %s:", saved.Commands(n, id, more), script.Quote(path), n)
}

// restore writes the script that brings pieces of a state back, and returns the lines
// that run it and report. The status in the report is 0 if bash has read
// the script to its end, whatever became of each piece; refused tells that.
func (d *dir) restore(n script.Names, pieces []saved.Piece, id string) (lines string, err error) {
	if err := d.forget(refusedName); err != nil {
		return "", err
	}
	before, text := saved.Script(n, pieces, d.refusedPath())
	if err := d.writeEval(text); err != nil {
		return "", err
	}
	after := saved.NamesAfter(n, pieces)
	// An error that gives up the script gives up the first line.
	return fmt.Sprintf("%s%s. %s >/dev/null 2>&1; %s\n", before, n, script.Quote(d.eval.path), report(after, id)) + closingLine(after, id), nil
}

// refused returns the indices of the pieces of the last restore that bash has refused.
func (d *dir) refused() (indices []int) {
	b, _ := d.readByName(refusedName) // Without the file no piece was refused.
	for line := range strings.Lines(string(b)) {
		if i, err := strconv.ParseUint(strings.TrimSpace(line), 10, 31); err == nil { // A command may have forged it.
			indices = append(indices, int(i))
		}
	}
	return indices
}

// byNameMax is how many bytes of such a file are read: a command may have made it larger.
const byNameMax = 64 << 20

// readByName reads a file that bash has written by name.
func (d *dir) readByName(name string) ([]byte, error) {
	f, err := files.OpenRegular(d.root, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	if st, err := f.Stat(); err != nil || st.Size() > byNameMax {
		return nil, fmt.Errorf("ipc: %q has more than %d bytes: %w", name, byNameMax, errors.Join(err, fs.ErrInvalid))
	}
	return io.ReadAll(io.LimitReader(f, byNameMax))
}
