package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

func approveCommand() *cobra.Command {
	var box sandboxFlags
	return approve.Command(exit, approve.Sandbox{
		Add:    func(cmd *cobra.Command) { box.add(cmd, "") },
		Policy: func(cmd *cobra.Command) (sandbox.Policy, bool, error) { return box.policy(cmd, "") },
	}, helpCommand(), noCommand)
}

// approvalsCommand is how people answer.
func approvalsCommand() *cobra.Command {
	return approve.ApprovalsCommand(approve.Program{
		Desk: questionsDesk, Until: untilSignal, Note: newConsole().notef,
		Ended: endedBySignal,
	}, helpCommand(), noCommand)
}

// questionsDir is where people are asked on this machine.
func questionsDir() (string, error) {
	r, err := keeper.Open("")
	if err != nil {
		return "", err
	}
	return r.Questions(), nil
}

// questionsDesk is where people are asked, here or on the machine of a target.
func questionsDesk(ctx context.Context, on sessions.On) (desk questions.Desk, leave func(), err error) {
	if on.String() == "" {
		dir, err := questionsDir()
		return questions.Dir(dir), func() {}, err
	}
	keepToItself() // The process that keeps the connection outlives limpet.
	h, err := program(newConsole().notef).Dial(ctx, on)
	if err != nil {
		return nil, nil, err
	}
	leave = func() { _ = h.Disconnect() } // Nothing temporary was made.
	if desk, err = h.Questions(); err != nil {
		leave()
		return nil, nil, err
	}
	return desk, leave, nil
}

// approveExitCodes are those of limpet approve.
var approveExitCodes = []exitCode{
	{0, "", "the script is known to change nothing", nil},
	{codeUsage, "", "wrong usage: a bad flag, or no script", nil},
	{approve.CodeAsk, "", "a person should decide about the script", nil},
	{approve.CodeDeny, "", "a rule denies the script", nil},
}

// approveFlag is --approve of what a person at a terminal starts.
type approveFlag struct{ mode string } // one of approve.Modes

func (f *approveFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.mode, "approve", "off", "before a script that is not known to change nothing: ask a person at the terminal, deny it, or off. `MODE` is ask, deny or off; see limpet help approve")
}

// addInput is add for what types to a program.
func (f *approveFlag) addInput(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.mode, "approve", "off", "before anything is typed: ask a person at the terminal, deny it, or off. `MODE` is ask, deny or off; see limpet help approve")
}

// gate returns what lets scripts pass; nil: all of them pass. Session is the name of the session that they run in, if others can use it.
func (f *approveFlag) gate(cmd *cobra.Command, shell *shellFlags, session string) (*gate, error) {
	home, _ := os.UserHomeDir() // Without it, more paths are taken for homes.
	load := approve.Rules
	if f := cmd.Flags().Lookup("on"); f != nil && f.Changed {
		load = nil // They are of this machine's programs and directories.
	}
	far := load == nil
	policy, asked, err := shell.sandbox.policy(cmd, shell.dir)
	if err != nil {
		return nil, err
	}
	env, err := shell.environ(cmd)
	if err != nil {
		return nil, err
	}
	opts := &approval.Options{Home: home, Load: load, Exported: approve.Exported(env), Path: approve.PathOf(env), File: approve.File, Git: approve.Git(env), Directory: approve.Directory}
	switch {
	case far: // Programs are others there.
		opts.Path, opts.File, opts.Git, opts.Contained = "", nil, nil, asked && policy.Contains()
		opts.Directory = func(string) bool { return false }
	case asked:
		policy.Env.Pass = shell.asked()
		approve.Confine(opts, policy)
	}
	g, err := f.with(cmd, opts)
	if g == nil {
		return nil, err
	}
	if session != "" || shell.login || len(shell.initFiles) > 0 || len(shell.env) > 0 {
		g.Changed() // What others run there, startup files and variables may make a name another program.
	}
	return g, nil
}

// with returns a gate as --approve says; nil for off.
func (f *approveFlag) with(cmd *cobra.Command, opts *approval.Options) (*gate, error) {
	g := &gate{}
	switch f.mode {
	case "off":
		return nil, nil
	case "deny":
		g.Gate = approval.NewGate(func(_ context.Context, q approval.Question) (approval.Reply, error) {
			return approval.Reply{}, fmt.Errorf("%w: with --approve ask a person at the terminal decides", &approval.RefusedError{Question: q, Nobody: true})
		}, opts)
	case "ask":
		g.Gate = approval.NewGate(g.ask, opts)
	default:
		return nil, usagef(cmd, "--approve %q: it is one of %s", f.mode, strings.Join(approve.Modes, ", "))
	}
	return g, nil
}

