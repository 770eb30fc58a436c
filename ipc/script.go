package ipc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/script"
)

// Call is what one command needs rendered.
type Call struct {
	ID     string
	Script string

	Env    []string // exported to Script alone
	Unset  []string // variables that Script does not have; with Fork
	Back   string   // where to go before anything else; empty: stay
	Anew   bool     // Back is where bash is, but that was removed and made anew
	Dir    string   // where Script runs; empty: there
	Status int      // the $? that Script sees first
	Inner  bool     // report $? and PIPESTATUS from inside the eval; Script is complete
	Stdin  bool     // Script reads what bash has at InputFD; else nothing
	Input  string   // with Stdin: a file that Script reads instead
	Aside  bool     // Script opens descriptors: bash puts its own streams where no script goes
	Fork   *Fork    // run Script in a fork of bash; nil: in bash itself

	// Traps says that Script is about traps: it finds none of limpet's own.
	Traps bool

	// Before holds lines of limpet's own that run before Script.
	Before []string

	// Enable has the builtins that limpet needs enabled first: Script comes after one
	// that may have disabled them, "." included.
	Enable bool

	// Names is how to reach a builtin past the functions of the user.
	Names script.Names

	stdout, stderr string // paths of the captures; an empty stderr means 2>&1
}

// evalScript is the text of the file that bash sources. It is sourced because
// bash then prints no "[1] 12345" for a background job, and it evals because
// then a syntax error in Script ends the eval and nothing else.
func (d *dir) evalScript(c Call) string {
	var b strings.Builder
	// All on one line, so that the lines of Script count from 1.
	if c.Anew {
		fmt.Fprintf(&b, "%sprintf '%%s\\0' \"${OLDPWD-}\" >|%s; ", c.Names, script.Quote(d.beforePath()))
	}
	if c.Back != "" {
		fmt.Fprintf(&b, "%s || %sreturn; ", d.goBack(c.Names, c.Back, cmp.Or(c.stderr, c.stdout)), c.Names)
	}
	for _, line := range c.Before {
		b.WriteString(line + "; ")
	}
	for _, name := range c.named() {
		b.WriteString(d.mayChange(c, name))
	}
	b.WriteString(d.writeBefore(c))
	if c.Dir != "" {
		// Why it fails is not the script's to print. Under errexit nothing may fail.
		fmt.Fprintf(&b, "%scd -- %s 2>|%s || { %sprintf '%%s\\n' %s >>%s && %sreturn 0; %sreturn 1; }; ", c.Names, script.Quote(c.Dir), script.Quote(d.inner.path),
			c.Names, script.Quote(noDir(c.ID)), script.Quote(d.inner.path), c.Names, c.Names)
	}
	if c.Fork != nil {
		b.WriteString("( " + d.forkHead(c))
	}
	fresh := c.Fork != nil && c.Fork.Fresh != nil
	if c.Status != 0 && !fresh {
		b.WriteString(d.setStatus(c.Names, c.Status) + "; ")
	}
	switch {
	case fresh:
		b.WriteString(d.withEnv(c) + d.freshBash(c) + " )")
	case c.Fork != nil:
		for _, entry := range c.Env {
			name, value, _ := strings.Cut(entry, "=")
			fmt.Fprintf(&b, "%sexport %s=%s; ", c.Names, name, script.Quote(value))
		}
		b.WriteString(d.text(c) + "\n)")
	default:
		if c.Aside {
			b.WriteString(d.openAside(c))
		}
		b.WriteString(d.withEnv(c) + "eval -- " + script.Quote(d.text(c)))
	}
	b.WriteString(d.redirections(c) + "\n")
	return b.String()
}

// redirections are those of the command that runs Script.
func (d *dir) redirections(c Call) string {
	if c.Aside {
		return asideRedirections(c)
	}
	from := " </dev/null"
	if c.Stdin {
		// Nothing but stdin is left of it for what Script starts, nor for Script.
		from = fmt.Sprintf(" %s %d<&- %d<&-", c.input(), InputFD, commandFD)
	}
	if c.stderr == "" {
		return from + " >>" + script.Quote(c.stdout) + " 2>&1"
	}
	return from + " >>" + script.Quote(c.stdout) + " 2>>" + script.Quote(c.stderr)
}

