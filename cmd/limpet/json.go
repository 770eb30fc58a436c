package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// resultJSON is a line of "limpet run --json". Its names are a promise: they
// only ever grow.
type resultJSON struct {
	Script        string       `json:"script"`
	ExitCode      int          `json:"exit_code"` // -1: it is not known
	Stdout        string       `json:"stdout"`
	Stderr        string       `json:"stderr"`
	StdoutOmitted int64        `json:"stdout_omitted"` // bytes
	StderrOmitted int64        `json:"stderr_omitted"`
	Dir           string       `json:"dir"`
	ElapsedMS     float64      `json:"elapsed_ms"`
	Receipt       receiptJSON  `json:"receipt"`
	Denied        string       `json:"denied,omitempty"` // a guess at what the sandbox refused
	Restart       *restartJSON `json:"restart"`
	Error         *string      `json:"error"` // why it is not known how the command ended, or why it was stopped
}

type receiptJSON struct {
	Pipeline []int         `json:"pipeline"` // null: it is not known
	Signal   int           `json:"signal"`   // 0: none
	UserMS   float64       `json:"user_ms"`
	SystemMS float64       `json:"system_ms"`
	Leftover []processJSON `json:"leftover"`
	NotKept  []string      `json:"not_kept"` // what the script has changed and the shell does not have
}

type processJSON struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

type restartJSON struct {
	Reason   string   `json:"reason"`
	Restored []string `json:"restored"`
	Lost     []string `json:"lost"`
	Error    string   `json:"error,omitempty"` // why there is no new bash
}

// printJSON writes a result as one line. If collapse is set, lines that were redrawn by
// carriage returns are as a terminal leaves them.
func printJSON(w io.Writer, script string, res command.Result, err error, collapse bool) error {
	text := command.Output.String
	if collapse {
		text = func(o command.Output) string { return string(command.Collapse(o.Bytes())) }
	}
	line := resultJSON{
		Script: script, ExitCode: res.ExitCode,
		Stdout: text(res.Stdout), Stderr: text(res.Stderr),
		StdoutOmitted: res.Stdout.Omitted(), StderrOmitted: res.Stderr.Omitted(),
		Dir: res.Dir, Denied: flagNames.Replace(res.Denied), ElapsedMS: milliseconds(res.Elapsed),
		Receipt: receiptJSON{
			Pipeline: res.Receipt.Pipeline, Signal: int(res.Receipt.Signal),
			UserMS: milliseconds(res.Receipt.User), SystemMS: milliseconds(res.Receipt.System),
			Leftover: []processJSON{}, NotKept: notNull(res.Receipt.NotKept),
		},
	}
	for _, p := range res.Receipt.Leftover {
		line.Receipt.Leftover = append(line.Receipt.Leftover, processJSON{p.PID, p.Command})
	}
	if r := res.Restart; r != nil {
		line.Restart = &restartJSON{Reason: r.Reason, Restored: notNull(r.Restored), Lost: notNull(r.Lost)}
		if r.Err != nil {
			line.Restart.Error = explain(r.Err)
		}
	}
	if err != nil {
		why := explain(err)
		line.Error = &why
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // Scripts are full of <, > and &.
	return enc.Encode(line)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// notNull makes an empty list of a nil one, so that readers can loop over it.
func notNull(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
