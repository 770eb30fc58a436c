package approval

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Question is what a person is asked about a script.
type Question struct {
	Script    string
	Dir       string // that it will run in
	Judgement Judgement

	// Changed says that names may mean something else in the shell than in a new one, so that even a script whose
	// Judgement is Allow asks. Then the answer Session is no more than Once.
	Changed bool
}

// Answer is what a person says. The zero value is no.
type Answer int

// The answers.
const (
	No      Answer = iota
	Once           // yes, this time
	Session        // yes, and so each time that the same script comes again in the same directory, until names may mean something else
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

// whyChanged is the reason for which a script asks of which each part is allowed.
const whyChanged = "names may mean something else in this shell than in a new one"

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
	return whyChanged, ""
}

// Gate lets scripts pass that are known to change nothing, and asks a person about others, for one shell. It is safe for concurrent
// use; it asks one question at a time. A Gate does not know what was in the shell before: make it together with the shell, or call Changed.
type Gate struct {
	opts *Options
	ask  func(context.Context, Question) (Answer, error)
	turn chan struct{} // holds a value while a question is open

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

// Changed tells the Gate that names may mean something else in the shell than in a new one: because it has functions, say, or because
// others run scripts in it. From then on every script asks, each time.
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
	if g.passes(&q) { // Another caller asked the same meanwhile.
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
	return !g.changed && (q.Judgement.Verdict == Allow || g.same[sameScript{q.Script, q.Dir}])
}

// mayChangeNames reports whether a script that asks may change what names mean in its shell. A program that is called by its name
// cannot, nor can a file that is written; of all else it is not known.
func (j Judgement) mayChangeNames() bool {
	return slices.ContainsFunc(j.Findings, func(f Finding) bool {
		writes := f.Kind == KindRedirection && f.Rule == ruleWrite
		return f.Verdict != Allow && !writes && !(f.Kind == KindCommand && callsProgram(f.Text))
	})
}

// plainName is a command's name that bash does not expand.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)

// callsProgram reports whether a command is a program, and no builtin, by its first word. Of the builtins kill is like a program.
func callsProgram(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return plainName.MatchString(name) && (!builtins[name] || name == "kill")
}