// input is the redirection by which Script has what it reads.
func (c Call) input() string {
	if c.Input != "" {
		return "<" + script.Quote(c.Input)
	}
	return fmt.Sprintf("<&%d", InputFD)
}

// hidden returns the names of the variables that the call hides from the session.
func (c Call) hidden() (names []string) {
	if c.Dir != "" {
		names = append(names, "OLDPWD")
	}
	if c.Fork == nil {
		names = append(names, c.named()...)
	}
	return names
}

// named returns the names of the variables that Env sets and Unset unsets.
func (c Call) named() []string {
	names := slices.Clone(c.Unset)
	for _, entry := range c.Env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mayChange is the command that reports, instead of running Script, that the variable is
// readonly. Bash would say so to nobody, and run Script with the variable as it is. With
// [@] the expansion is no error where the variable has no value (set -u).
func (d *dir) mayChange(c Call, name string) string {
	return fmt.Sprintf(`case "${%s[@]@a}" in *r*) %sprintf '%%s\n' %s >|%s && %sreturn 0; %sreturn 1 ;; esac; `,
		name, c.Names, script.Quote(name+" "+isReadonly(c.ID)), script.Quote(d.inner.path), c.Names, c.Names)
}

// isReadonly is what bash says behind the name of a variable that is readonly. Nothing ran.
func isReadonly(id string) string { return id + " readonly " + id }

// noDir is what bash says behind the reason, where a script would report its status, if
// it could not go to the script's directory. Nothing ran.
func noDir(id string) string { return id + " cd " + id }

// goBack is the command by which bash leaves the directory of a request, as if
// it had never been there: "cd -" goes where it would have gone. It fails, with
// a word about it in the file stderr, if the directory is gone.
func (d *dir) goBack(n script.Names, dir, stderr string) string {
	return fmt.Sprintf("%scd -- %s 2>>%s && { IFS= %sread -r -d '' OLDPWD <%s || %s:; }", n, script.Quote(dir), script.Quote(stderr), n, script.Quote(d.beforePath()), n)
}

// setStatus is the command that sets $?. In an && list neither an ERR trap nor errexit
// minds the status.
func (d *dir) setStatus(n script.Names, status int) string {
	return fmt.Sprintf("%s. %s %d && %s:", n, script.Quote(d.statusScript()), status, n)
}

// withEnv begins a command of limpet's own that has the variables of a call in its
// environment. Bash exports assignments before "command eval" to what it runs, and takes
// them back, in posix mode too. Before "builtin eval" it does not export them.
func (d *dir) withEnv(c Call) string {
	var b strings.Builder
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&b, "%s=%s ", name, script.Quote(value))
	}
	if names := c.Names; names == script.ViaBuiltin && b.Len() > 0 {
		return b.String() + string(script.ViaCommand)
	}
	return b.String() + string(c.Names)
}

// text is what bash reads of a call: the script, and what limpet wants to know from inside of it.
func (d *dir) text(c Call) string {
	text := c.Script
	if c.Aside {
		text = closeAside + text
	}
	if c.Fork != nil {
		text = c.Fork.prefix(c.Names) + text
	}
	switch {
	case c.Fork != nil && c.Fork.Trapped && c.Inner:
		text += behind + d.forkEnd(c)
	case c.Inner:
		text += behind + d.innerRecord(c)
	}
	return text
}

// behind stands between a script and limpet's own words. The first line behind an eval of an
// open quote is a syntax error to bash (5.2), unless it is empty.
const behind = "\n\n"

// innerRecord reports from inside the eval what is lost outside: PIPESTATUS.
// The redirection comes before the printf so that set -x traces it nowhere.
func (d *dir) innerRecord(c Call) string {
	return fmt.Sprintf(`{ %s; } 2>/dev/null 1<>%s`, printRecord(c.Names, c.ID, `"$?" "${PIPESTATUS[@]}"`), script.Quote(d.inner.path))
}

