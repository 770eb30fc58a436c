package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// Question is what a person is asked about a script.
type Question struct {
	Script    string
	Dir       string // that it will run in
	Judgement Judgement

	// Changed says that names may mean something else in the shell than in a new one, so that even a script whose
	// Judgement is Allow asks. Then the answer Session is no more than Once.
	Changed bool

	// Input is what Script is typed to, if it is no script but input of a program that runs: the id of a job or of a terminal. The
	// answer Session is then for whatever is typed there.
	Input string

	// Look returns what the shell has now; nil if that cannot be known. With it, names that may have changed make a script ask only where
	// they did, and the answer Session is for the variables as they are. It is called where that matters, and may wait; if it fails, so does
	// Pass. If it is nil nothing is known.
	Look func(context.Context) (*command.LiveState, error) `json:"-"`
}

// Reply is an answer, and what a person said with it. The zero value is no.
type Reply struct {
	Answer Answer
	Reason string // why the answer is no; the program or agent that asked is told. Empty if no reason was given
}

// Answer is what a person says. The zero value is no.
type Answer int

// The answers.
const (
	No      Answer = iota
	Once           // yes, this time
	Session        // yes, and so each time that the same script comes again in the same directory, until names may mean something else, or variables in it have other values
)

// RefusedError says that a script was not approved. Nothing ran.
type RefusedError struct {
	Question Question

	// Nobody says that nobody could be asked.
	Nobody bool

	// Reason is what the person said who refused it; may be empty.
	Reason string

	// Refusals is how many questions in a row had no yes, with this one: the answer was no, or none came in time (Gate.Unanswered).
	// 0 if it was not asked.
	Refusals int
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
	case e.Reason != "":
		b.WriteString("; the answer was no: " + e.Reason)
	default:
		b.WriteString("; the answer was no")
	}
	return b.String()
}

// whyChanged is why a script asks although each of its parts is allowed.
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
	ask  AskFunc
	turn chan struct{} // holds a value while a question is open

	mu       sync.Mutex
	changes  int // scripts that may have changed names
	refusals int // questions in a row that had no yes
	same     map[sameScript]bool

	seen      sight
	changedBy string            // the script that may have changed names last
	origins   map[string]string // of what the shell has: the script behind which it was seen first
}

type sameScript struct{ input, script, dir, state string }

// AskFunc asks a person, and waits for the answer; ctx bounds that. If it fails nothing runs, and Pass returns its error.
type AskFunc func(context.Context, Question) (Reply, error)

// NewGate returns a Gate that asks by a function. Without one nobody can be asked, and what would ask is refused. A nil opts is fine.
func NewGate(ask AskFunc, opts *Options) *Gate {
	return &Gate{opts: opts, ask: ask, turn: make(chan struct{}, 1), same: make(map[sameScript]bool), origins: make(map[string]string)}
}

// Changed tells the Gate that names may mean something else in the shell than in a new one, or than before: because it has functions, say,
// or because others run scripts in it. From then on it looks at what the shell has, by Question.Look; without that, every script asks, each time.
func (g *Gate) Changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes++
}

// contained reports whether it does not matter what names mean.
func (g *Gate) contained() bool { return g.opts != nil && g.opts.Contained }

func (g *Gate) changed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// Fork returns a Gate for a shell that begins with the state of this one's. It asks by the same function, and has none of the answers.
func (g *Gate) Fork() *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	fork := NewGate(g.ask, g.opts)
	fork.changes, fork.changedBy, fork.origins = min(g.changes, 1), g.changedBy, g.origins // Those are replaced, and not changed.
	return fork
}

// Pass says that a script may run, or input be typed, as things were when that was decided.
type Pass struct {
	gate     *Gate
	question *Question
	asked    bool
	changes  int
	seen     sight
	changing bool // the script may change names
}

