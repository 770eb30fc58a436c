package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/questions"
)

// Program is what the program is, for questions.
type Program struct {
	// Desk is where they are: here, or on the machine of a target. Call leave.
	Desk func(ctx context.Context, on sessions.On) (desk questions.Desk, leave func(), err error)

	Until func(context.Context) (context.Context, func())
	Note  func(format string, args ...any) // tells the user something
	Ended func(context.Context) error      // what became of a program that a signal ended; nil if none did
}

// ApprovalsCommand is limpet approvals.
func ApprovalsCommand(p Program, help *cobra.Command, noCommand cobra.PositionalArgs) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Answer what limpet asks before something runs",
		Long: `A limpet that has no terminal, as limpet mcp --approve ask, asks whoever uses the machine: the question waits until it is
answered here, at a terminal of yours, or on the page of limpet serve --allow-answers, or its time is over. With limpet mcp --askpass,
sudo, ssh and git ask so for passwords.

What runs in a session, a job or a terminal of limpet cannot answer: it is what the questions are about. An agent that runs
programs in other ways than by limpet can start limpet on a terminal of its own making; see docs/approval.md.`,
		Example: "  limpet approvals list\n  limpet approvals answer\n  limpet approvals answer --wait",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(p), answerCommand(p), rulesCommand(p), help)
	return cmd
}

func listCommand(p Program) *cobra.Command {
	var asJSON bool
	var on sessions.On
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the questions that wait",
		Long: `List prints the questions that wait for an answer, the oldest first. With --json it prints one object a line, with id, from, session, dir, script,
input, reason, age_seconds and left_seconds. A question for a password has the program that asks as its script.

With --on they are those that sessions on another machine ask there.`,
		Example: "  limpet approvals list\n  limpet approvals list --on ssh://build",
		Args:    noun.Wants(0, 0, "wants no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			desk, leave, err := p.Desk(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			open, err := desk.List(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				for _, q := range open {
					if err := noun.JSON(os.Stdout, toOpenJSON(q)); err != nil {
						return err
					}
				}
				return nil
			}
			if len(open) == 0 {
				p.Note("nothing waits for an answer")
				return nil
			}
			rows := [][]string{{"ID", "AGE", "FROM", "SESSION", "SCRIPT", "WHY"}}
			for _, q := range open {
				one := toOpenJSON(q)
				rows = append(rows, []string{q.ID, q.Age.Round(time.Second).String(), Escape(q.From), orDash(Escape(q.Session)), Escape(shortened(one.Script)), Escape(one.Reason)})
			}
			return noun.Table(os.Stdout, rows...)
		},
	}
	addOn(cmd, &on)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	return cmd
}

// addOn adds the flag that says where the questions are.
func addOn(cmd *cobra.Command, on *sessions.On) {
	on.Add(cmd, "those of sessions on another machine, which is reached by `TARGET`; see limpet help run")
}

// openJSON is a line of list --json. Its names are a promise: they only ever grow.
type openJSON struct {
	ID      string  `json:"id"`
	From    string  `json:"from"`
	Session string  `json:"session"`
	Dir     string  `json:"dir,omitempty"`
	Script  string  `json:"script"`          // of a question for a password the program that asks
	Input   string  `json:"input,omitempty"` // what the script is typed to
	Reason  string  `json:"reason"`
	Age     float64 `json:"age_seconds"`
	Left    float64 `json:"left_seconds,omitempty"`
}

func toOpenJSON(q questions.Open) openJSON {
	if p := q.Password; p != nil {
		out := openJSON{ID: q.ID, From: q.From, Session: q.Session, Reason: "it asks: " + p.Prompt, Age: q.Age.Seconds(), Left: q.Left.Seconds()}
		if len(p.Chain) > 0 {
			out.Script = p.Chain[0].Command
		}
		return out
	}
	reason, _ := q.Question.Why()
	return openJSON{q.ID, q.From, q.Session, q.Question.Dir, q.Question.Script, q.Question.Input, reason, q.Age.Seconds(), q.Left.Seconds()}
}