// lines are the two lines for bash's stdin. The second acts only when the
// first was thrown away: see the package comment.
func (d *dir) lines(c Call) string {
	enable := ""
	if c.Enable {
		enable = string(c.Names) + "enable . cd eval printf read return trap; "
	}
	back := ""
	if c.Stdin {
		back = "; " + stopAtInput(c.Names)
	}
	return fmt.Sprintf("%s%s. %s; %s%s\n", enable, c.Names, script.Quote(d.eval.path), report(c.Names, c.ID), back) + closing(c)
}

// closing is the second line.
func closing(c Call) string {
	line := closingLine(c.Names, c.ID)
	if c.Stdin {
		line += stopAtInput(c.Names) + "\n"
	}
	return line
}

func closingLine(n script.Names, id string) string {
	return fmt.Sprintf("case $? in 0) ;; *) %s ;; esac\n", report(n, id))
}

// stopAtInput is the command by which bash reads no command from what Script was given to
// read. While that is descriptor 0, bash keeps its own in a copy, which Script can
// close by its number: then there is nothing to come back to, and bash ends. Exit saves
// the state, but is refused while there are stopped jobs. Not every system has a /dev/fd,
// and not every one a /proc.
func stopAtInput(n script.Names) string {
	same := func(dir string) string { return fmt.Sprintf("%stest %s/0 -ef %s/%d", n, dir, dir, commandFD) }
	return fmt.Sprintf("%s || %s || %sexit || %skill -KILL $$", same("/dev/fd"), same("/proc/self/fd"), n, n)
}

// keepCommands is the command by which bash keeps a copy of the descriptor that it reads
// commands from, to know it by. It comes before the first [Call] with Stdin.
func keepCommands() string { return fmt.Sprintf("exec %d<&0", commandFD) }

// probeStatus is in the report on probe if bash did what it was asked to.
const probeStatus = 5

// probe returns lines by which bash reads a script as it reads those of commands, and
// reports.
func (d *dir) probe(n script.Names, id string) (lines string, err error) {
	if err := d.writeEval(fmt.Sprintf("%seval -- %s\n", n, script.Quote(fmt.Sprintf("%sreturn %d", n, probeStatus)))); err != nil {
		return "", err
	}
	return d.lines(Call{Names: n, ID: id}), nil
}

// switchOff returns lines by which bash switches options of set -o off, and reports.
func switchOff(n script.Names, options []string, id string) string {
	return fmt.Sprintf("{ %sset +o %s; } 2>/dev/null; %s\n", n, strings.Join(options, " +o "), report(n, id))
}

// report is the call that writes the record. It needs no redirection: the
// status file is bash's own stdout.
func report(n script.Names, id string) string {
	return printRecord(n, id, `"$?" "$SHELLOPTS" "${PWD-}"`)
}

// printRecord is the command that prints a record with these words. See [Record] for its
// form.
func printRecord(n script.Names, id, words string) string {
	seal := id[:len(id)/2] + " " + id[len(id)/2:]
	return fmt.Sprintf(`%sprintf '<%%.4097s>' %s %s %s`, n, seal, words, seal) // A PWD that a script made up may be longer than any path.
}

// InputFD is the descriptor of bash from which the scripts of a [Call] with Stdin read. It is
// above those that scripts name, and that bash uses for process substitutions (63 and below), and
// low: bash opens it again after each script, also under a "ulimit -n".
const InputFD = 70

// commandFD is a copy of descriptor 0, which bash reads commands from.
const commandFD = InputFD + 1

// startLine is the line that sources the prelude and reports that bash is
// ready, with its version in the place of the flags.
func (d *dir) startLine(id string) string {
	return fmt.Sprintf(". %s; %s\n", script.Quote(d.eval.path), printRecord("", id, `"$?" "$BASH_VERSION" "$PWD"`))
}
