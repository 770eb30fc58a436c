package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/shell"
)

// usageError says that the command line makes no sense. Nothing ran.
type usageError = noun.UsageError

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return noun.Usagef(cmd, format, args...)
}

// signalError says that a signal told limpet to stop. It is the cause of the
// context that ends a command then.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string { return "got " + signalName(e.sig) }

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(sig)) // A real-time one.
}

// flagNames translates what the library calls its options: its errors name
// the remedy, and here the remedy is a flag.
var flagNames = strings.NewReplacer(append([]string{
	"Options.Bash", "--bash",
	"Options.StartTimeout", "--start-timeout",
	"set RuntimeDir", "set --runtime-dir", "set StateDir", "set --state",
	"raise the output limit", "raise --output-limit",
	"pass binary data through Stdin or a file", "keep binary data in a file",
	"ask for Unconfined explicitly", "leave --sandbox out",
	"ask for HostNetwork explicitly", "use --sandbox host-network",
	"use WorkspaceWrite on", "use --sandbox workspace-write on",
	"show it by ExtraRO, or by Root: All", "show it by --ro",
	"create it, or make it Optional", "create it",
	"give a file or a pipe instead", "give a file or a pipe instead, or nothing at all (limpet run -n)",
	"by Net.Allow=HOST", "by --allow HOST", "Net.Allow", "--allow", "Net.Private", "the library's Net.Private",
	"leave RunAs out", "leave --run-as out",
	"FS.ExtraRO", "--ro", "FS.ExtraRW", "--rw", "FS.Workspace", "--workspace",
	"ask that one, or look at the jobs with Options.ReadOnly",
	"have that program do it, or try again when it has ended; limpet jobs list, log, poll and wait work meanwhile",
	"closed: open it again", "closed; the next limpet run -s with its name makes it anew", "closed; open it again", "closed; limpet run -s with its name makes it anew",
	"List has those that there are", "limpet jobs list has those that there are",
	"start it with Stdin or PTY", "start it with --stdin or --pty", "start it with PTY", "start it with --pty",
	"stop it first", "stop it first, by limpet jobs stop", "close it first", "end it first, by limpet term stop",
	"stop some, or raise Options.MaxRunning", "stop some, by limpet jobs stop",
	"close some, or raise Options.MaxRunning", "end some, by limpet term stop",
	", or open it without Options.ReadOnly", "",
	"and Notify asks for the end", "and --notify asks for the end",
	"set FS.Git=GitWritable", "use --git write",
}, flagless...)...)

// flagless are options of the library that no flag sets.
var flagless = func() (pairs []string) {
	for _, name := range []string{
		"Env.Pass", "Env.Set", "FS.Access", "FS.Git", "FS.HomeDir", "FS.Home", "FS.Mask", "FS.Missing", "FS.Protect", "FS.Root", "FS.ScanMasks", "FS.ScanProtect",
		"FS.TmpDir", "FS.Tmp", "Limits.MemoryMax", "Limits.PidsMax",
		"Net.Mode", "Net.Unix", "Proc.Allow32Bit", "Proc.Hostname", "Proc.NestedWeak",
	} {
		pairs = append(pairs, name, "the library's "+name)
	}
	return pairs
}()

// explain returns what to tell the user about err; nothing if it says no more
// than the exit code does.
func explain(err error) string {
	if err == nil || isA[status](err) {
		return ""
	}
	return oneLine(harmless(flagNames.Replace(unprefixed(err)) + remedy(err)))
}

