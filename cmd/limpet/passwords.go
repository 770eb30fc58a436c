package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/proc"
)

var (
	errNobody = errors.New("nobody can be asked, as limpet has no terminal, or is in the background of one, or runs in a session of limpet; a person can run the command by limpet run at a terminal")
	errTyping = errors.New("nobody is asked while a command is typed at limpet's prompt; run the command without & there")
	errDenied = errors.New("nobody is asked, by --approve deny; without it a person at limpet's terminal is")
)

// passwords is for shell.Options.AskPassword.
type passwords func(context.Context, command.PasswordQuestion) ([]byte, error)

// passwords returns what asks for passwords at limpet's terminal; nil: programs are left to ask as they like. Mode is that of --approve.
func (f *shellFlags) passwords(console *console, mode string) passwords {
	if f.noAskpass || f.cleanEnv {
		return nil
	}
	tty := approve.Terminal()
	if tty != nil {
		_ = tty.Close() // Nothing was written.
	}
	switch {
	case tty == nil && os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") != "":
		return nil // There is a screen, and ssh has a program of its own for that.
	case mode == "deny":
		return func(context.Context, command.PasswordQuestion) ([]byte, error) { return nil, errDenied }
	}
	return func(ctx context.Context, q command.PasswordQuestion) (answer []byte, err error) {
		err = console.question(ctx, func(tty *os.File) (err error) {
			answer, err = approve.Password(ctx, tty, q)
			return err
		})
		return answer, err
	}
}

// settles is how long a question waits for what its program printed before it, which is on its way to the terminal.
const settles = 50 * time.Millisecond

// question lets a function ask at the terminal, when nobody else does. Meanwhile it is silent there. Where nobody can be asked the
// error is errNobody.
func (c *console) question(ctx context.Context, ask func(tty *os.File) error) error {
	if c.isTyped() {
		return errTyping
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tty := approve.Terminal()
	if tty == nil {
		return errNobody
	}
	defer tty.Close() // Nothing is lost: the answer is known.
	select {          // A person reads why before the question.
	case <-time.After(settles):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.screen.Lock()
	defer c.screen.Unlock()
	c.freshLine()
	c.asks()
	defer c.answered()
	return ask(tty)
}

// isTyped reports whether a line is being typed.
func (c *console) isTyped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typing
}

// setTyping says whether a line is being typed. The caller has the turn.
func (c *console) setTyping(typing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing = typing
}

// askPasswords has programs of a session that is kept on this machine ask here, as long as this limpet runs a command there.
func (k *keptShell) askPasswords(ask passwords) error {
	if ask == nil {
		return nil
	}
	if _, err := proc.Read(os.Getpid()); errors.Is(err, errors.ErrUnsupported) {
		return nil // There is no /proc.
	}
	var err error
	k.asks, err = askpass.Serve(askpass.Options{Ask: ask, Shell: func(st proc.Stat) bool {
		parent, err := proc.Read(st.PPID)
		if err != nil {
			return false
		}
		keeper, err := k.Process() // At each question: an upgrade has made another one.
		return err == nil && parent.ID() == keeper
	}})
	return err
}

func passwordsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "passwords",
		Short: "How sudo, ssh and git ask for passwords",
		Long: `What limpet run and limpet repl run has no terminal. Where limpet itself has one, programs ask there: SUDO_ASKPASS and SSH_ASKPASS
are limpet's own, and SSH_ASKPASS_REQUIRE is force, unless they are set already. The question shows the words of the program that
asks, escaped, and the processes that it descends from. What is typed is not shown; the program gets it, and it is written nowhere
else. Enter alone, Ctrl-C and Ctrl-D are no. Without an answer the program fails after 45 seconds; where nobody can be asked it
fails at once, and says why.

sudo    asks with its option -A. Without it, it says that a terminal is required, unless DISPLAY is set, be it empty:
        limpet run --env DISPLAY= 'make install' has it ask wherever in make it is called
ssh     asks for passwords, passphrases, and whether the key of a host is right
git     asks for what no credential helper knows, and core.askPass of its configuration comes first

Any program in the shell can ask in the same way, and do what it likes with the answer: read which one it is.

What an agent runs by limpet mcp --askpass asks by limpet approvals answer, at whatever terminal a person runs that, and on the page
of limpet serve --allow-answers.

Nobody is asked with --on and --clean-env, nor in a sandbox, where sudo cannot work, nor on other systems than Linux; nor from
jobs, terminals and limpet mcp without --askpass. With --no-askpass the variables are left alone. See docs/passwords.md.`,
	}
}
