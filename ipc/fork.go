package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
)

// Fork has a script run in a fork of bash, "( SCRIPT )". A script that ends or bends
// the shell that it runs in ends or bends the fork; bash itself, with its jobs and descriptors,
// stays as it was. The fork writes its state when it ends, for bash to take over what changed.
type Fork struct {
	// Fresh has the fork become a new bash with the state that bash has. That is "bash -c" in all
	// that a fork of an interactive bash is not: it reads line by line, $$ is its own, an error
	// that ends a line ends no more than that, and posix mode is strict. It takes twice as long
	// to start. Nil: the script is complete. Bash is the program. New is the state of a bash that
	// has just started, or the zero value, which costs time.
	Fresh *saved.State
	Bash  string
	New   saved.State

	// Options are those of set -o that the script begins with, besides bash's own.
	Options []string

	// Save has the fork write its state.
	Save bool

	// Trapped says that the script may set a trap for EXIT, or may list traps: limpet has
	// none of its own there. The state is then written when the script has come to its end, and
	// not if it exits before.
	Trapped bool

	// Disables says that the script may disable builtins that write the state.
	Disables bool

	// Traps are the traps that bash has: a fork begins without them.
	Traps []saved.Piece

	given    []saved.Piece // to a fresh bash, one after the other
	withheld []saved.Piece // from it
}

// prefixed are options that must not be on while limpet's own words are read: the first
// would print them, the second skip them.
var prefixed = []string{"verbose", "xtrace", "noexec"}

// forkHead is what a fork runs before the script.
func (d *dir) forkHead(c Call) string {
	var b strings.Builder
	switch f := c.Fork; {
	case f.Fresh != nil:
		return f.hidesStartFile(c.Names) // See freshScript.
	case f.Trapped:
		fmt.Fprintf(&b, "%strap - EXIT; ", c.Names) // Else it would list bash's own.
	case f.Save:
		b.WriteString(ownExitTrap(c.Names, d.saveFork(c)) + "; ")
	}
	if len(c.Unset) > 0 {
		fmt.Fprintf(&b, "%sunset -v -- %s; ", c.Names, strings.Join(c.Unset, " "))
	}
	for _, p := range c.Fork.Traps {
		fmt.Fprintf(&b, "%s; ", p.Line(c.Names))
	}
	for _, option := range c.Fork.Options {
		if !slices.Contains(prefixed, option) {
			fmt.Fprintf(&b, "%sset -o %s; ", c.Names, option)
		}
	}
	return b.String()
}

// prefix is what stands before the script in its eval, on its first line.
func (f *Fork) prefix(n script.Names) string {
	var b strings.Builder
	for _, option := range f.Options {
		if slices.Contains(prefixed, option) {
			fmt.Fprintf(&b, "%sset -o %s 2>/dev/null; ", n, option)
		}
	}
	return b.String()
}

// What a fork writes, and what it reads at its beginning and end.
const (
	forkName     = "fork"
	forkEndName  = "fork-end"
	forkSaveName = "fork-save"
	freshName    = "fork-start"
)

// freshVar holds the script of a fresh bash, as it does in "bash -c" (bash(1), Shell
// Variables).
const freshVar = "BASH_EXECUTION_STRING"

// freshBash is the command by which a fork becomes a fresh bash. The script is in a file, for
// a "pkill -f" in it must not find it in an argument.
func (d *dir) freshBash(c Call) string {
	text := fmt.Sprintf(`\builtin . %s 2>/dev/null || { \builtin printf '%%s\n' %s >|%s; \builtin exit; }; %seval "$%s"`,
		script.Quote(filepath.Join(d.path, freshName)), script.Quote(unread(c.ID)), script.Quote(d.inner.path), c.Names, freshVar)
	return fmt.Sprintf("exec -a bash %s --noprofile --norc -c %s \"$0\"", script.Quote(c.Fork.Bash), script.Quote(text))
}

// hidesStartFile is the command by which a fork has no such variable in its environment. A fresh
// bash has it again from its state.
func (f *Fork) hidesStartFile(n script.Names) string {
	if _, set := f.Fresh.Variable(saved.StartFile); !set {
		return ""
	}
	return fmt.Sprintf("%sexport -n %s; ", n, saved.StartFile)
}

// unread is what a fresh bash says, where a script would report its status, if it could not read
// the script. Nothing ran.
func unread(id string) string { return "unread " + id }

// freshScript is what a fresh bash reads first: the state, what a fork begins with, and the
// script. What is exported it has already.
func (d *dir) freshScript(c Call) string {
	f := *c.Fork
	var b strings.Builder
	fmt.Fprintf(&b, "{ %s:\n%s", c.Names, f.Fresh.StartLines(c.Names))
	given, withheld := f.Fresh.ForFresh(f.New, c.named(), c.Dir != "")
	c.Fork.given, c.Fork.withheld = given, withheld
	for i, p := range given {
		fmt.Fprintf(&b, "%s || %sprintf '%%s\\n' %d >>%s\n", p.Line(c.Names), c.Names, i, script.Quote(d.refusedPath()))
	}
	fmt.Fprintf(&b, "} >/dev/null 2>&1 || %s:\n", c.Names)
	f.Fresh, f.Traps = nil, nil
	c.Fork = &f
	b.WriteString(d.forkHead(c))
	text := d.text(c)
	if c.Status != 0 {
		text = d.setStatus(c.Names, c.Status) + "; " + text
	}
	fmt.Fprintf(&b, "\n%s=%s\n", freshVar, script.Quote(text))
	return b.String()
}

func (d *dir) forkPath() string { return filepath.Join(d.path, forkName) }