func answerCommand(p Program) *cobra.Command {
	var wait bool
	var on sessions.On
	cmd := &cobra.Command{
		Use:   "answer [ID]",
		Short: "Answer a question, or all that wait, at the terminal",
		Long: `Answer shows the questions that wait, one after the other, or that of an ID, of which the beginning is enough, and reads a key for each: y is yes, s is yes whenever the
same comes again in that session, r is no with a reason that whoever asked is told, and any other key is no.
With --wait it goes on with those that come, until Ctrl-C.

With --on they are those of sessions on another machine, and are answered at this terminal. The answer "always" is not offered for them: rules are files over there.`,
		Example: "  limpet approvals answer\n  limpet approvals answer --wait --on ssh://build",
		Args:    noun.Wants(0, 1, "wants the ID of a question, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait && len(args) > 0 {
				return noun.Usagef(cmd, "--wait is for all that come: it cannot go with an ID")
			}
			tty := Terminal()
			if tty == nil {
				return errors.New("a person answers at a terminal: limpet has none, or is in the background of one, or runs in a session of limpet")
			}
			defer tty.Close() // Nothing is lost.
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			if on.String() != "" && Within() { // The other machine cannot see it: its limpet connect gives the answer.
				return questions.ErrWithin
			}
			desk, leave, err := p.Desk(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			err = (&answering{p, tty, desk, on.String()}).all(ctx, cmd, args, wait)
			if ended := p.Ended(ctx); ended != nil && (err == nil || ctx.Err() != nil) {
				return ended
			}
			return err
		},
	}
	addOn(cmd, &on)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait for those that come, until Ctrl-C")
	return cmd
}

// answering is a person who answers at a terminal.
type answering struct {
	Program
	tty  *os.File
	desk questions.Desk
	on   string // the machine of the desk; empty: this one
}

// all answers the questions that are meant.
func (p *answering) all(ctx context.Context, cmd *cobra.Command, args []string, wait bool) error {
	for said := false; ; {
		open, err := p.desk.List(ctx)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if open, err = named(cmd, args[0], open); err != nil {
				return err
			}
		}
		for _, q := range open {
			if err := p.one(ctx, q); err != nil {
				return err
			}
		}
		switch {
		case !wait && len(open) == 0 && !said:
			p.Note("nothing waits for an answer")
			return nil
		case !wait && (len(args) > 0 || len(open) == 0):
			return nil
		case wait && len(open) == 0:
			if !said {
				p.Note("waits for questions, until Ctrl-C")
			}
			if err := p.desk.Await(ctx); err != nil {
				return err
			}
		}
		said = true
	}
}

// named is the question of an ID.
func named(cmd *cobra.Command, id string, open []questions.Open) ([]questions.Open, error) {
	ids := make([]string, len(open))
	for i, q := range open {
		ids[i] = q.ID
	}
	id, found, err := noun.Pick(cmd, "question", id, ids)
	if err != nil {
		return nil, err
	}
	for _, q := range open {
		if found && q.ID == id {
			return []questions.Open{q}, nil
		}
	}
	return nil, fmt.Errorf("no question %q waits for an answer: limpet approvals list has those that do", id)
}

// errOver is the cause for which a question is taken from the terminal.
var errOver = errors.New("the question is over")

// one asks a person one question, for as long as it is open.
func (p *answering) one(ctx context.Context, q questions.Open) error {
	asking, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() { // It ends with the question, or with asking.
		defer close(over)
		if p.desk.Over(asking, q.ID) == nil {
			cancel(errOver)
		}
	}()
	defer func() { cancel(nil); <-over }()
	var err error
	if q.Password != nil {
		err = p.password(ctx, asking, q)
	} else {
		var reply approval.Reply
		from := p.from(q) + ", session " + q.Session + ","
		if reply, err = Ask(asking, p.tty, q.Question, About{From: from, Stdin: q.Stdin, Far: p.on != ""}); err == nil {
			err = p.desk.Answer(ctx, q.ID, reply)
		}
	}
	if errors.Is(err, errOver) || errors.Is(err, questions.ErrNotOpen) {
		p.Note("that is not asked any more: somebody else has answered, or whoever asked gave up")
		return nil
	}
	return err
}

// from says who asks.
func (p *answering) from(q questions.Open) string {
	if p.on == "" {
		return q.From
	}
	return q.From + " on " + p.on
}

// password asks a person for a password, and gives it to the program that asks.
func (p *answering) password(ctx, asking context.Context, q questions.Open) error {
	if _, err := fmt.Fprintf(p.tty, "limpet: for %s\n", Escape(p.from(q))); err != nil {
		return fmt.Errorf("asking on the terminal: %w", err)
	}
	secret, err := Password(asking, p.tty, *q.Password)
	defer clear(secret)
	if err != nil && !errors.Is(err, ErrNo) {
		return err
	}
	return p.desk.AnswerPassword(ctx, q.ID, secret, err == nil)
}
