package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/audit"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// auditFlags are --audit and --audit-required.
type auditFlags struct {
	path     string
	required bool
}

// auditNames are those flags.
var auditNames = []string{"audit", "audit-required"}

func (f *auditFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "audit", "", "write down all that is done, a JSON object a line, in `FILE`, or in a directory, in a file for each day; see limpet help audit")
	cmd.Flags().BoolVar(&f.required, "audit-required", false, "with --audit, refuse what cannot be written down")
}

// check returns what is wrong with the flags.
func (f *auditFlags) check(cmd *cobra.Command) error {
	switch {
	case f.required && f.path == "":
		return usagef(cmd, "--audit-required means nothing without --audit")
	case cmd.Flags().Changed("audit") && f.path == "":
		return emptyPath(cmd, "audit")
	}
	return nil
}

// spec says it to a keeper.
func (f *auditFlags) spec(spec *keeper.Spec) {
	if f.path != "" {
		spec.Audit, spec.AuditRequired = absolute(f.path), f.required
		if last := f.path[len(f.path)-1]; os.IsPathSeparator(last) {
			spec.Audit += string(last)
		}
	}
}

// recorder writes down what is done in sessions.
type recorder struct {
	log        *audit.Log
	host, user string
}

// open returns what writes down; nil: nothing does.
func (f *auditFlags) open(cmd *cobra.Command) (*recorder, error) {
	if err := f.check(cmd); err != nil || f.path == "" {
		return nil, err
	}
	return newRecorder(f.path)
}

func newRecorder(path string) (*recorder, error) {
	log, err := audit.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w", path, err)
	}
	r := &recorder{log: log}
	r.host, _ = os.Hostname() // It is left out then.
	if u, err := user.Current(); err == nil {
		r.user = u.Username
	}
	return r, nil
}

// write writes an entry down.
func (r *recorder) write(ctx context.Context, e audit.Entry) error {
	e.Host, e.User, e.PID = r.host, r.user, os.Getpid()
	if c, ok := mcpserver.CallerOf(ctx); ok {
		e.From = "limpet mcp"
		if client := c.Client(); client != "" {
			e.From += " for " + client
		}
	}
	return r.log.Write(e)
}

// record is for session.Options.Record.
func (r *recorder) record(ctx context.Context, one session.Record) error {
	return r.write(ctx, audit.Of(one))
}

// records is the same for options, where r may be nil.
func (r *recorder) records() func(context.Context, session.Record) error {
	if r == nil {
		return nil
	}
	return r.record
}

// asked writes down what a person is asked. Answered is for the answer. r may be nil. An answer that cannot be written down is an
// answer all the same.
func (r *recorder) asked(ctx context.Context, q questions.Open) (answered func(approval.Reply, error)) {
	if r == nil {
		return func(approval.Reply, error) {}
	}
	_ = r.write(ctx, audit.Question(time.Now(), q)) // What is asked about has a line of its own, which counts.
	return func(reply approval.Reply, err error) {
		_ = r.write(context.WithoutCancel(ctx), audit.Answer(time.Now(), q, reply, err))
	}
}

// passwords has questions for passwords written down, and never a password. ask may be nil.
func (r *recorder) passwords(ask func(context.Context, command.PasswordQuestion) ([]byte, error)) func(context.Context, command.PasswordQuestion) ([]byte, error) {
	if r == nil || ask == nil {
		return ask
	}
	return func(ctx context.Context, q command.PasswordQuestion) ([]byte, error) {
		open := questions.Open{Password: &q}
		answered := r.asked(ctx, open)
		secret, err := ask(ctx, q)
		answered(approval.Reply{Answer: approval.Once}, err)
		return secret, err
	}
}

// ownShell writes down what runs in a shell that ends with limpet. Nil: nothing is.
type ownShell struct {
	*recorder
	required bool
	console  *console
	id       int64
	told     bool // that the last line could not be written
}

// own is that of the flags, for one shell.
func (f *auditFlags) own(cmd *cobra.Command, console *console) (*ownShell, error) {
	r, err := f.open(cmd)
	if r == nil {
		return nil, err
	}
	return &ownShell{recorder: r, required: f.required, console: console}, nil
}

// runs runs a script by do, unless it was refused already, and returns what came of it.
func (o *ownShell) runs(dir, script string, refused error, do func() (command.Result, error)) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown}
	if o == nil {
		if refused != nil {
			return nothing, refused
		}
		return do()
	}
	o.id++
	line := session.Record{ID: o.id, Action: session.Action{Kind: session.RunAction, Script: script, Dir: dir}}
	if refused != nil {
		line.Kind, line.Err = session.RefusedRecord, refused
		_ = o.put(line) // It is refused anyway.
		return nothing, refused
	}
	line.Kind = session.BeginRecord
	if err := o.put(line); err != nil && o.required {
		return nothing, fmt.Errorf("what cannot be written down is not done: %w", err)
	}
	res, err := do()
	line.Kind, line.ExitCode, line.Elapsed, line.Stdout, line.Stderr, line.Dir, line.Err = session.EndRecord, res.ExitCode, res.Elapsed, res.Stdout, res.Stderr, res.Dir, err
	_ = o.put(line) // It was done, and that it is not written down was told.
	return res, err
}

// put writes a line down. That it cannot be is told, once until it can be again.
func (o *ownShell) put(line session.Record) error {
	line.Time = time.Now()
	err := o.record(context.Background(), line)
	if err != nil && !o.told {
		o.console.notef("what is done cannot be written down: %v", err)
	}
	o.told = err != nil
	return err
}

// keptRecord is for keeper.Program.Record.
func keptRecord(spec keeper.Spec) (func(context.Context, session.Record) error, error) {
	r, err := newRecorder(spec.Audit)
	return r.records(), err
}

func auditTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "audit",
		Short: "How limpet writes down what is done",
		Long: `With --audit FILE limpet run, repl, mcp and serve write down what is done: a JSON object a line, as jq reads it. Of a session by name
(-s NAME) it is said when that is made, and holds for whatever uses it. Each command has a line when it begins (kind "begin"), with its script and
directory, and one when it ends ("end"), with its exit code, its time and the ends of what it printed; both have the same
session, pid and id. So have jobs and terminals, whose "end" is when they are started, and what an agent types to them; when they have ended
there is a line of kind "over".
What is refused has one line ("refused"), that a person was asked and has answered one each ("question", "answer"), and that
sessions are opened and closed, too. What a person does on the page of limpet serve has a line ("person"). A password is never written down.

  limpet mcp --audit ~/limpet-audit/ --approve ask
  limpet run -s build --audit build.jsonl make
  jq -r 'select(.kind == "begin") | [.time, .session, .dir, .script] | @tsv' build.jsonl

If FILE is a directory, or ends with a slash, it has a file for each day. A file that has 64 MiB is renamed, and nothing is ever
removed. What looks like a secret is masked: tokens of known forms, private keys, passwords in URLs, and values of variables
with names like TOKEN. Other secrets are not known, so files are for you alone (0600), and must be.

When a line cannot be written, as when the disk is full, a notice says so. With --audit-required the command is refused then.

Whoever runs commands as you can change the file: it is no proof against an agent without a sandbox. Where that matters have the
system allow nothing but appending (chattr +a FILE), or a service copy it. See docs/audit.md.`,
	}
}

// errAudit is for a session that is there.
var errAudit = errors.New("it was made without --audit, or with another one")
