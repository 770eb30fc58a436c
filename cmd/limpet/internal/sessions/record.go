package sessions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/audit"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// recorded shows the entries of a record of what was done.
type recorded struct {
	*screens
	runs map[string][]running // what runs in a session, the last one last
}

// running is something that has begun, and not ended.
type running struct {
	pid  int // of the limpet that has it
	id   int64
	text string
}

// entry adds one.
func (r recorded) entry(e audit.Entry) error {
	name := runes.Brief(noun.OneLine(e.Session), mostName) // Whoever can write to the file has written it.
	if name == "" {
		name = "no session"
	}
	say := func(text string) { _ = r.line(name, text) } // It cannot fail.
	over := func(is func(running) bool) {
		if r.runs[name] = slices.DeleteFunc(r.runs[name], is); len(r.runs[name]) == 0 {
			delete(r.runs, name)
		}
	}
	done := func(text string) {
		over(func(one running) bool { return one.pid == e.PID && one.id == e.ID })
		say("-- " + text)
	}
	switch e.Kind {
	case "open", "close":
		over(func(one running) bool { return one.pid == e.PID }) // Of those that were killed there is no end.
		say("-- " + map[string]string{"open": "opened", "close": "closed"}[e.Kind] + by(e))
	case "begin":
		if e.From != "" {
			say("-- " + noun.OneLine(e.From) + ", " + e.Time.Local().Format(time.TimeOnly))
		}
		for _, line := range typed(e.Dir, e.Script) {
			say(line)
		}
		switch e.Action {
		case "job", "terminal":
			say("-- to be started as a " + e.Action)
		case "input":
			say("-- typed to " + noun.OneLine(e.Input))
		}
		if e.Action != "input" { // That has no end.
			r.runs[name] = append(r.runs[name], running{e.PID, e.ID, firstLine(e.Script) + " since " + e.Time.Local().Format(time.TimeOnly)})
			r.runs[name] = r.runs[name][max(len(r.runs[name])-mostRunning, 0):]
		}
	case "end":
		r.output(name, e.Stdout)
		r.output(name, e.Stderr)
		switch {
		case e.Error != "":
			done(noun.OneLine(e.Error))
		case e.Started != "":
			done("started " + noun.OneLine(e.Started))
		case e.ExitCode != nil:
			done(fmt.Sprintf("exit %d, after %v", *e.ExitCode, time.Duration(e.Seconds*float64(time.Second)).Round(time.Millisecond)))
		default:
			done("done")
		}
	case "over":
		say("-- " + noun.OneLine(e.Started+" has ended: "+e.How))
	case "refused":
		for _, line := range typed(e.Dir, e.Script) {
			say(line)
		}
		say("-- refused: " + noun.OneLine(e.Error))
	case "person":
		text := strings.Join(slices.DeleteFunc([]string{e.Action, e.Input, firstLine(e.Script), e.Answer}, func(s string) bool { return s == "" }), ", ")
		if e.Error != "" {
			text += ": not done: " + e.Error
		}
		say("-- a person" + by(e) + ": " + noun.OneLine(text))
	case "question":
		say("-- a person is asked" + by(e) + ": " + firstLine(e.Script))
	case "answer":
		text := e.Answer
		if e.Error != "" {
			text = e.Error
		} else if e.Reason != "" {
			text += ": " + e.Reason
		}
		say("-- answer: " + noun.OneLine(text))
	default:
		say("-- " + noun.OneLine(e.Kind))
	}
	state := noun.OneLine(e.Dir)
	if all := r.runs[name]; len(all) > 0 {
		state = all[len(all)-1].text
	}
	r.state(name, state)
	return nil
}

// mostName bounds the name of a session of a record, in characters, and mostRunning what runs in one.
const (
	mostName    = 64
	mostRunning = 64
)

// by says who asked for an entry.
func by(e audit.Entry) string {
	if e.From == "" {
		return ""
	}
	return " by " + noun.OneLine(e.From)
}

func (r recorded) output(name string, out *audit.Output) {
	if out == nil || out.Bytes == 0 {
		return
	}
	if out.Binary {
		_ = r.line(name, fmt.Sprintf("-- %d bytes that are no text", out.Bytes)) // It cannot fail.
		return
	}
	for i, text := range []string{out.Head, out.Tail} {
		if i == 1 && out.Omitted {
			_ = r.line(name, "-- ...") // As above.
		}
		if text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			_ = r.line(name, screen.Redrawn([]byte(line))) // As above.
		}
	}
}

// firstLine is that of a script, without what a terminal would obey.
func firstLine(script string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(script), "\n")
	if line = screen.Redrawn([]byte(line)); strings.TrimSpace(rest) != "" {
		line += " ..."
	}
	return line
}
