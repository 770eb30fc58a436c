package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/jobs"
)

// writeJSON writes a value as one line.
func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // As for results.
	return enc.Encode(value)
}

// describe says in one line how a job is:
//
//	running for 12.3s, quiet for 2s, 4711 bytes of output
//	exit 3, after 1.2s, 4711 bytes of output
func describe(job jobs.Job) string {
	output := fmt.Sprintf("%d bytes of output", job.Output.End)
	if !job.State.Finished() {
		return fmt.Sprintf("%s for %v, quiet for %v, %s", job.State, age(job.Elapsed), age(job.Quiet), output) + asks(job) + orphans(job)
	}
	text := ending(job)
	if lasted := elapsed(job); lasted != "-" {
		text += ", after " + lasted
	}
	text += ", " + output
	if job.Output.Lost > 0 {
		text += fmt.Sprintf(", of which the disk had no room for %d", job.Output.Lost)
	}
	if len(job.Orphans) > 0 {
		return text + orphans(job)
	}
	if job.Leftover {
		text += "; what it has started runs on"
	}
	return text
}

// asks says what a job waits for on its terminal; "" if nothing does, or nobody knows.
func asks(job jobs.Job) string {
	if job.Waits == nil {
		return ""
	}
	return "; " + printable(job.Waits.String())
}

// orphans says what of a job runs on though its supervisor was killed; "" if nothing does.
func orphans(job jobs.Job) string {
	if len(job.Orphans) == 0 {
		return ""
	}
	count := "1 process of it still runs"
	if n := len(job.Orphans); n > 1 {
		count = fmt.Sprintf("%d processes of it still run", n)
	}
	list := make([]string, len(job.Orphans))
	for i, p := range job.Orphans {
		list[i] = fmt.Sprintf("%d (%s)", p.PID, printable(p.Command))
	}
	return fmt.Sprintf("; its supervisor was killed, and %s: %s; limpet jobs stop %s ends that", count, noun.Some(list), job.ID)
}

// ending says how a finished job ended.
func ending(job jobs.Job) string {
	if job.State != jobs.Exited {
		return string(job.State) + ": " + printable(job.Exit.Why)
	}
	return job.Exit.String()
}

// codeOfJob is the exit code of a job that has ended, as a shell's wait has it.
func codeOfJob(job jobs.Job) int {
	switch {
	case job.State != jobs.Exited:
		return codeFailed
	case job.Exit.Signal != 0:
		return codeSignal + int(job.Exit.Signal)
	}
	return job.Exit.Code
}

// elapsed is how long a job has run: "-" if nobody knows when it ended.
func elapsed(job jobs.Job) string {
	if job.State == jobs.Lost && job.Elapsed == 0 {
		return "-"
	}
	return age(job.Elapsed).String()
}

// age is a time with as much of it as matters.
func age(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < time.Minute:
		return d.Round(100 * time.Millisecond)
	case d < time.Hour:
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}

// printable makes one line of a text that a job may have written: it must not give
// orders to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, oneLine(strings.ReplaceAll(text, "\t", " ")))
}