// saveFork is a command that writes the end of a fork: its status, the command that it was
// in, its options, its traps, and its state. DEBUG traps print in front of what the
// commands print, as long as there are any, and so does set -x. What the script has disabled of
// that is listed first, and enabled.
func (d *dir) saveFork(c Call) string {
	var b strings.Builder
	n := c.Names
	b.WriteString("{ { ")
	if c.Fork.Disables {
		fmt.Fprintf(&b, "%senable -n; %senable printf trap set unset shopt umask declare alias complete ulimit; ", n, n)
	}
	fmt.Fprintf(&b, `%sprintf '\0%%s\0%%s\0' "${BASH_COMMAND-}" "$SHELLOPTS"; `, n)
	fmt.Fprintf(&b, `%strap -p; %sprintf '\0'; %strap - DEBUG ERR RETURN; %sset +x; %sunset -v %s; %sprintf '\0'; `, n, n, n, n, n, freshVar, n)
	fmt.Fprintf(&b, "%s; } >|%s || %s:; } 2>/dev/null", saved.Commands(n, c.ID, saved.Descriptors), script.Quote(d.forkPath()), n)
	return b.String()
}

// forkEnd is what a fork runs behind a script that may have set a trap for EXIT, with the
// status of the script left as it is: it prints the record, and writes the state. In an && list
// neither an ERR trap nor errexit minds a status.
func (d *dir) forkEnd(c Call) string {
	text := fmt.Sprintf(`{ %s. %s "$?" "${PIPESTATUS[@]}" && %s:; `, c.Names, script.Quote(filepath.Join(d.path, forkEndName)), c.Names)
	if c.Fork.Save {
		// Behind "builtin" a variable before it costs what it returns.
		text += fmt.Sprintf(`%s=$? \. %s && %s:; `, saved.StatusVar, script.Quote(filepath.Join(d.path, forkSaveName)), c.Names)
	}
	return text + "} 2>/dev/null"
}

// writeFork writes what the fork reads besides the eval script.
func (d *dir) writeFork(c Call) error {
	if c.Fork.Fresh != nil {
		if err := d.forget(refusedName); err != nil {
			return err
		}
		text := d.freshScript(c)
		if len(text) > files.RoomStep { // Bash has read it by then.
			text = fmt.Sprintf("{ >|%s; } 2>/dev/null || %s:\n", script.Quote(filepath.Join(d.path, freshName)), c.Names) + text
		}
		if err := d.replace(freshName, text); err != nil {
			return err
		}
	}
	if !c.Fork.Trapped || !c.Inner {
		return nil
	}
	if c.Fork.Save {
		// Without arguments it has those of the script.
		if err := d.replace(forkSaveName, fmt.Sprintf("%s\n%sreturn $%s\n", d.saveFork(c), c.Names, saved.StatusVar)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("{ %s; } 1<>%s\n%sreturn \"$1\"\n", printRecord(c.Names, c.ID, `"$@"`), script.Quote(d.inner.path), c.Names)
	return d.replace(forkEndName, text)
}

// replace writes a file anew. Bash has read the one before to its end.
func (d *dir) replace(name, text string) error {
	_ = d.root.Remove(name) // It may be gone.
	f, err := d.owner.Create(d.root, name)
	if err != nil {
		return d.broken(err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	return nil
}

// ForkEnd is how a fork ended.
type ForkEnd struct {
	Command string // $BASH_COMMAND: what it ran last
	Options string // as in [Record]
	State   saved.State

	// Lacks are pieces that bash has and the fork never had, so that the script cannot have
	// taken them away.
	Lacks []string
}

// errNoForkEnd means that a fork has not written its end.
var errNoForkEnd = errors.New("ipc: the script did not come to its end, or could not write its state")

// ForkEnd reads what the fork of this command has written at its end. It fails if the fork was
// killed, has run another program in its place, or ran a trap of the script's for EXIT.
func (r *Run) ForkEnd() (ForkEnd, error) {
	var end ForkEnd
	state, err := r.x.dir.takeFile(forkName, func(b []byte) (_ saved.State, err error) {
		end, err = r.parseForkEnd(b)
		return end.State, err
	})
	if err != nil {
		return ForkEnd{}, err
	}
	end.State, end.Lacks = state, r.call.Fork.lacks(r.x.dir.refused())
	return end, nil
}

// lacks returns the pieces that a fork never had. A fresh bash has refused some.
func (f *Fork) lacks(refused []int) (lacks []string) {
	lacks = saved.NotInForks()
	if f.Fresh == nil {
		return lacks
	}
	for _, i := range refused {
		if i < len(f.given) { // Else a command has forged it.
			lacks = append(lacks, f.given[i].String())
		}
	}
	for _, p := range f.withheld {
		lacks = append(lacks, p.String())
	}
	return lacks
}

func (r *Run) parseForkEnd(b []byte) (end ForkEnd, err error) {
	const own = 5 // fields before the state
	fields := bytes.SplitN(b, []byte{0}, own+1)
	if len(fields) != own+1 || !bytes.HasSuffix(b, []byte(r.call.ID)) {
		return ForkEnd{}, errNoForkEnd
	}
	end = ForkEnd{Command: string(fields[1]), Options: string(fields[2])}
	if end.State, err = saved.Parse(fields[own], forkName, r.call.ID, r.call.ID); err != nil {
		return ForkEnd{}, err
	}
	end.State.SetTraps(fields[3], r.call.ID)
	if r.call.Fork.Disables {
		end.State.AddDisabled(fields[0])
	}
	return end, nil
}

// dropForkEnd removes what an earlier fork has written.
func (d *dir) dropForkEnd() {
	if f, err := files.OpenRegular(d.root, forkName, os.O_WRONLY|os.O_TRUNC); err == nil {
		_ = f.Close() // Nothing was written.
	}
}
