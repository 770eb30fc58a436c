package mcpserver

import (
	"fmt"
	"strings"
)

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
	put("", o.Stdout)
	put("stderr", o.Stderr)
	text.WriteString("[" + o.verdict() + "]")
	for _, more := range o.more() {
		text.WriteString("\n[" + more + "]")
	}
	return text.String()
}

// verdict is how the command ended, in a line.
func (o runOut) verdict() string {
	var parts []string
	switch o.Status {
	case "background":
		parts = append(parts, "runs in the background as job "+o.Job.Job)
	case "stopped":
		parts = append(parts, "stopped: "+strings.ReplaceAll(o.StoppedBy, "_", " "))
	case "died":
		parts = append(parts, "bash was killed: it is not known how the command ended")
	}
	if o.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *o.ExitCode))
	}
	if o.Signal != "" {
		parts = append(parts, o.Signal)
	}
	parts = append(parts, fmt.Sprintf("%v s", o.ElapsedSeconds), "in "+o.Dir)
	if o.ResultID != "" {
		parts = append(parts, "result "+o.ResultID)
	}
	return strings.Join(parts, ", ")
}

// end says how the command ended, as part of a sentence.
func (o runOut) end() string {
	switch {
	case o.Status == "background":
		return "runs on as job " + o.Job.Job
	case o.Status == "exited" && o.ExitCode != nil:
		return fmt.Sprintf("had exited with code %d", *o.ExitCode)
	}
	return o.Status
}

// more is what else there is to tell.
func (o runOut) more() (lines []string) {
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
	if o.Restart != nil {
		lines = append(lines, o.Restart.String())
	}
	return append(lines, o.Notices...)
}

func (r restartOut) String() string {
	text := r.Reason
	if len(r.Restored) > 0 {
		text += "; restored: " + strings.Join(r.Restored, ", ")
	}
	if len(r.Lost) > 0 {
		text += "; lost: " + strings.Join(r.Lost, ", ")
	}
	return text
}
