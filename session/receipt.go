package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/transport"
)

// Receipt is the part of a command's Result that an [Event] has beside its exit code: what the command cost, what it left behind, and what limpet
// says of it. It is a value, whose lists must not be changed. Each list has its first 20 entries, and each text its first 2 KiB.
type Receipt struct {
	// Pipeline holds the exit code of each stage of the last pipeline. Nil if that is not known.
	Pipeline []int `json:"pipeline,omitempty"`

	// Signal is the signal that ended the command; 0 if none.
	Signal syscall.Signal `json:"signal,omitempty"`

	// User and System are the CPU time of the command.
	User   time.Duration `json:"user_ns,omitempty"`
	System time.Duration `json:"system_ns,omitempty"`

	// Leftover lists processes that the command left running, and MoreLeftover counts those that the list leaves out.
	Leftover     []LeftProcess `json:"leftover,omitempty"`
	MoreLeftover int           `json:"more_leftover,omitempty"`

	// NotKept says what the script has changed and the shell does not have, and MoreNotKept counts the entries that the list leaves out.
	NotKept     []string `json:"not_kept,omitempty"`
	MoreNotKept int      `json:"more_not_kept,omitempty"`

	// Denied is a guess at what a sandbox refused to the command; empty if there is none.
	Denied string `json:"denied,omitempty"`

	// Restart says why bash was replaced, and what was lost with it; empty if it was not.
	Restart string `json:"restart,omitempty"`
}

// LeftProcess is a process that a command left running.
type LeftProcess struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Events are remembered in memory, and a script can have any number of stages, processes and descriptors: a Receipt has so many entries of each
// list, and so many bytes of each text.
const (
	mostEntries     = 20
	mostReceiptText = 2 << 10
)

// receiptOf returns the Receipt of a result.
func receiptOf(res command.Result) *Receipt {
	from := res.Receipt
	r := &Receipt{
		Pipeline: slices.Clone(from.Pipeline[:min(len(from.Pipeline), mostEntries)]), Signal: from.Signal, User: from.User, System: from.System,
		MoreLeftover: max(len(from.Leftover)-mostEntries, 0), MoreNotKept: max(len(from.NotKept)-mostEntries, 0), Denied: beginning(res.Denied),
	}
	for _, p := range from.Leftover[:len(from.Leftover)-r.MoreLeftover] {
		r.Leftover = append(r.Leftover, LeftProcess{p.PID, beginning(p.Command)})
	}
	for _, text := range from.NotKept[:len(from.NotKept)-r.MoreNotKept] {
		r.NotKept = append(r.NotKept, beginning(text))
	}
	if res.Restart != nil {
		r.Restart = beginning(res.Restart.String())
	}
	return r
}

// beginning returns a text of a Receipt, or as much of it as that has.
func beginning(text string) string { return ellipsis(text, mostReceiptText) }

// ellipsis is cut with an ellipsis for what is left out.
func ellipsis(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return cut(text, most) + "…"
}

// cut returns a text, or as many of its whole runes as so many bytes have. It does not hold on to the rest.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.Clone(text[:runes.Whole([]byte(text[:most]))])
}

// size is about how many bytes the receipt has.
func (r *Receipt) size() int {
	if r == nil {
		return 0
	}
	n := len(r.Denied) + len(r.Restart)
	for _, p := range r.Leftover {
		n += len(p.Command)
	}
	for _, text := range r.NotKept {
		n += len(text)
	}
	return n
}

// Lines says what a person wants to know of a command beside its exit code and its time. It is empty for most commands, and for a nil Receipt. The names of
// processes are in it as they are, with whatever they contain: escape them before a terminal gets them.
func (r *Receipt) Lines() (lines []string) {
	if r == nil {
		return nil
	}
	if r.Signal != 0 {
		lines = append(lines, "ended by "+transport.SignalName(r.Signal))
	}
	if len(r.Pipeline) > 1 && slices.ContainsFunc(r.Pipeline, func(code int) bool { return code != 0 }) {
		stages := make([]string, len(r.Pipeline))
		for i, code := range r.Pipeline {
			stages[i] = strconv.Itoa(code)
		}
		lines = append(lines, "pipeline "+strings.Join(stages, "|"))
	}
	if len(r.Leftover) > 0 {
		left := make([]string, len(r.Leftover))
		for i, p := range r.Leftover {
			left[i] = fmt.Sprintf("%d (%s)", p.PID, p.Command)
		}
		lines = append(lines, "left running: "+strings.Join(left, ", ")+more(r.MoreLeftover))
	}
	if len(r.NotKept) > 0 {
		lines = append(lines, "not kept: "+strings.Join(r.NotKept, "; ")+more(r.MoreNotKept))
	}
	if r.Denied != "" {
		lines = append(lines, "perhaps because "+r.Denied)
	}
	if r.Restart != "" {
		lines = append(lines, r.Restart)
	}
	return lines
}

// more says how many entries a list leaves out.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}
