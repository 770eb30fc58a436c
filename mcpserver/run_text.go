package mcpserver

import (
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MetaExitCode is where the exit code of a command is in the _meta of a result of run_command.
const MetaExitCode = "limpet/exit_code"

// meta has what a program asks for first.
func (o runOut) meta() mcp.Meta {
	meta := mcp.Meta{}
	if o.Status != statusExited { // One host shows its model all of this.
		meta["limpet/status"] = o.Status
	}
	if o.ExitCode != nil {
		meta[MetaExitCode] = *o.ExitCode
	}
	if o.ResultID != "" {
		meta["limpet/result_id"] = o.ResultID
	}
	if o.Job != nil {
		meta["limpet/job"] = o.Job.Job
	}
	return meta
}

// text is for a model: what was printed, and a line on how it ended.
func (o runOut) text() string {
	var text strings.Builder
	put := func(title, body string) {
		if body == "" {
			return
		}
		if title != "" {
			text.WriteString("[" + title + "]\n")
		}
		text.WriteString(strings.TrimSuffix(body, "\n") + "\n")
	}
	verdict := "[" + o.verdict() + "]"
	if long := o.Stdout + o.Stderr; len(long) > longAnswer || strings.Count(long, "\n") > mostLines/2 {
		text.WriteString(verdict + "\n")
	}
	put("", o.Stdout)
	put("stderr", o.Stderr)
	text.WriteString(verdict)
	for _, more := range o.more() {
		text.WriteString("\n[" + more + "]")
	}
	return text.String()
}

// longAnswer is a length, in bytes, from which on hosts cut answers: at the end, in the middle, or at
// the beginning. A longer answer begins and ends with the line that says how the command ended.
const longAnswer = 4 << 10

// worthTelling is how long a command takes, in seconds, whose time is told though it was
// not stopped.
const worthTelling = 10

// verdict is how the command ended, in a line: of most it is "exit 0", and nothing else
// that a model would have to read each time.
func (o runOut) verdict() string {
	var parts []string
	switch o.Status {
	case statusBackground:
		parts = append(parts, "runs in the background as job "+o.Job.Job)
	case statusStopped:
		parts = append(parts, "stopped: "+strings.ReplaceAll(o.StoppedBy, "_", " "))
	case statusDied:
		parts = append(parts, "bash was killed: it is not known how the command ended")
	case statusRestarted:
		parts = append(parts, "the session's bash was restarted: its directory, variables, functions and options are those of a new session")
	}
	if o.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit %d", *o.ExitCode))
	}
	if o.Signal != "" {
		parts = append(parts, o.Signal)
	}
	if o.Status == statusStopped || o.ElapsedSeconds >= worthTelling {
		parts = append(parts, fmt.Sprintf("after %v s", o.ElapsedSeconds))
	}
	switch omitted := o.StdoutOmitted + o.StderrOmitted; {
	case omitted > 0:
		parts = append(parts, fmt.Sprintf("%d bytes are left out: read_output has them, result %s", omitted, o.ResultID))
	case o.Binary || o.changed: // Else read_output has no more.
		parts = append(parts, "result "+o.ResultID)
	}
	switch {
	case o.named != "": // A model may believe in the one of a server before.
		parts = append(parts, fmt.Sprintf("%s, in %s", o.named, o.Dir))
	case o.moved:
		parts = append(parts, "now in "+o.Dir)
	}
	return strings.Join(parts, ", ")
}

// end says how the command ended, as part of a sentence.
func (o runOut) end() string {
	switch {
	case o.Status == statusBackground:
		return "runs on as job " + o.Job.Job
	case o.Status == statusExited && o.ExitCode != nil:
		return fmt.Sprintf("had exited with code %d", *o.ExitCode)
	}
	return o.Status
}

// more is what else there is to tell.
func (o runOut) more() (lines []string) {
	if o.WaitedFor != "" {
		lines = append(lines, fmt.Sprintf("waited %.0f s behind: %s", o.WaitedSeconds, o.WaitedFor))
	}
	if o.Binary {
		lines = append(lines, "it printed something that is no text")
	}
	if o.Hint != "" {
		lines = append(lines, o.Hint)
	}
	if len(o.Leftover) > 0 {
		var names []string
		for _, p := range o.Leftover {
			names = append(names, fmt.Sprintf("%d %s", p.PID, brief(p.Command)))
		}
		lines = append(lines, "left running: "+strings.Join(names, "; "))
	}
	if len(o.NotKept) > 0 {
		lines = append(lines, "not kept: "+strings.Join(o.NotKept, "; "))
	}
	if o.Restart != nil {
		lines = append(lines, o.Restart.text)
	}
	if o.Job != nil {
		lines = append(lines, o.Job.Warnings...)
	}
	return append(lines, o.Notices...)
}
