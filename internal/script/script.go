// Package script reads a script once, and answers what limpet must know about it:
// from its syntax tree, and never from words in its text. It also has the words with which
// limpet writes scripts of its own: [Quote] and [Names].
package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Script is a script that was read. It is never changed, and safe for concurrent use.
type Script struct {
	text string
	read string       // see Parsed
	file *syntax.File // nil if it is unreadable
}

// Read reads a script. It does not fail: [Traits.Unreadable] says that there is no tree.
func Read(text string) *Script {
	file, read := parseText(text)
	return &Script{text: text, read: read, file: file}
}

// Text is the script itself.
func (s *Script) Text() string { return s.text }

// Traits say what a script may do to the shell that runs it. Each errs on the side of
// true: what only bash could tell (a command whose name is in a variable) counts as
// Unknown, and never as nothing.
type Traits struct {
	// Unreadable: there is no tree. The script is too long, incomplete, or not bash as the
	// parser knows it, or an alias in it is. What else is set is no matter then.
	Unreadable bool

	// Exits: it may end its shell: exit, logout, exec PROGRAM, kill of $$ or $BASHPID, suspend.
	// A kill of $$ counts in a subshell too: it is the shell that it kills.
	Exits bool
	// Options: it may switch on options by which bash ends, or does not run, what follows, or
	// prints what it reads: errexit, nounset, noexec, verbose, xtrace, pipefail, posix, onecmd,
	// privileged, restricted; also "set" with words that only bash can tell.
	Options bool
	// Modal: it may switch on posix mode or noexec, also in a subshell. Verbose: it may switch on
	// verbose. Shopt: it calls shopt.
	Modal, Verbose, Shopt bool
	// PID: it has $$ or $BASH_SUBSHELL, which tell shells apart, also in a subshell.
	PID bool
	// Demands: it has ${x?} or ${x:?}.
	Demands bool
	// Returns: it has a return outside of its functions, also in a subshell.
	Returns bool
	// Traps: it calls trap. ExitTrap: for EXIT, or for what only bash can tell. ListsTraps:
	// it may print traps: trap without arguments, trap -p, trap -l does not count.
	Traps, ExitTrap, ListsTraps bool
	// Unknown: it runs what cannot be read here: ".", source, eval of a text with expansions (of
	// a constant text, that counts instead), a command name with expansions, a function that
	// is unreadable, mapfile -C, compgen -F and -C, fc, ${name@P}.
	Unknown bool
	// Sources: it calls ".", source or eval, with whatever text.
	Sources bool

	// Background: it starts a job: &, coproc. Jobs: it deals with jobs of its shell: jobs,
	// fg, bg, wait, disown, $!, a command or a word of kill that begins with %.
	Background, Jobs bool
	// Descriptors: it opens or closes descriptors of its shell, but for the standard streams,
	// which each script has its own of: exec with redirections alone,
	// coproc, {name}> at any command. High: it names a descriptor from 10 on by its number.
	// Tty: it names descriptor 255, at which an interactive bash has its terminal.
	Descriptors, High, Tty bool

	// Pipeline: there is a | in it. Test: there is a [[. Enable: it calls enable.
	Pipeline, Test, Enable bool
	// Lastpipe: it calls shopt for lastpipe, by which the last command of a pipeline runs in the shell
	// itself. The other traits are then as if it had been on from the start.
	Lastpipe bool
	// Limits: it calls ulimit.
	Limits bool
	// BuiltinFunction and CommandFunction: it defines a function of the name builtin, or command.
	BuiltinFunction, CommandFunction bool
	// Aliases: it may switch alias expansion on or off (shopt expand_aliases), or call alias.
	Aliases bool
	// Failglob: it calls shopt for failglob. Arithmetic: it has arithmetic with names or
	// a division, a subscript that is no constant, or ${!x}: bash gives up the line where one of
	// them fails. Lines: it has more than one line of commands at top level.
	Failglob, Arithmetic, Lines bool
	// Readonly: it makes variables readonly, or may assign to one of [Library.WithReadonly].
	Readonly bool
	// OutputSubstitution: there is a >( ) in it, also in a subshell.
	OutputSubstitution bool
	// Functions: it defines or removes functions, or may (unset).
	Functions bool
	// Changes: it may change variables, functions, aliases, options, the directory, traps, umask or
	// limits of its shell: false only if every command is a program, or a builtin
	// that changes nothing (true, echo, printf without -v, test, [, :, pwd, type, hash, kill, times,
	// exit, return, break, continue, caller, help, and those of jobs). Arithmetic with names
	// changes: the value of a name may be an assignment.
	Changes bool
}

// Traits returns those of the script, with those of the functions that it calls, by
// itself or through others: its own, and those of the library. A nil Library has none.
func (s *Script) Traits(lib *Library) Traits {
	if s.file == nil {
		return Traits{Unreadable: true}
	}
	w := walker{lib: lib, lastpipe: lib.hasLastpipe()}
	w.script(s.file)
	if w.traits.Lastpipe && !w.lastpipe {
		w = walker{lib: lib, lastpipe: true}
		w.script(s.file)
	}
	w.traits.Lines = lines(s.file)
	return w.traits
}

// lines reports whether the statements of a script start on more than one line.
func lines(file *syntax.File) bool {
	for _, stmt := range file.Stmts {
		if stmt.Pos().Line() != file.Stmts[0].Pos().Line() {
			return true
		}
	}
	return false
}

// File returns the syntax tree, which must not be changed, and nil if the script is unreadable.
func (s *Script) File() *syntax.File { return s.file }

// Parsed is the text that the tree is of: the script, with a space for each backslash that ends a comment. It joins no lines, though the
// parser does that there.
func (s *Script) Parsed() string { return s.read }

// POSIX reports whether the script can be read as one for a POSIX sh.
func (s *Script) POSIX() bool {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(s.read), "")
	return s.file != nil && err == nil
}
