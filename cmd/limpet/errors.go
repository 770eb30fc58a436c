package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/shell"
)

// usageError says that the command line makes no sense. Nothing ran.
type usageError struct {
	command string // whose help to read
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v; see %s --help", e.err, e.command)
}
func (e *usageError) Unwrap() error { return e.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
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
var flagNames = strings.NewReplacer(
	"Options.Bash", "--bash",
	"Options.StartTimeout", "--start-timeout",
	"set RuntimeDir", "set --runtime-dir",
	"raise the output limit", "raise --output-limit",
	"ask for Unconfined explicitly", "leave --sandbox out",
	"ask for HostNetwork explicitly", "use --sandbox host-network",
	"use WorkspaceWrite on", "use --sandbox workspace-write on",
	"show it by ExtraRO, or by Root: All", "show it by --ro",
	"create it, or make it Optional", "create it",
	"Net.Allow", "--allow", "Net.Private", "the library's Net.Private",
	"FS.ExtraRO", "--ro", "FS.ExtraRW", "--rw",
)

// explain returns what to tell the user about err; nothing if it says no more
// than the exit code does.
func explain(err error) string {
	if err == nil || isA[status](err) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(flagNames.Replace(err.Error()) + remedy(err)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "; ")
}

// remedy adds what to do about a bash that ended, or was none, before it could
// run anything; the library does not know what was meant.
func remedy(err error) string {
	e, ok := errors.AsType[*shell.StartError](err)
	if !ok || e.Code < 0 && e.Signal == 0 && !errors.Is(err, syscall.ENOEXEC) {
		return ""
	}
	return "; --bash wants a bash, 4.4 or newer, and a file for --init must not end it"
}

// errNoInput is why nothing is read from a terminal.
var errNoInput = errors.New("no script: give it as an argument, or on standard input, or use limpet repl")
