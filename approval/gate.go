package approval

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Question is what a person is asked about a script.
type Question struct {
	Script    string
	Dir       string // that it will run in
	Judgement Judgement

	// Changed says that a script which was approved before may have changed what names mean, so that even a script
	// whose Judgement is Allow asks.
	Changed bool
}

// Answer is what a person says. The zero value is no.
type Answer int

// The answers.
const (
	No      Answer = iota
	Once           // yes, this time
	Session        // yes, whenever the same script comes again in the same directory, as long as the Gate is used
)

// RefusedError says that a script was not approved. Nothing ran.
type RefusedError struct {
	Question Question

	// Nobody says that nobody could be asked.
	Nobody bool
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	b.WriteString("not approved: ")
	reason, text := e.Question.Why()
	if text != "" {
		fmt.Fprintf(&b, "%s: ", text)
	}
	b.WriteString(reason)
	switch {
	case e.Question.Judgement.Verdict == Deny:
		b.WriteString("; no answer allows it")
	case e.Nobody:
		b.WriteString("; there is nobody to ask")
	default:
		b.WriteString("; the answer was no")
	}
	return b.String()
}

// mostWhy bounds the part of a script in an error, in bytes.
const mostWhy = 200

// Why returns the first reason for which a script is asked about, or denied, and the part of the script that it is about; that is
// empty if it is the script as a whole.
func (q Question) Why() (reason, text string) {
	for _, f := range q.Judgement.Findings {
		if f.Verdict != q.Judgement.Verdict || f.Verdict == Allow {
			continue
		}
		if f.Kind == KindScript {
			return f.Reason, ""
		}
		text = f.Text
		if len(text) > mostWhy {
			text = strings.ToValidUTF8(text[:mostWhy], "") + "..."
		}
		return f.Reason, text
	}
	return "a script before it may have changed what names mean", ""
}

// Gate lets scripts pass that are known to change nothing, and asks a person about others, for one shell. It is safe for concurrent
// use; it asks one question at a time. A Gate does not know what the shell was before: make it with the shell, or say Changed.
type Gate struct {
	opts *Options
	ask  func(context.Context, Question) (Answer, error)
	turn chan struct{} // whoever asks has sent to it

	mu      sync.Mutex
	changed bool
	same    map[sameScript]bool
}

type sameScript struct{ script, dir string }

// NewGate returns a Gate that asks by a function, which may take as long as its ctx lasts. An error of it is one of Check. Without
// a function nobody can be asked, and what would ask is refused. A nil opts is fine.
func NewGate(ask func(context.Context, Question) (Answer, error), opts *Options) *Gate {
	return &Gate{opts: opts, ask: ask, turn: make(chan struct{}, 1), same: make(map[sameScript]bool)}
}

// Changed tells the Gate that names may mean something else in the shell than in a new one: that it has functions, say, or that others
// run scripts in it. From then on every script asks.
func (g *Gate) Changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = true
}

// Check returns nil if a script may run in a directory. It asks if it must, and waits for the answer and for questions of others
// before; ctx bounds that. Else the error is a *RefusedError, that of ctx, or that of the function that asks.
func (g *Gate) Check(ctx context.Context, script, dir string) error {
	q := Question{Script: script, Dir: dir, Judgement: Judge(script, g.opts)}
	if g.passes(&q) {
		return nil
	}
	if q.Judgement.Verdict == Deny || g.ask == nil {
		return &RefusedError{Question: q, Nobody: g.ask == nil}
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if g.passes(&q) { // The question before was the same, or has changed the shell.
		return nil
	}
	answer, err := g.ask(ctx, q)
	switch {
	case err != nil:
		return err
	case answer != Once && answer != Session:
		return &RefusedError{Question: q}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = g.changed || q.Judgement.mayChangeNames()
	if answer == Session {
		g.same[sameScript{script, dir}] = true
	}
	return nil
}

// passes reports whether nobody has to be asked.
func (g *Gate) passes(q *Question) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.Changed = g.changed
	return g.same[sameScript{q.Script, q.Dir}] || q.Judgement.Verdict == Allow && !g.changed
}

// mayChangeNames reports whether a script may change what names mean in its shell. Programs cannot: it is what else asks that may.
func (j Judgement) mayChangeNames() bool {
	for _, f := range j.Findings {
		switch {
		case f.Verdict == Allow, f.Rule == ruleWrite, f.Rule == ruleOther:
		case f.Kind == KindCommand && strings.HasPrefix(f.Rule, "ask.") && f.Rule != ruleAskShell && f.Rule != ruleAskEnvironment:
		default:
			return true
		}
	}
	return false
}
