package command

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Exit codes that limpet itself puts into a [Result]. The others are bash's.
const (
	CodeUnknown     = -1  // it is not known how the command ended, or nothing ran
	CodeTimeout     = 124 // stopped, once it ran, by a timeout or a deadline, as timeout(1) says it
	CodeInterrupted = 130 // stopped, once it ran, by a cancel or an interrupt: 128 + SIGINT
)

// Result is what came of a command.
type Result struct {
	// ExitCode is bash's $?: 0 to 255, 128+n when signal n ended the command.
	// See the Code constants for what limpet adds.
	ExitCode int

	// Stdout and Stderr are what the command wrote until it ended. What its
	// background jobs write later belongs to no Result.
	Stdout, Stderr Output

	// Dir is the shell's directory after the command.
	Dir string

	// Started is when the command got its turn, Elapsed the time from there to
	// its Result, with what Writers took. To wait for the turn counts in
	// neither, nor does the start of a bash, before the command or behind it.
	// Elapsed is zero if nothing ran.
	Started time.Time
	Elapsed time.Duration

	Receipt Receipt

	// Denied is a hint at what a sandbox has refused to the command, if it failed and
	// its output looks like that: "there is no network in the sandbox". It is empty for
	// most failures, and may be wrong.
	Denied string

	// Restart is nil unless bash ended with or before this command.
	Restart *Restart
}

// Err returns nil for exit code 0 and an [*ExitError] for any other.
func (r Result) Err() error {
	if r.ExitCode == 0 {
		return nil
	}
	return &ExitError{Result: r}
}

// ExitError is a non-zero exit code as an error, for callers that want one:
// see [Result.Err].
type ExitError struct{ Result Result }

func (e *ExitError) Error() string {
	text := fmt.Sprintf("command: exit status %d", e.Result.ExitCode)
	last := strings.TrimSpace(e.Result.Stderr.String())
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		last = last[i+1:]
	}
	if last == "" {
		return text
	}
	return text + ": " + last
}

// Receipt says what the command cost and what it left behind.
type Receipt struct {
	// Pipeline holds the exit code of each stage of the last pipeline, as
	// bash's PIPESTATUS; one entry for a plain command. Nil where it is not
	// known: for a one-shot command, and for one that was stopped or that
	// ended bash.
	Pipeline []int

	// Signal is the signal that ended the command, taken from an exit code of
	// 128+n; 0 if none. A script that says "exit 137" looks the same.
	Signal syscall.Signal

	// User and System are the CPU time of the command and of those of its
	// children that it waited for. In a persistent shell the kernel counts
	// it in steps of 10 ms; for a one-shot command it is exact.
	User, System time.Duration

	// Leftover lists the processes that the command started and left running.
	// Linux only.
	Leftover []Process

	// NotKept says, for people, what the script has changed and the shell does not have. A
	// script that may end its shell (exit, set -e, a sourced file) runs in a fork of it; what it
	// changed comes back, but not the descriptors that it opened, nor jobs that it started, as
	// jobs. Empty for most commands.
	NotKept []string
}

// Process is a process as it was seen at one moment. The pair of PID and Start
// names it for good; a PID alone can be reused.
type Process struct {
	PID     int
	Start   uint64 // clock ticks after boot, field 22 of /proc/PID/stat
	Command string // its arguments, joined by spaces and cut at 200 bytes
}

func (p Process) String() string { return fmt.Sprintf("%d (%s)", p.PID, p.Command) }

// Restart reports that bash ended and was replaced by a new one.
type Restart struct {
	// Reason is one sentence: "the command ended bash with status 7".
	Reason string

	// Restored names what the new bash has again, Lost what it has not.
	Restored, Lost []string

	// Err is non-nil when no new bash could be started. The next command
	// tries again.
	Err error
}

// String is the reason, and, if anything was lost, what was restored and what was not.
func (r *Restart) String() string {
	if r == nil {
		return "no restart"
	}
	text := r.Reason
	if r.Err != nil {
		return text + "; starting a new bash failed: " + r.Err.Error()
	}
	if len(r.Lost) == 0 {
		return text // A list of what was restored is worth reading only beside a loss.
	}
	if len(r.Restored) > 0 {
		text += "; restored: " + strings.Join(r.Restored, ", ")
	}
	return text + "; lost: " + strings.Join(r.Lost, ", ")
}
