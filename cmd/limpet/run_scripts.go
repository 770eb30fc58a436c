package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
)

// stdinArg is the argument that means standard input.
const stdinArg = "-"

// toRun is what the command line of limpet run asks for.
type toRun struct {
	scripts []oneScript

	// positional are $0, $1 and so on for scripts that came by -c.
	positional []string

	// stdinTaken reports whether standard input was read as a script. The scripts then
	// read nothing from it.
	stdinTaken bool
}

// oneScript is one of them.
type oneScript struct {
	text  string
	words []string // that are the text, of a command behind --

	// A script in a file is run by a bash of its own, as if by "bash FILE ARGS". It has no
	// text.
	bash, file string
	args       []string
}

// scriptFlags are the flags that say what to run.
type scriptFlags struct {
	commands []string
	file     string
	noStdin  bool
}

func (f *scriptFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&f.commands, "command", "c", nil, "run `SCRIPT`; repeatable. Arguments are $0, $1 and so on, as with bash -c")
	flags.StringVarP(&f.file, "file", "f", "", "run the script in `FILE`, as bash FILE does; - is standard input. All that is behind it are its arguments")
	flags.BoolVarP(&f.noStdin, "no-stdin", "n", false, "let scripts read nothing from standard input, as ssh -n does")
}

// endFlags puts -- where the flags of limpet run end by themselves: behind -f FILE, and,
// with -c, before the first argument. What comes then is for the script, as with bash.
func endFlags(flags *pflag.FlagSet, args []string) []string {
	end := func(i int) []string { return append(append(args[:i:i], "--"), args[i:]...) }
	command := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || arg == stdinArg || !strings.HasPrefix(arg, "-") {
			if command {
				return end(i)
			}
			if arg == "--" {
				return args
			}
			continue
		}
		flag, wantsValue := flagOf(flags, arg)
		if wantsValue {
			i++
		}
		switch {
		case flag == nil: // Parsing them will say so.
		case flag.Name == "command":
			command = true
		case flag.Name == "file" && i < len(args):
			return end(i + 1)
		}
	}
	return args
}

// flagOf returns the flag of an argument, of several short ones the last, and whether its
// value is the next argument.
func flagOf(flags *pflag.FlagSet, arg string) (flag *pflag.Flag, wantsValue bool) {
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		name, _, has := strings.Cut(name, "=")
		flag = flags.Lookup(name)
		return flag, flag != nil && flag.NoOptDefVal == "" && !has
	}
	for i := 1; i < len(arg); i++ {
		if flag = flags.ShorthandLookup(arg[i : i+1]); flag == nil || flag.NoOptDefVal == "" {
			return flag, flag != nil && i == len(arg)-1
		}
	}
	return flag, false
}

// runArgs is endFlags for the arguments of limpet, if they are those of limpet run.
func runArgs(root *cobra.Command, args []string) []string {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Name() != "run" {
		return args
	}
	return append([]string{cmd.Name()}, endFlags(cmd.Flags(), rest)...)
}

// toRun returns what to run, all of it checked: a bad script shall not be found out after
// half of them have run.
func (f *scriptFlags) toRun(cmd *cobra.Command, args []string, bash string) (run toRun, err error) {
	var behind []string // behind --, which endFlags may have put there
	dash := cmd.ArgsLenAtDash()
	if dash >= 0 {
		args, behind = args[:dash], args[dash:]
	}
	given := cmd.Flags().Changed
	for i, arg := range args {
		if err := run.add(cmd, arg, fmt.Sprintf("script %d", i+1)); err != nil {
			return run, err
		}
	}
	for _, text := range f.commands {
		if err := run.check(cmd, text, "-c"); err != nil {
			return run, err
		}
	}
	switch {
	case given("file"):
		err = run.addFile(cmd, oneScript{bash: bash, file: f.file, args: behind})
	case given("command"):
		run.positional = behind
	case dash >= 0 && len(behind) == 0:
		err = usagef(cmd, "there is no command behind --; is a variable empty?")
	case dash >= 0:
		run.scripts = append(run.scripts, oneScript{text: quoted(behind), words: behind})
	case len(run.scripts) == 0:
		err = run.addStdin(cmd)
	}
	return run, err
}

// quoted makes a script of the words of a command.
func quoted(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = script.Quote(word)
	}
	return strings.Join(quoted, " ")
}

func (run *toRun) add(cmd *cobra.Command, arg, name string) error {
	if arg == stdinArg {
		return run.addStdin(cmd)
	}
	return run.check(cmd, arg, name)
}

