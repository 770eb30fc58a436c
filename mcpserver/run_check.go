package mcpserver

import (
	"regexp"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// checkRun fills in what was left out, and refuses what cannot be meant.
func (s *Server) checkRun(in *runIn) error {
	in.Session = sessionOr(in.Session)
	if in.Background && (in.MaxOutput != 0 || in.Raw) {
		return badArgument(`"max_output_bytes" and "raw" mean nothing with background: job_poll and job_log have their own`)
	}
	if in.MaxOutput == 0 {
		in.MaxOutput = s.opts.AnswerLimit
	}
	if in.TimeoutSeconds == 0 && !in.Background {
		in.TimeoutSeconds = s.opts.Timeout.Seconds()
	}
	if in.OnTimeout == "" && !in.Background && in.Stdin == nil {
		in.OnTimeout = s.opts.OnTimeout
	}
	if in.IdleTimeout == 0 && !in.Background {
		in.IdleTimeout = s.opts.IdleTimeout.Seconds()
	}
	switch most := s.opts.MaxTimeout; {
	case in.TimeoutSeconds > most.Seconds() && !in.Background:
		return badArgument(`"timeout_seconds" is %v, and can be %v at most: for longer, use background: true`, in.TimeoutSeconds, most.Seconds())
	case in.TimeoutSeconds > maxSeconds || in.IdleTimeout > maxSeconds:
		return badArgument("a time of more than %d seconds is too long", int(maxSeconds))
	case in.Background && (in.IdleTimeout != 0 || in.OnTimeout != "" || in.MergeStderr):
		return badArgument(`"idle_timeout_seconds", "on_timeout" and "merge_stderr" mean nothing with background: a job's streams are one, and job_wait waits for silence`)
	case !in.Background && (len(in.Watch) > 0 || in.KeepStdinOpen):
		return badArgument(`"watch" and "keep_stdin_open" go with background: true`)
	case in.Stdin != nil && in.OnTimeout == onTimeoutBackground:
		return badArgument(`a command with "stdin" cannot be moved to the background: start it with background: true and keep_stdin_open, or leave on_timeout out`)
	}
	for _, pattern := range in.Watch {
		if err := matchable("watch", pattern); err != nil {
			return err
		}
	}
	if err := (command.Request{Script: in.Command}).Validate(); err != nil {
		return badArgument(`"command": %v`, err)
	}
	return nil
}

// What a timeout can do.
const (
	onTimeoutStop       = "stop"
	onTimeoutBackground = "background"
)

// maxSeconds is the longest time that can be named: some 30 years.
const maxSeconds = 1e9

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// matchable refuses a pattern that cannot be compiled.
func matchable(name, pattern string) error {
	if _, err := regexp.Compile(pattern); err != nil {
		return badArgument("%q: %v; it wants RE2, which has no lookaround and no backreferences", name, err)
	}
	return nil
}
