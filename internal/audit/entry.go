package audit

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/mask"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/session"
)

// Entry is a line. What does not apply is left out.
type Entry struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // those of session.RecordKind, and question, answer and person

	// Where, and by whom. From is who asked, as "limpet mcp for claude-code 2.0".
	Host    string `json:"host,omitempty"`
	User    string `json:"user,omitempty"`
	PID     int    `json:"pid,omitempty"` // of the limpet that has the session
	From    string `json:"from,omitempty"`
	Session string `json:"session,omitempty"`

	// What: the lines of one action have the same PID, Session and ID.
	ID     int64    `json:"id,omitempty"`
	Action string   `json:"action,omitempty"` // those of session.ActionKind, and password; of a person those of page.ActKind
	Script string   `json:"script,omitempty"`
	Dir    string   `json:"dir,omitempty"` // of an end, where the session is then
	Env    []string `json:"env,omitempty"`
	Unset  []string `json:"unset,omitempty"`
	Input  string   `json:"input,omitempty"` // the job or the terminal that it is typed to; of a person, what it is about
	Typed  int64    `json:"typed,omitempty"` // bytes that a person has typed, which are not written down

	// How it ended.
	ExitCode *int    `json:"exit_code,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
	Stdout   *Output `json:"stdout,omitempty"`
	Stderr   *Output `json:"stderr,omitempty"`
	Started  string  `json:"started,omitempty"` // a job or a terminal, which goes on, or of an over has ended
	How      string  `json:"how,omitempty"`     // an over: how it has ended
	Error    string  `json:"error,omitempty"`

	// What a person answered, of an answer. Error is why nobody did.
	Answer string `json:"answer,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Masked are the kinds of secrets that were masked.
	Masked []string `json:"masked,omitempty"`
}

// Output is what a command printed.
type Output struct {
	Bytes   int64  `json:"bytes"`             // all of it
	Head    string `json:"head,omitempty"`    // its beginning, or all of it
	Tail    string `json:"tail,omitempty"`    // its end
	Omitted bool   `json:"omitted,omitempty"` // there is more between the two
	Binary  bool   `json:"binary,omitempty"`  // it is no text, and is not here
}

// How much of a script, and of each end of each stream, is written down, in bytes.
const (
	mostScript = 64 << 10
	mostOutput = 4 << 10
)

// Of returns the line of a record.
func Of(r session.Record) Entry {
	e := Entry{
		Time: r.Time, Kind: string(r.Kind), Session: r.Session, ID: r.ID, Action: string(r.Action.Kind),
		Dir: r.Action.Dir, Input: r.Action.Input, Started: r.Started,
	}
	if r.How != "" {
		e.How = e.text(r.How)
	}
	if r.Err != nil {
		e.Error = e.text(r.Err.Error())
	}
	switch r.Kind {
	case session.BeginRecord, session.RefusedRecord:
		e.Script = e.text(r.Action.Script)
		for _, entry := range r.Action.Env {
			masked, names := mask.Assignment(entry)
			e.Env = append(e.Env, masked)
			e.mask(names)
		}
		e.Unset = r.Action.Unset
	case session.EndRecord:
		e.Dir = r.Dir
		if r.Action.Kind == session.RunAction {
			e.ExitCode, e.Seconds = &r.ExitCode, r.Elapsed.Seconds()
			e.Stdout, e.Stderr = e.output(r.Stdout), e.output(r.Stderr)
		}
	}
	return e
}

// Question returns the line of what a person is asked.
func Question(now time.Time, q questions.Open) Entry {
	e := Entry{Time: now, Kind: "question", From: q.From, Session: q.Session}
	if q.Password != nil {
		e.Action, e.Script = "password", e.text(q.Password.Prompt)
		return e
	}
	e.Script, e.Dir, e.Input = e.text(q.Question.Script), q.Question.Dir, q.Question.Input
	return e
}

// Answer returns the line of what a person has answered, or why nobody has.
func Answer(now time.Time, q questions.Open, reply approval.Reply, err error) Entry {
	e := Question(now, q)
	e.Kind = "answer"
	switch {
	case err != nil:
		e.Error = e.text(err.Error())
	case q.Password != nil:
		e.Answer = "given"
	default:
		e.Answer = [...]string{approval.No: "no", approval.Once: "yes", approval.Session: "yes, in this session"}[reply.Answer]
		e.Reason = e.text(reply.Reason)
	}
	return e
}

// Person returns the line of what a person does by a page, or why it was not done. Script is what is answered.
func Person(now time.Time, action, session, about, script, answer string, typed int64, failed error) Entry {
	e := Entry{Time: now, Kind: "person", Session: session, Action: action, Input: about, Typed: typed}
	e.Script, e.Answer = e.text(script), e.text(answer)
	if failed != nil {
		e.Error = e.text(failed.Error())
	}
	return e
}

// text returns a text, masked, and of a bounded length.
func (e *Entry) text(s string) string {
	head, tail, omitted, names := mask.Ends([]byte(s), mostScript/2)
	e.mask(names)
	if omitted > 0 {
		return string(head) + "[...]" + string(tail)
	}
	return string(head)
}

func (e *Entry) mask(names []string) {
	for _, name := range names {
		if !slices.Contains(e.Masked, name) {
			e.Masked = append(e.Masked, name)
		}
	}
}

// output returns what is written down of a stream; nil: it was empty.
func (e *Entry) output(o command.Output) *Output {
	if o.Total == 0 {
		return nil
	}
	out := &Output{Bytes: o.Total, Omitted: o.Omitted() > 0}
	if out.Binary = o.Binary(); out.Binary {
		return out
	}
	if len(o.Tail) == 0 {
		head, tail, omitted, names := mask.Ends(o.Head, mostOutput)
		e.mask(names)
		out.Head, out.Tail = whole(head), whole(tail)
		out.Omitted = out.Omitted || omitted > 0
		return out
	}
	head, _, omitted, names := mask.Ends(o.Head, mostOutput)
	e.mask(names)
	_, tail, more, names := mask.Ends(o.Tail, mostOutput)
	e.mask(names)
	if tail == nil { // It is short.
		tail, names = mask.Text(o.Tail)
		e.mask(names)
	}
	out.Head, out.Tail, out.Omitted = whole(head[:min(len(head), mostOutput)]), whole(tail), out.Omitted || omitted > 0 || more > 0
	return out
}

// whole is a text without the parts of characters at its ends.
func whole(b []byte) string {
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	return string(b)
}