// Holds reports whether it would be decided so again: a script that waited for its turn may find itself in another directory, or
// behind one that may have changed what names mean. If so, the script is taken to run from then on: call Holds right before it does.
func (p *Pass) Holds(dir string) bool {
	if !p.again() {
		return false
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.changes != p.gate.changes || p.question.Dir != dir && p.placed() {
		return false
	}
	p.changes = p.gate.changes + p.gate.count(p.changing) // The script may change the shell: what was seen of it before does not count any more.
	return true
}

// count counts a script that may change names, and returns 1 for it. The caller holds mu.
func (g *Gate) count(changing bool) int {
	if !changing {
		return 0
	}
	g.changes++
	return 1
}

// Check is Pass for a script that runs at once.
func (g *Gate) Check(ctx context.Context, script, dir string) error {
	_, err := g.Pass(ctx, Question{Script: script, Dir: dir})
	return err
}

// Pass returns when a script may run in a directory, or be typed to an Input. It asks if it must, and waits for the answer and for questions
// of others before; ctx bounds that. Else the error is a *RefusedError, the cause of ctx, or that of the function that asks. Of the question, Judgement and Changed are
// found by Pass.
//
// What input does depends on the program that reads it: it asks, until an answer was Session.
func (g *Gate) Pass(ctx context.Context, q Question) (*Pass, error) {
	if q.Input != "" && g.contained() {
		return &Pass{gate: g, question: &q, changes: g.changed()}, nil
	}
	q = g.judged(q)
	seen, err := g.see(ctx, &q)
	if err != nil {
		return nil, err
	}
	return g.pass(ctx, q, seen)
}

// Unanswered is the error for a question that nobody has answered while its context lasted. It counts as a refusal: call it once for each.
func (g *Gate) Unanswered(q Question) *RefusedError {
	q = g.judged(q)
	if state := g.last(g.changed()); state != nil && q.Input == "" {
		q.Judgement = g.judge(q.Script, q.Dir, state)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusals++
	return &RefusedError{Question: q, Nobody: true, Refusals: g.refusals}
}

// judged is a question with its Judgement.
func (g *Gate) judged(q Question) Question {
	if q.Input == "" {
		q.Judgement = g.judge(q.Script, q.Dir, nil)
		return q
	}
	f := Finding{Kind: KindInput, To: len(q.Script), Text: q.Script, Rule: ruleInput, Reason: "what it does is up to the program that reads it", Verdict: Ask}
	q.Judgement = Judgement{Verdict: Ask, Findings: []Finding{f}}
	return q
}

// judge is Judge with the rules that hold in a directory now, and what the shell has, if that is known.
func (g *Gate) judge(script, dir string, state *command.LiveState) Judgement {
	opts := Options{}
	if g.opts != nil {
		opts = *g.opts
	}
	opts.Dir, opts.Live = dir, state
	var failed error
	if opts.Load != nil {
		var own []Own
		own, failed = opts.Load(dir)
		opts.Own = slices.Concat(opts.Own, own)
	}
	j := Judge(script, &opts)
	if failed != nil {
		f := Finding{Kind: KindScript, To: len(script), Text: script, Rule: ruleUnreadable, Reason: "the rules cannot be read: " + failed.Error(), Verdict: Ask}
		j.Findings, j.Verdict = append([]Finding{f}, j.Findings...), min(j.Verdict, Ask)
	}
	return j
}

func (g *Gate) pass(ctx context.Context, q Question, seen sight) (*Pass, error) {
	if p := g.passes(&q, seen); p != nil {
		return p, nil
	}
	if q.Judgement.Verdict == Deny || g.ask == nil {
		return nil, &RefusedError{Question: q, Nobody: g.ask == nil}
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p := g.passes(&q, seen); p != nil { // Another caller asked the same meanwhile.
		return p, nil
	}
	reply, err := g.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if reply.Answer != Once && reply.Answer != Session {
		g.refusals++
		return nil, &RefusedError{Question: q, Reason: reply.Reason, Refusals: g.refusals}
	}
	g.refusals = 0
	p := g.approved(&q, seen, true)
	if p.changing {
		g.changedBy = shortened(q.Script)
	}
	if reply.Answer == Session && (seen.state == nil || !p.changing) { // What a function does is not in the question.
		g.same[q.same(seen.state)] = true
	}
	return p, nil
}

// approved is the Pass of a question. The caller holds mu.
func (g *Gate) approved(q *Question, seen sight, asked bool) *Pass {
	p := &Pass{gate: g, question: q, asked: asked, seen: seen, changes: g.changes}
	if seen.state != nil {
		p.changes = seen.changes
	}
	p.changing = q.Input == "" && q.Judgement.mayChangeNames() && !g.contained()
	p.changes += g.count(p.changing)
	return p
}

// passes returns a Pass if nobody has to be asked.
func (g *Gate) passes(q *Question, seen sight) *Pass {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.Changed = q.Input == "" && g.changes > 0 && !g.contained() && seen.state == nil
	same := g.same[q.same(seen.state)]
	if q.Changed || q.Judgement.Verdict != Allow && !same {
		return nil
	}
	return g.approved(q, seen, same)
}

// mayChangeNames reports whether a script that asks may change what names mean in its shell. A program that is called by its name
// cannot, nor can a file that is written; of all else it is not known.
func (j Judgement) mayChangeNames() bool {
	return slices.ContainsFunc(j.Findings, func(f Finding) bool {
		writes := f.Kind == KindRedirection && f.Rule == ruleWrite
		return f.Verdict != Allow && !writes && !f.readsOnly() && !(f.Kind == KindCommand && callsProgram(f.Text))
	})
}

// readsOnly reports whether a finding is of what the shell has, and of nothing that runs in the shell: a function would.
func (f Finding) readsOnly() bool {
	kind, _, _ := strings.Cut(f.change, " ")
	return kind == "variable" || kind == "hash" || kind == "descriptor"
}

// plainName is a command's name that bash does not expand.
var plainName = lazyregexp.New(`^[A-Za-z0-9_./+-]+$`)

// callsProgram reports whether a command is a program, and no builtin, by its first word. Of the builtins kill is like a program.
func callsProgram(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return plainName().MatchString(name) && (!builtins[name] || name == "kill")
}
