package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// Sessions decide about what runs in sessions of which this program has no terminal: a person answers by limpet approvals.
type Sessions struct {
	Mode    string                 // of Modes, and not off
	Changed bool                   // names may mean something else from the start, as behind startup files
	Wait    time.Duration          // how long a person has
	Elicit  bool                   // ask by the clients of agents, too
	From    string                 // this program, for the person
	Dir     func() (string, error) // where it asks
	Env     []string               // what the shells begin with

	// Asked is told of each question, and answered of what came of it. Nil: nobody is.
	Asked func(ctx context.Context, q questions.Open) (answered func(approval.Reply, error))
}

// DefaultWait is how long a person has to answer, as a rule. Codex CLI 0.169 gives a call up after 300 s: the agent must have its
// answer before.
const DefaultWait = 290 * time.Second

// Approver is that of a session, for session.Options.Approve.
func (s Sessions) Approver(of session.Approved) session.Approver {
	home, _ := os.UserHomeDir() // Without it, more paths are taken for homes.
	opts := &approval.Options{
		Home: home, Load: Rules, Exported: Exported(s.Env), Path: PathOf(s.Env), File: File, Git: Git(s.Env), Directory: Directory,
	}
	if of.Policy != nil {
		Confine(opts, *of.Policy)
	}
	g := approval.NewGate(func(ctx context.Context, q approval.Question) (approval.Reply, error) { return s.ask(ctx, of.Name, q) }, opts)
	if of.Used || s.Changed {
		g.Changed()
	}
	return approver{g, s.Wait}
}

// Exported reports, for approval.Options, which variables a shell that begins with an environment may export: those, those of this program, and what
// callers bring.
func Exported(env []string) func(name string) bool {
	names := make(map[string]bool)
	for _, entry := range slices.Concat(env, os.Environ(), keeper.CallerVars) {
		name, _, _ := strings.Cut(entry, "=")
		names[name] = true
	}
	return func(name string) bool { return names[name] }
}

// approver is a gate, for a session.
type approver struct {
	gate *approval.Gate
	wait time.Duration // how long a person has, with the questions before this one
}

// Approve implements session.Approver.
func (a approver) Approve(ctx context.Context, act session.Action) (func(dir string) bool, error) {
	wait := a.wait
	if c, ok := mcpserver.CallerOf(ctx); ok {
		wait = c.Within(wait)
		defer c.Waits("waits for a person: limpet approvals answer, at a terminal")()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errNobody)
	defer cancel()
	q := approval.Question{Script: whole(act), Dir: act.Dir, Input: act.Input, Look: act.Live}
	pass, err := a.gate.Pass(ctx, q)
	if errors.Is(err, errNobody) {
		err = fmt.Errorf("%w: nobody has answered within %v; a person answers by limpet approvals answer, at a terminal", a.gate.Unanswered(q), rounded(wait))
	}
	if err != nil || q.Input != "" {
		return nil, err
	}
	return pass.Holds, nil
}

// Changed implements session.Approver.
func (a approver) Changed() { a.gate.Changed() }

// Fork implements session.Approver.
func (a approver) Fork() session.Approver { return approver{a.gate.Fork(), a.wait} }

// whole is the script of an action, behind what its environment is besides that of the session.
func whole(act session.Action) string {
	var b strings.Builder
	for _, entry := range act.Env {
		name, value, set := strings.Cut(entry, "=")
		switch {
		case slices.Contains(keeper.CallerVars, name): // They say where the caller is.
		case set:
			fmt.Fprintf(&b, "export %s=%s\n", name, script.Quote(value))
		default:
			fmt.Fprintf(&b, "unset %s\n", name)
		}
	}
	for _, name := range act.Unset {
		fmt.Fprintf(&b, "unset %s\n", name)
	}
	return b.String() + act.Script
}

// errNobody is the cause for which a question is given up that nobody has answered.
var errNobody = errors.New("nobody has answered")

// ask asks a person, at whatever terminal.
func (s Sessions) ask(ctx context.Context, name string, q approval.Question) (approval.Reply, error) {
	var no approval.Reply
	refused := &approval.RefusedError{Question: q, Nobody: true}
	if s.Mode == "deny" {
		return no, fmt.Errorf("%w: it was started with --approve deny", refused)
	}
	dir, err := s.Dir()
	if err != nil {
		return no, fmt.Errorf("%w: %w", refused, err)
	}
	open := questions.Open{From: s.From, Session: name, Question: q}
	c, called := mcpserver.CallerOf(ctx)
	if called {
		if client := c.Client(); client != "" {
			open.From += " for " + client
		}
		open.Stdin = c.Stdin()
	}
	if s.Asked == nil {
		return s.askOpen(ctx, dir, open, c, called)
	}
	answered := s.Asked(ctx, open)
	reply, err := s.askOpen(ctx, dir, open, c, called)
	answered(reply, err)
	return reply, err
}

// askOpen asks in the directory, and by the client of an agent that has called, if that may ask.
func (s Sessions) askOpen(ctx context.Context, dir string, open questions.Open, c mcpserver.Caller, called bool) (approval.Reply, error) {
	ways := []func(context.Context) (approval.Reply, error){
		func(ctx context.Context) (approval.Reply, error) { return questions.Ask(ctx, dir, open) },
	}
	switch {
	case s.Elicit && called && c.Rounds(): // The host has asked its user by now, or does so when this call has ended.
		if reply, err := elicit(ctx, c, open); !errors.Is(err, mcpserver.ErrNoChoice) {
			return reply, err
		}
	case s.Elicit && called:
		ways = append(ways, func(ctx context.Context) (approval.Reply, error) { return elicit(ctx, c, open) })
	}
	return first(ctx, ways)
}

// Password asks a person for what a program wants to know, for shell.Options.AskPassword.
func (s Sessions) Password(ctx context.Context, q command.PasswordQuestion) ([]byte, error) {
	dir, err := s.Dir()
	if err != nil {
		return nil, err
	}
	secret, err := questions.AskPassword(ctx, dir, questions.Open{From: s.From, Password: &q})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // Its cause has other words.
		err = fmt.Errorf("%w; a person answers by limpet approvals answer, at a terminal", err)
	}
	return secret, err
}

// first asks in several ways at a time, and returns the first answer. The others are withdrawn. If there is none the error is that
// of the first way.
func first(ctx context.Context, ways []func(context.Context) (approval.Reply, error)) (approval.Reply, error) {
	type outcome struct {
		way   int
		reply approval.Reply
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	outcomes := make(chan outcome)
	for i, ask := range ways {
		go func() { // All of them are waited for.
			reply, err := ask(ctx)
			outcomes <- outcome{i, reply, err}
		}()
	}
	var best *outcome
	for range ways {
		one := <-outcomes
		if one.err == nil {
			cancel()
		}
		if best == nil || best.err != nil && (one.err == nil || one.way == 0) {
			best = &one
		}
	}
	cancel()
	return best.reply, best.err
}

// rounded is a time as people say it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
