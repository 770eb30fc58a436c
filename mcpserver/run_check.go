package mcpserver

import (
	"cmp"
	"errors"
	"regexp"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// checkRun fills in what was left out, and says what cannot be meant.
func (s *Server) checkRun(in *runIn) (wrong problems) {
	in.Session = s.sessionOr(in.Session)
	if in.Background {
		wrong = in.checkBackground()
	} else {
		wrong.when(len(in.Watch) > 0, "background watch", `"watch" goes with background: true`)
		wrong.when(in.KeepStdinOpen, "background keep_stdin_open", `"keep_stdin_open" goes with background: true`)
		s.fillRun(in)
		most := min(s.opts.MaxTimeout.Seconds(), maxSeconds)
		if in.OnTimeout == onTimeoutBackground { // It runs on: only the wait is shorter.
			in.TimeoutSeconds = min(in.TimeoutSeconds, most)
		}
		hint := ""
		if in.TimeoutSeconds/1000 <= most {
			hint = "; timeout_ms is for milliseconds"
		}
		wrong.when(in.TimeoutSeconds > most, "timeout_seconds",
			`"timeout_seconds" is %v, and can be %v at most: for longer, use background: true%s`, plainly(in.TimeoutSeconds), plainly(most), hint)
		wrong.when(in.Stdin != nil && in.OnTimeout == onTimeoutBackground, "stdin on_timeout",
			`a command with "stdin" cannot be moved to the background: start it with background: true and keep_stdin_open, or leave on_timeout out`)
	}
	wrong.when(in.IdleTimeout > maxSeconds, "idle_timeout_seconds", `"idle_timeout_seconds" is %v, and can be %v at most`, in.IdleTimeout, int(maxSeconds))
	for _, pattern := range in.Watch {
		wrong.matchable("watch", pattern)
	}
	switch err := (command.Request{Script: in.Command}).Validate(); {
	case err == nil, in.Restart && in.Command == "":
	case errors.Is(err, command.ErrEmptyScript):
		wrong.add("command", `"command" is empty`)
	case errors.Is(err, command.ErrNUL):
		wrong.add("command", `"command" holds a NUL byte, which bash cannot carry: pass binary data by "stdin", or in a file`)
	default:
		wrong.add("command", `"command": %v`, err)
	}
	return wrong
}

// checkBackground says what cannot be meant of a job.
func (in *runIn) checkBackground() (wrong problems) {
	wrong.when(in.TimeoutSeconds > maxSeconds, "timeout_seconds", `"timeout_seconds" is %v, and can be %v at most`, plainly(in.TimeoutSeconds), int(maxSeconds))
	wrong.when(in.MaxOutput != 0 || in.Raw, "background max_output_bytes raw",
		`"max_output_bytes" and "raw" mean nothing with background: job_poll and job_log have their own`)
	wrong.when(in.IdleTimeout != 0 || in.OnTimeout != "" || in.MergeStderr != nil && !*in.MergeStderr, "background idle_timeout_seconds on_timeout merge_stderr",
		`"idle_timeout_seconds", "on_timeout" and merge_stderr: false mean nothing with background: a job's streams are one, and job_wait waits for silence`)
	return wrong
}

// fillRun sets the defaults of a command that runs in the foreground.
func (s *Server) fillRun(in *runIn) {
	in.MaxOutput = cmp.Or(in.MaxOutput, s.opts.AnswerLimit)
	in.defaulted = in.TimeoutSeconds == 0
	in.TimeoutSeconds = cmp.Or(in.TimeoutSeconds, s.opts.Timeout.Seconds())
	in.IdleTimeout = cmp.Or(in.IdleTimeout, s.opts.IdleTimeout.Seconds())
	if in.OnTimeout == "" && in.Stdin == nil {
		in.OnTimeout = s.opts.OnTimeout
	}
	if in.MergeStderr == nil {
		in.MergeStderr = new(!s.opts.Structured)
	}
}

// What a timeout can do.
const (
	onTimeoutStop       = "stop"
	onTimeoutBackground = "background"
)

// maxSeconds is the longest time that can be named: some 30 years.
const maxSeconds = 1e9

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// matchable adds a pattern that cannot be compiled.
func (p *problems) matchable(name, pattern string) {
	if _, err := regexp.Compile(pattern); err != nil {
		p.add(name, "%q: %v; it wants RE2, which has no lookaround and no backreferences", name, err)
	}
}