// agentNames are flagNames for who cannot set flags, but tell those who can.
var agentNames = strings.NewReplacer(append([]string{
	"Options.Bash", "--bash of limpet mcp",
	"Options.StartTimeout", "--start-timeout", "set RuntimeDir", "set --runtime-dir of limpet mcp", "set StateDir", "set --state of limpet mcp",
	"by Net.Allow=HOST", "by --allow HOST of limpet mcp", "Net.Allow", "--allow of limpet mcp",
	"FS.ExtraRO", "--ro of limpet mcp", "FS.ExtraRW", "--rw of limpet mcp", "show it by ExtraRO, or by Root: All", "show it by --ro of limpet mcp",
	"closed: open it again", "closed; the next call that names it makes it anew", "closed; open it again", "closed; the next call that names it makes it anew",
	"ask that one, or look at the jobs with Options.ReadOnly", "give this limpet mcp another --state",
	"some, or raise Options.MaxRunning", "some", ", or open it without Options.ReadOnly", "",
	"set FS.Git=GitWritable", "use --git write of limpet mcp", "FS.Workspace", "--workspace of limpet mcp",
}, flagless...)...)

// explainToAgent returns what to tell an agent about err.
func explainToAgent(err error) string { return agentNames.Replace(unprefixed(err)) }

// packages begin the messages of the library's errors, as Go has it. To users
// they mean nothing, or the wrong thing. The sandbox is not among them: it is
// what the user asked for.
var packages = []string{"command", "egress", "ipc", "jobs", "mcpserver", "proc", "rundir", "screen", "session", "shell", "supervisor", "terminal", "transfer"}

// unprefixed returns the message of err without the names of packages. Only
// those are taken out that begin an error: a script may print the same words.
func unprefixed(err error) string {
	text := err.Error()
	for _, part := range parts(err) {
		name, rest, ok := strings.Cut(part.Error(), ": ")
		if ok && slices.Contains(packages, name) {
			text = strings.Replace(text, name+": "+rest, rest, 1)
		}
	}
	return text
}

// parts returns err and all that it wraps, from the outside in.
func parts(err error) []error {
	all := []error{err}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			all = append(all, parts(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			all = append(all, parts(inner)...)
		}
	}
	return all
}

// inWords says what the value of a flag should have been, where the flag
// package repeats what a parser of Go said to its programmer.
func inWords(err error) error {
	cause := errors.Unwrap(err)
	if cause == nil {
		return err
	}
	text, ok := strings.CutSuffix(err.Error(), cause.Error())
	if !ok {
		return err
	}
	number, _ := errors.AsType[*strconv.NumError](cause)
	switch {
	case number != nil && number.Func == "ParseBool": // To strconv that is a number.
		return errors.New(text + "wants true or false")
	case number != nil && errors.Is(number, strconv.ErrRange):
		return errors.New(text + "wants a number that is nearer to 0")
	case number != nil:
		return errors.New(text + "wants a number, as in 10")
	}
	return err
}

// restartNews is what a restart says, as an error: its Err is explained too.
type restartNews struct{ *command.Restart }

func (r restartNews) Error() string { return r.String() }
func (r restartNews) Unwrap() error { return r.Err }

// remedy adds what to do about a job that has ended, a full disk and other limits, or a bash that ended before it
// could run anything, where the library does not know what was meant.
func remedy(err error) string {
	if e, ok := errors.AsType[*jobs.Error](err); ok && e.Remedy == "" && errors.Is(e, jobs.ErrFinished) {
		return "; limpet jobs log shows what it has printed"
	}
	if text := errtext.Remedy(err); text != "" {
		return "; " + text
	}
	if errors.Is(err, wire.ErrTooLarge) {
		return "; have it in a file where the session is: limpet run -s NAME '. ./FILE' runs a script"
	}
	e, ok := errors.AsType[*shell.StartError](err)
	if !ok || e.Remedy != "" || e.Code < 0 && e.Signal == 0 {
		return ""
	}
	return "; --bash wants a bash, 4.4 or newer, and a file for --init must not end it"
}

// Why there is nothing to run. From a terminal nothing is read.
var (
	errNoInput = errors.New("no script: give it as an argument, or on standard input, or use limpet repl")
	errNothing = errors.New("there is nothing on standard input: send a script, as in 'limpet run <script.sh', or give it as an argument")
)
