package ipc

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Call is what one command needs rendered.
type Call struct {
	ID     string
	Script string

	Env    []string // exported to Script alone
	Back   string   // where to go before anything else; empty: stay
	Dir    string   // where Script runs; empty: there
	Status int      // the $? that Script sees first
	Inner  bool     // report $? and PIPESTATUS from inside the eval
	Apart  bool     // run Script in a subshell
	Group  bool     // with Inner: run Script as one command, { Script; }
	Stdin  bool     // Script reads what bash has at InputFD; else nothing

	Stdout, Stderr string // paths; an empty Stderr means 2>&1

	// Before holds lines of limpet's own that run before Script.
	Before []string

	// Enable has the builtins that limpet needs enabled first: Script comes after one
	// that may have disabled them, "." included.
	Enable bool

	Names Names
}

// Names says how to reach a builtin past functions that the user may have
// named like it.
type Names string

// The ways to name a builtin. The backslash keeps aliases out.
const (
	ViaBuiltin Names = `\builtin ` // whatever the function is named, but for "builtin"
	ViaCommand Names = `\command ` // when there is a function named builtin
	Plain      Names = `\`         // when there are functions named builtin and command
)

// Quote quotes s as one bash word. NUL bytes are the one thing that bash
// cannot carry; [command.Request.Validate] keeps them out.
func Quote(s string) string {
	for _, c := range []byte(s) {
		if c >= utf8.RuneSelf {
			// syntax.Quote would write \u3000 for a wide space and its like,
			// which bash understands in a UTF-8 locale alone.
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		// The only errors left are for NUL, which has been refused, and
		// for languages other than bash.
		panic("ipc: " + err.Error())
	}
	return q
}

// evalScript is the text of the file that bash sources. It is sourced because
// bash then prints no "[1] 12345" for a background job, and it evals because
// then a syntax error in Script ends the eval and nothing else.
func (d *Dir) evalScript(c Call) string {
	var b strings.Builder
	// All on one line, so that the lines of Script count from 1.
	if c.Back != "" {
		fmt.Fprintf(&b, "%s || %sreturn; ", d.goBack(c.Names, c.Back, cmp.Or(c.Stderr, c.Stdout)), c.Names)
	}
	for _, line := range c.Before {
		b.WriteString(line + "; ")
	}
	if c.Dir != "" {
		fmt.Fprintf(&b, "%sprintf %%s \"${OLDPWD-}\" >|%s; ", c.Names, Quote(d.oldDirPath()))
		// Why it fails is not the script's to print. Under errexit nothing may fail.
		fmt.Fprintf(&b, "%scd -- %s 2>|%s || { %sprintf '%%s\\n' %s >>%s && %sreturn 0; %sreturn 1; }; ", c.Names, Quote(c.Dir), Quote(d.inner.path),
			c.Names, Quote(noDir(c.ID)), Quote(d.inner.path), c.Names, c.Names)
	}
	if c.Status != 0 {
		// In an && list neither an ERR trap nor errexit minds the status.
		fmt.Fprintf(&b, "%s. %s %d && %s:; ", c.Names, Quote(d.statusScript()), c.Status, c.Names)
	}
	eval := string(c.Names) + "eval -- "
	if len(c.Env) > 0 {
		// Bash exports assignments before "command eval" to what it runs, and
		// takes them back, in posix mode too. Before "builtin eval" it does
		// not export them.
		for _, entry := range c.Env {
			name, value, _ := strings.Cut(entry, "=")
			fmt.Fprintf(&b, "%s=%s ", name, Quote(value))
		}
		eval = string(ViaCommand) + "eval -- "
	}
	text := c.Script
	if c.Inner {
		text += "\n" + d.innerRecord(c)
	}
	if c.Group {
		text = "{ " + text + "\n}"
	}
	eval += Quote(text)
	if c.Apart {
		eval = "( " + eval + " )"
	}
	b.WriteString(eval)
	if c.Stdin {
		// Nothing but stdin is left of it for what Script starts, nor for Script.
		fmt.Fprintf(&b, " <&%d %d<&- %d<&- >>", InputFD, InputFD, commandFD)
	} else {
		b.WriteString(" </dev/null >>")
	}
	b.WriteString(Quote(c.Stdout))
	if c.Stderr == "" {
		b.WriteString(" 2>&1\n")
	} else {
		b.WriteString(" 2>>" + Quote(c.Stderr) + "\n")
	}
	return b.String()
}

// noDir is what bash says behind the reason, where a script would report its status, if
// it could not go to the script's directory. Nothing ran.
func noDir(id string) string { return id + " cd " + id }

// goBack is the command by which bash leaves the directory of a request, as if
// it had never been there: "cd -" goes where it would have gone. It fails, with
// a word about it in the file stderr, if the directory is gone.
func (d *Dir) goBack(n Names, dir, stderr string) string {
	return fmt.Sprintf("%scd -- %s 2>>%s && { IFS= %sread -r -d '' OLDPWD <%s || %s:; }", n, Quote(dir), Quote(stderr), n, Quote(d.oldDirPath()), n)
}

// innerRecord reports from inside the eval what is lost outside: PIPESTATUS.
// The redirection comes before the printf so that set -x traces it nowhere.
func (d *Dir) innerRecord(c Call) string {
	return fmt.Sprintf(`{ %sprintf '%%s ' %s "$?" "${PIPESTATUS[@]}"; %sprintf '%%s\n' %s; } 2>/dev/null 1<>%s`,
		c.Names, c.ID, c.Names, c.ID, Quote(d.inner.path))
}

// lines are the two lines for bash's stdin. The second acts only when the
// first was thrown away: see the package comment.
func (d *Dir) lines(c Call) string {
	enable := ""
	if c.Enable {
		enable = string(c.Names) + "enable . cd eval printf read return trap; "
	}
	back := ""
	if c.Stdin {
		back = "; " + stopAtInput(c.Names)
	}
	return fmt.Sprintf("%s%s. %s; %s%s\n", enable, c.Names, Quote(d.eval.path), report(c.Names, c.ID), back) + closing(c)
}

// closing is the second line.
func closing(c Call) string {
	line := closingLine(c.Names, c.ID)
	if c.Stdin {
		line += stopAtInput(c.Names) + "\n"
	}
	return line
}

func closingLine(n Names, id string) string {
	return fmt.Sprintf("case $? in 0) ;; *) %s ;; esac\n", report(n, id))
}

// stopAtInput is the command by which bash reads no command from what Script was given to
// read. While that is descriptor 0, bash keeps its own in a copy, which Script can
// close by its number: then there is nothing to come back to, and bash ends. Exit saves
// the state, but is refused while there are stopped jobs.
func stopAtInput(n Names) string {
	return fmt.Sprintf("%stest /dev/fd/0 -ef /dev/fd/%d || %sexit || %skill -KILL $$", n, commandFD, n, n)
}

// KeepCommands is the command by which bash keeps a copy of the descriptor that it reads
// commands from, to know it by. It comes before the first [Call] with Stdin.
func KeepCommands() string { return fmt.Sprintf("exec %d<&0", commandFD) }

// ProbeStatus is in the report on [Dir.Probe] if bash did what it was asked to.
const ProbeStatus = 5

// Probe returns lines by which bash reads a script as it reads those of commands, and
// reports.
func (d *Dir) Probe(n Names, id string) (lines string, err error) {
	if err := d.writeEval(fmt.Sprintf("%seval -- %s\n", n, Quote(fmt.Sprintf("%sreturn %d", n, ProbeStatus)))); err != nil {
		return "", err
	}
	return d.lines(Call{Names: n, ID: id}), nil
}

// ClosingLine is the second line once more: a signal may throw that away too.
func (r *Run) ClosingLine() string { return closing(r.call) }

// Report is the command by which bash reports on a line of limpet's own.
func (d *Dir) Report(n Names, id string) string { return report(n, id) }

// report is the call that writes the record. It needs no redirection: the
// status file is bash's own stdout.
func report(n Names, id string) string {
	return fmt.Sprintf(`%sprintf '%%s %%s %%s %%s %%s\n' %s "$?" "$-" "${PWD-}" %s`, n, id, id)
}

// InputFD is the descriptor of bash from which the scripts of a [Call] with Stdin read. It is
// above those that scripts name by a digit, and low: bash opens it again after each script,
// also under a "ulimit -n".
const InputFD = 10

// commandFD is a copy of descriptor 0, which bash reads commands from.
const commandFD = InputFD + 1

// StartLine is the line that sources the prelude and reports that bash is
// ready, with its version in the place of the flags.
func (d *Dir) startLine(id string) string {
	return fmt.Sprintf(". %s; printf '%%s %%s %%s %%s %%s\\n' %s \"$?\" \"$BASH_VERSION\" \"$PWD\" %s\n", Quote(d.eval.path), id, id)
}

// The parts of a saved state, in the order in which they are read back: options
// that decide how functions parse come first, set -e and its like last. NUL
// bytes, which no variable can hold, stand between them.
const (
	partDir       = iota
	partFunction  // the functions that bash was in
	partCounts    // of positional parameters, and of directories that pushd has stacked
	partOptions   // shopt, umask
	partVariables // with their attributes
	partFunctions
	partMarks   // attributes of functions
	partAliases // aliases and traps
	partSet     // set -o
	partSeal
	parts
)

// saveTo is a command list that writes the state to path, sealed by id, with
// builtins alone.
func saveTo(n Names, path, id string) string {
	var b strings.Builder
	b.WriteString("{ ")
	for _, builtin := range []string{
		`printf '%s\0' "${PWD-}"`,
		`printf '%s ' "${FUNCNAME[@]-}"`, `printf '\0%s %s\0' "$#" "${#DIRSTACK[@]}"`,
		"shopt -p", "umask -p", `printf '\0'`,
		"declare -p", `printf '\0'`,
		"declare -f", `printf '\0'`,
		"declare -F", `printf '\0'`,
		"alias -p", "trap -p", `printf '\0'`,
		"set +o", `printf '\0%s' ` + id,
	} {
		fmt.Fprintf(&b, "%s%s; ", n, builtin)
	}
	fmt.Fprintf(&b, "} 2>/dev/null >|%s || %s:", Quote(path), n)
	return b.String()
}
