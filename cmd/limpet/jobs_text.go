package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

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
		return fmt.Sprintf("%s for %v, quiet for %v, %s", job.State, age(job.Elapsed), age(job.Quiet), output)
	}
	text := fmt.Sprintf("%s, after %v, %s", ending(job), age(job.Elapsed), output)
	if job.Output.Lost > 0 {
		text += fmt.Sprintf(", of which the disk had no room for %d", job.Output.Lost)
	}
	if job.Leftover {
		text += "; what it has started runs on"
	}
	return text
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
