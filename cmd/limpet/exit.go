package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
	"github.com/limpet-sh/limpet/transport"
)

// The exit codes that are limpet's own. 124 to 127 are those of timeout(1),
// env(1) and docker run.
const (
	codeNoMatch  = 1 // as of grep(1)
	codePartly   = 1 // as of cp(1)
	codeUsage    = 2
	codeUnknown  = 70 // EX_SOFTWARE (sysexits.h), for want of a better one: trying again does not help
	codeBusy     = 75 // EX_TEMPFAIL (as above): try again
	codeTimeout  = command.CodeTimeout
	codeFailed   = 125
	codeCannot   = 126
	codeNotFound = 127
	codeSignal   = 128 // plus the signal
)

// exitCode is a line of the table: of "limpet help exit-codes", and of codeOf.
type exitCode struct {
	code    int
	label   string // where the code is a range
	meaning string
	is      func(error) bool // nil: the code is the command's own
}

var exitCodes = []exitCode{
	{0, "", "the last command succeeded", nil},
	{1, "1-255", "the exit code of the last command, where none of the following applies", nil},
	{codeUsage, "", "wrong usage: a bad flag or argument, or nothing to run, or an --id of another script; no command ran", badUsage},
	{codeUnknown, "", "with --session and --on: the keeper died that had the command, or the connection to it is lost; it may have run, and with --id is not run again", isAny(wire.ErrMayHaveRun)},
	{codeBusy, "", "with --session and --no-wait: another command runs there; nothing ran", isAny(shell.ErrBusy)},
	{codeTimeout, "", "the last command was stopped by --timeout or --idle-timeout", timedOut},
	{codeFailed, "", "limpet itself failed, or bash died and did not say how the command ended; with --on, the other machine is not reached, or not any more", notReached},
	{codeCannot, "", "there is a bash, but it could not be started, or the sandbox cannot be enforced; with --approve, the script was not approved, and did not run", cannotRun},
	{codeNotFound, "", "there is no bash", notFound},
	{codeSignal, "128+n", "signal n ended the last command", nil},
	{codeSignal + 1, "", "limpet got SIGHUP, and stopped the command, unless that is in a session by name", got(syscall.SIGHUP)},
	{codeSignal + 2, "", "limpet got SIGINT (Ctrl-C), and stopped the command", got(syscall.SIGINT)},
	{codeSignal + 3, "", "limpet run got SIGQUIT (Ctrl-\\), and stopped the command", got(syscall.SIGQUIT)},
	{codeSignal + 13, "", "nobody reads the output any more, as behind | head; the command was stopped", got(syscall.SIGPIPE)},
	{codeSignal + 15, "", "limpet got SIGTERM, and stopped the command", got(syscall.SIGTERM)},
}

// jobsExitCodes are those of limpet jobs, where they say something else. A job that is
// named and not there is 127 to the wait of a shell, too.
var jobsExitCodes = []exitCode{
	{0, "", "it was done; of wait: the pattern, the silence or the port has come", nil},
	{codeNoMatch, "", "of log --search: no line matches", nil},
	{1, "1-255", "of wait: the exit code of the job that has ended", nil},
	{codeUsage, "", "wrong usage: a bad flag or argument, or a part of an id that means several jobs", nil},
	{codeTimeout, "", "of wait: the time is over", nil},
	{codeFailed, "", "limpet itself failed, or does not reach the other machine, or not any more; of wait: nobody knows how the job ended, or it could not be started", nil},
	{codeCannot, "", "the job is not in a state for it, or not made for it, or another program owns the jobs", jobCannot},
	{codeNotFound, "", "there is no such job, or no bash", noJob},
	{codeSignal, "128+n", "of wait: signal n ended the job", nil},
	{codeSignal + 2, "", "limpet got SIGINT (Ctrl-C), and the jobs run on; as above for other signals", nil},
}

// sessionExitCodes are those of limpet session, where they say something else. A session that is named
// and not there is what a job is to a wait.
var sessionExitCodes = []exitCode{
	{0, "", "it was done", nil},
	{codeUsage, "", "wrong usage: a bad flag or argument, or the beginning of a name that means several sessions", nil},
	{codeBusy, "", "of upgrade --no-wait: a command runs in the session; nothing was done", isAny(shell.ErrBusy)},
	{codeFailed, "", "limpet itself failed, or does not reach the other machine, or not any more", nil},
	{codeCannot, "", "the keeper of the session does not answer, or an upgrade would lose something", isAny(keeper.ErrMute, wire.ErrGone, wire.ErrUnreachable, wire.ErrWouldLose)},
	{codeNotFound, "", "there is no such session", isAny(session.ErrNotFound)},
}

// termExitCodes are those of limpet term, where they say something else.
var termExitCodes = []exitCode{
	{0, "", "it was done; of wait: what was waited for has come; of attach: you have detached", nil},
	{1, "1-255", "of wait and attach, and of send where it waits: the exit code of the program that has ended", nil},
	{codeUsage, "", "wrong usage: a bad flag or argument, or a part of an id that means several terminals", nil},
	{codeTimeout, "", "of wait, and of send where it waits: the time is over", nil},
	{codeFailed, "", "limpet itself failed, or does not reach the other machine, or not any more; of wait and attach: nobody knows how the program ended", nil},
	{codeCannot, "", "the terminal is not in a state for it, the program that has it cannot be asked, or a sandbox cannot be had", termCannot},
	{codeNotFound, "", "there is no such terminal, or no such program to start", noTerm},
	{codeSignal, "128+n", "of wait and attach: signal n ended the program", nil},
	{codeSignal + 2, "", "limpet got SIGINT (Ctrl-C), and the program runs on; as above for other signals", nil},
}