// input asks about a text that is to be typed to the job or terminal of an id.
func (f *approveFlag) input(ctx context.Context, cmd *cobra.Command, console *console, id, text string) error {
	g, err := f.with(cmd, nil)
	if g == nil {
		return err
	}
	g.console, g.once = console, true
	_, err = g.Pass(ctx, approval.Question{Script: text, Input: id})
	return err
}

// once asks about a script that is started in a directory, of a session if it has a name, and looked after by others from then on.
func (f *approveFlag) once(ctx context.Context, cmd *cobra.Command, shell *shellFlags, session string, console *console, script string) error {
	g, err := f.gate(cmd, shell, session)
	if g == nil {
		return err
	}
	g.console, g.once = console, true
	dir := absolute(cmp.Or(shell.dir, "."))
	if session != "" && shell.dir == "" {
		dir = "the directory of session " + session
	}
	return g.Check(ctx, script, dir)
}

// gate asks at limpet's terminal before scripts run.
type gate struct {
	*approval.Gate

	// Of the script that is checked: the file that it is in, or "", and where output of those before it was shown.
	file    string
	console *console
	waited  bool // a person was asked
	once    bool // nothing is asked about behind it
}

// check returns nil if a script may run in the shell. File is where its text is, if that is not the script itself.
func (g *gate) check(ctx context.Context, sh runsIn, console *console, file, text string) error {
	if g == nil {
		return nil
	}
	return g.checkLooking(ctx, sh, console, file, text, true)
}

// checkLooking is check, which looks at a session that others can use only if it is told to.
func (g *gate) checkLooking(ctx context.Context, sh runsIn, console *console, file, text string, looks bool) error {
	g.file, g.console = file, console
	if kept, is := sh.(*keptShell); is {
		return g.checkKept(ctx, kept, text, looks)
	}
	for {
		q := approval.Question{Script: text, Dir: sh.Dir()}
		if own, is := sh.(*shell.PersistentShell); is {
			q.Look = lookAt(own)
		}
		g.waited = false
		p, err := g.Pass(ctx, q)
		if err != nil || sh.Dir() == q.Dir && (!g.waited || p.Holds(q.Dir)) { // While a person thought, a name may have come to lead elsewhere.
			return err
		}
	}
}

// lookAt returns what a shell has. What it began with is what limpet has: variables of the command line may change what programs do.
func lookAt(sh *shell.PersistentShell) func(context.Context) (*command.LiveState, error) {
	return func(ctx context.Context) (*command.LiveState, error) {
		state, err := sh.Live(ctx)
		if err != nil {
			return nil, context.Cause(ctx) // Where it cannot be told, the script asks.
		}
		state.Env = beganWith(state.Env, askpass.Names) // Those are limpet's own.
		return &state, nil
	}
}

// beganWith is what limpet has, and of what a shell was started with, or callers have set, the variables of those names.
func beganWith(env, names []string) []string {
	began := slices.Concat(os.Environ(), shell.DefaultEnv())
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(names, name) {
			began = append(began, entry)
		}
	}
	return began
}

func (g *gate) ask(ctx context.Context, q approval.Question) (reply approval.Reply, err error) {
	g.waited = true
	err = g.console.question(ctx, func(tty *os.File) (err error) {
		reply, err = g.askAt(ctx, tty, q)
		return err
	})
	if errors.Is(err, errNobody) {
		return reply, fmt.Errorf("%w: limpet has no terminal, or is in the background of one, or runs in a session of limpet; a person can run it, or let it run by --approve off", &approval.RefusedError{Question: q, Nobody: true})
	}
	return reply, err
}

func (g *gate) askAt(ctx context.Context, tty *os.File, q approval.Question) (no approval.Reply, err error) {
	if g.file == "" {
		return approve.Ask(ctx, tty, q, approve.About{Once: g.once})
	}
	text, err := fileToShow(g.file)
	for err == nil {
		var reply approval.Reply
		if reply, err = approve.Ask(ctx, tty, q, approve.About{File: text}); err != nil || reply.Answer == approval.No {
			return reply, err
		}
		before := text
		if text, err = fileToShow(g.file); err == nil && text == before {
			return reply, nil
		} // Else it is another script now, and asked about anew.
	}
	return no, err
}

// mostShown is how long a file may be that is shown, in bytes: as long as a script that can be judged.
const mostShown = 64 << 10

// fileToShow returns the text of a file that runs. A person is not asked about one that is too long to be read through.
func fileToShow(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("showing the script to a person: %w", err)
	}
	defer f.Close() // It was read only.
	return readToShow(path, f)
}

// readToShow returns all that can be read, to show it to a person.
func readToShow(name string, from io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostShown+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("showing %s to a person: %w", name, err)
	case len(text) > mostShown:
		return "", fmt.Errorf("%s has more than %d bytes, which is too long for a question: read it, and use it by --approve off", name, mostShown)
	}
	return string(text), nil
}