// check adds a script that can be run.
func (run *toRun) check(cmd *cobra.Command, text, name string) error {
	err := (command.Request{Script: text}).Validate()
	if errors.Is(err, command.ErrEmptyScript) {
		return usagef(cmd, "%s is empty; is a variable empty?", name)
	}
	if err != nil {
		return usagef(cmd, "%s: %w", name, err)
	}
	run.scripts = append(run.scripts, oneScript{text: text})
	return nil
}

// addStdin adds what is on standard input.
func (run *toRun) addStdin(cmd *cobra.Command) error {
	text, err := run.readStdin(cmd)
	if err != nil {
		return err
	}
	return run.check(cmd, text, "standard input")
}

func (run *toRun) readStdin(cmd *cobra.Command) (string, error) {
	if run.stdinTaken {
		return "", usagef(cmd, "standard input is one script, and can be run once")
	}
	run.stdinTaken = true
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return "", &usageError{Command: cmd.CommandPath(), Err: errNoInput}
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return "", fmt.Errorf("reading the script from standard input: %w", err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", usagef(cmd, "%w", errNothing)
	}
	return string(text), nil
}

// addFile adds a script in a file. What is no regular file, as <(program) or standard
// input, is read here: the shell does not have it.
func (run *toRun) addFile(cmd *cobra.Command, s oneScript) error {
	if s.file == "" {
		return emptyPath(cmd, "file")
	}
	if s.file == stdinArg {
		text, err := run.readStdin(cmd)
		if err != nil {
			return err
		}
		return run.check(cmd, s.inline(text), "standard input")
	}
	if err := usable(s.file, false, unix.R_OK); err != nil {
		return usagef(cmd, "--file %q: %w", s.file, err)
	}
	st, err := os.Stat(s.file)
	if err != nil || st.Mode().IsRegular() {
		run.scripts = append(run.scripts, s) // If it is gone by now bash says so.
		return nil
	}
	if in, err := os.Stdin.Stat(); err == nil && os.SameFile(st, in) {
		run.stdinTaken = true
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return usagef(cmd, "--file %q: %w", s.file, err)
	}
	return run.check(cmd, s.inline(string(text)), fmt.Sprintf("--file %q", s.file))
}

// in returns what to run in a shell that is in dir. A file is named as the user has named
// it, unless that would be another one there.
func (s oneScript) in(dir string) string {
	if s.file == "" {
		return s.text
	}
	file := s.file
	if here, err := os.Getwd(); err != nil || here != dir {
		file = absolute(file)
	}
	words := []string{s.bash}
	if strings.HasPrefix(file, "-") {
		words = append(words, "--")
	}
	return quoted(slices.Concat(words, []string{file}, s.args))
}

// inline is the script with the text of its file in it. Bash reads it as it reads that of
// bash <(program).
func (s oneScript) inline(text string) string {
	const fd = "9"
	end := "END_OF_FILE"
	for strings.Contains(text, end) {
		end += "_"
	}
	words := slices.Concat([]string{s.bash, "/dev/fd/" + fd}, s.args)
	return quoted(words) + " " + fd + "<<'" + end + "'\n" + strings.TrimSuffix(text, "\n") + "\n" + end
}

// shellSyntax are characters by which words are more than the arguments of one command.
const shellSyntax = ";|&<>$()`\n#{}*?[]~\\!"

// hint is about a script that is the name of a file, with arguments or without.
func (s oneScript) hint(code int) string {
	text := strings.TrimSpace(s.text)
	names := []string{text, strings.Fields(text)[0]} // No script is empty.
	if len(s.words) > 0 {
		names = s.words[:1]
	}
	for _, name := range names {
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
			continue
		}
		executable := unix.Access(name, unix.X_OK) == nil
		if executable && code == codeCannot {
			return "" // Bash has said why.
		}
		call := quoted([]string{name})
		if len(s.words) > 0 {
			call = quoted(s.words)
		} else if rest := text[len(name):]; rest != "" && !strings.ContainsAny(rest, shellSyntax) {
			call += rest
		} else {
			call += " [argument...]" // Pasted, the rest of the script would run outside of limpet.
		}
		hint := fmt.Sprintf("%s is a file here, and no command: run it by limpet run -f %s", name, call)
		if executable {
			hint += ", or by its first line, by limpet run ./" + call
		}
		return hint
	}
	if len(s.words) == 1 && strings.ContainsAny(s.words[0], " ;|&<>$") {
		return fmt.Sprintf("what is behind -- is one command, and %q the name of its program: leave -- out to run it as a script", s.words[0])
	}
	return ""
}