// hostsExitCodes are those of limpet hosts, where they say something else.
var hostsExitCodes = []exitCode{
	{0, "", "it was done", nil},
	{codePartly, "", "of copy: something was not copied, or skipped; what, and why, is on standard error", notCopied},
	{codeUsage, "", "wrong usage: a bad flag or argument, or no such name of a machine", nil},
	{codeFailed, "", "limpet itself failed, or the machine is not reached, or not any more", nil},
	{codeNotFound, "", "of copy --session: there is no such session", nil},
	{codeSignal + 2, "", "limpet got SIGINT (Ctrl-C); as above for other signals", nil},
}

// codeOf returns the exit code for an error. It is the only place that chooses
// one.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if own, ok := errors.AsType[status](err); ok {
		return int(own)
	}
	if e, ok := errors.AsType[*wire.EndedError](err); ok {
		return e.Code // Of a command with an --id that was asked for before.
	}
	if e, ok := errors.AsType[*hostError](err); ok {
		return e.code // It was chosen here, by the limpet that has the error.
	}
	for _, row := range slices.Concat(exitCodes, jobsExitCodes, termExitCodes, sessionExitCodes, hostsExitCodes) {
		if row.is != nil && row.is(err) {
			return row.code
		}
	}
	return codeFailed
}

// codeOfResult is codeOf for what a shell returned: the command's own code, if
// there is one.
func codeOfResult(res command.Result, err error) int {
	if err != nil {
		return codeOf(err)
	}
	return res.ExitCode
}

// status is a command's own exit code on its way out of the program. It is no
// message: the command has said what there was to say.
type status int

func (s status) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// exit returns code as an error, and nil for 0.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return status(code)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func badUsage(err error) bool { return isA[*usageError](err) || errors.Is(err, wire.ErrOtherCommand) }

func got(sig syscall.Signal) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*signalError](err)
		return ok && e.sig == sig
	}
}

func timedOut(err error) bool {
	e, ok := errors.AsType[*shell.InterruptError](err)
	return ok && e.ExitCode() == codeTimeout && !isA[*shell.StartError](err) // An init file is no command.
}

// notFound and cannotRun part the failed starts as env(1) does.
func notFound(err error) bool {
	return isA[*transport.NoBashError](err) && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist))
}

func cannotRun(err error) bool {
	return (isA[*shell.StartError](err) || isA[*sandbox.Error](err) || isA[*approval.RefusedError](err) || isA[*shell.RefusedError](err)) && !notFound(err) && !isA[*signalError](err)
}

// noJob and jobCannot part what is wrong with a job.
func noJob(err error) bool { return errors.Is(err, jobs.ErrNotFound) }

func jobCannot(err error) bool {
	return slices.ContainsFunc([]error{
		jobs.ErrOwned, jobs.ErrFinished, jobs.ErrRunning, jobs.ErrNotPossible, jobs.ErrTooMany, jobs.ErrNotRead,
	}, func(state error) bool { return errors.Is(err, state) })
}

// notCopied reports whether a file, and nothing else, is why something was not copied.
func notCopied(err error) bool {
	return errors.Is(err, transfer.ErrPartly) || isA[*transfer.Error](err) || isA[*transfer.FarError](err)
}

// isAny returns whether an error is one of some.
func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// noTerm and termCannot part what is wrong with a terminal.
func noTerm(err error) bool {
	return errors.Is(err, terminal.ErrNotFound) || errors.Is(err, terminal.ErrNoProgram)
}

func termCannot(err error) bool {
	return slices.ContainsFunc([]error{
		terminal.ErrEnded, terminal.ErrRunning, terminal.ErrElsewhere, terminal.ErrTooMany, terminal.ErrNotRead, terminal.ErrLineTooLong,
		remote.ErrUnreachable, remote.ErrGone, remote.ErrOlder,
	}, func(state error) bool { return errors.Is(err, state) })
}

// notReached is about another machine, and not about who keeps a session there: such an error is
// wire.ErrUnreachable too, which is another code for a keeper that does not answer. All errors
// without a line of their own have the same code as this one.
func notReached(err error) bool {
	return isAny(host.ErrUnreached, host.ErrLost)(err) && !isA[*signalError](err)
}

// exitCodesTopic is "limpet help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes of limpet mean",
		Long:  exitCodesHelp(),
	}
}

func exitCodesHelp() string {
	var text strings.Builder
	text.WriteString("The exit code of limpet run and limpet repl is that of the last command:\n\n")
	writeCodes(&text, exitCodes)
	text.WriteString("\nThat of limpet jobs says what came of it:\n\n")
	writeCodes(&text, jobsExitCodes)
	text.WriteString("\nSo does that of limpet term:\n\n")
	writeCodes(&text, termExitCodes)
	text.WriteString("\nAnd that of limpet session:\n\n")
	writeCodes(&text, sessionExitCodes)
	text.WriteString("\nAnd that of limpet hosts:\n\n")
	writeCodes(&text, hostsExitCodes)
	text.WriteString("\nThat of limpet approve explain is its verdict:\n\n")
	writeCodes(&text, approveExitCodes)
	text.WriteString("\nA command may return these codes too; the messages on stderr tell them apart.")
	return text.String()
}

func writeCodes(text *strings.Builder, rows []exitCode) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		label := row.label
		if label == "" {
			label = strconv.Itoa(row.code)
		}
		fmt.Fprintf(table, "  %s\t%s\n", label, row.meaning)
	}
	_ = table.Flush() // A strings.Builder takes everything.
}
