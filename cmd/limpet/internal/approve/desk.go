package approve

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/script"
)

// Desk puts questions on limpet serve's page, in the words of limpet approvals answer, and answers them in the same way. It implements
// [page.Desk].
type Desk struct {
	At     questions.Desk // where the questions are
	Target string         // the machine that At is of; empty: this one
}

// mostSheet is how long a script may be that is read through on a page, in bytes, with what it reads.
const mostSheet = 256 << 10

// Sheet is what a person is shown of a question.
func (d Desk) Sheet(q questions.Open) page.Sheet {
	command := "limpet approvals answer " + q.ID
	if d.Target != "" {
		q.From += " on " + d.Target
		command = "limpet approvals answer --on " + script.Quote(d.Target) + " " + q.ID
	}
	s := d.sheet(q, command)
	s.Command = command
	return s
}

func (d Desk) sheet(q questions.Open, command string) page.Sheet {
	if q.Password != nil {
		return passwordSheet(q)
	}
	asks := q.Question
	from := q.From + ", session " + q.Session + ","
	s := page.Sheet{
		Title: strings.TrimPrefix(title(asks, from), "limpet: "), Brief: Escape(shortened(asks.Script)), Notes: reasons(asks),
		Parts: []page.Part{{Text: escapeLines(asks.Script)}},
	}
	if q.Stdin != "" {
		s.Parts = append(s.Parts, page.Part{Title: "It reads", Text: escapeLines(q.Stdin)})
	}
	no := page.Choice{Answer: page.No, Text: "No", Field: page.Reason}
	if size := len(asks.Script) + len(q.Stdin); size > mostSheet {
		s.Parts = []page.Part{{Text: escapeLines(strings.ToValidUTF8(asks.Script[:min(len(asks.Script), mostSheet)], ""))}}
		s.Notes = append(s.Notes, fmt.Sprintf("It has %d bytes, which is too long to be read through on a page, so that the answer here can only be no: %s, at a terminal.", size, command))
		s.Choices = []page.Choice{no}
		return s
	}
	s.Choices = []page.Choice{{Answer: page.Once, Text: "Yes, this time"}}
	if again := yesAgain(asks); again != "" {
		s.Choices = append(s.Choices, page.Choice{Answer: page.ForSession, Text: "Y" + again[1:]})
	}
	if rules, ok := d.always(asks); ok {
		choice := page.Choice{Answer: page.Always, Text: "A" + alwaysBelow(rules[0])[1:]}
		for _, rule := range rules {
			choice.Rules = append(choice.Rules, Escape(rule.String()))
		}
		s.Choices = append(s.Choices, choice)
	}
	s.Choices = append(s.Choices, no)
	return s
}

// always is the rules that an answer writes; none for another machine, where they are files over there.
func (d Desk) always(q approval.Question) ([]approval.Own, bool) {
	if d.Target != "" {
		return nil, false
	}
	return always(q)
}

func passwordSheet(q questions.Open) page.Sheet {
	p := *q.Password
	words, _, _ := strings.Cut(wants(p), ",")
	s := page.Sheet{
		Title: "For " + Escape(q.From) + ": " + wants(p) + ":", Brief: words, Notes: asker(p),
		Parts: []page.Part{{Text: escapeLines(p.Prompt)}},
	}
	give := page.Choice{Answer: page.Give, Text: "Give the answer", Field: page.Name}
	switch p.Kind {
	case command.AskPassword:
		give = page.Choice{Answer: page.Give, Text: "Give the password", Field: page.Password}
	case command.AskConfirm:
		give = page.Choice{Answer: page.Give, Text: "Yes"}
	case command.AskNothing:
		s.Choices = []page.Choice{{Answer: page.Give, Text: "Seen"}}
		return s
	}
	s.Choices = []page.Choice{give, {Answer: page.No, Text: "No"}}
	return s
}

// escapeLines is Escape for each line of a text.
func escapeLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		b.WriteString(Escape(line))
		if whole {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Answer answers a question by one of the choices of its sheet.
func (d Desk) Answer(ctx context.Context, q questions.Open, a page.Answer) (said string, err error) {
	if q.Password != nil {
		return d.give(ctx, q, a)
	}
	var reply approval.Reply
	switch a.Answer {
	case page.Once:
		reply.Answer, said = approval.Once, "yes, this time"
	case page.ForSession:
		reply.Answer, said = approval.Session, cmp.Or(yesAgain(q.Question), "yes")
	case page.Always:
		reply.Answer, said = approval.Session, "yes, always"
	default:
		reply.Reason, said = strings.TrimSpace(strings.ToValidUTF8(a.Reason, "")), "no"
		if reply.Reason != "" {
			said = "no: " + Escape(reply.Reason)
		}
	}
	rules, lasting := d.always(q.Question)
	if a.Answer == page.Always && !lasting { // As the project is another one by now.
		reply.Answer, said = approval.Once, "yes, this time: there is no rule for it any more"
	}
	if err := d.At.Answer(ctx, q.ID, reply); err != nil {
		return "", err
	}
	if a.Answer == page.Always && lasting { // An answer that comes too late writes none.
		if err := remember(ctx, rules); err != nil {
			said = "yes, and whenever it comes again: the rule cannot be written: " + Escape(err.Error())
		}
	}
	return said, nil
}

// give answers a program that asks for a password.
func (d Desk) give(ctx context.Context, q questions.Open, a page.Answer) (said string, err error) {
	given, secret, said := a.Answer == page.Give, a.Secret, "no"
	switch {
	case !given:
		secret = nil
	case q.Password.Kind == command.AskConfirm:
		secret, said = []byte("yes"), "yes"
	case q.Password.Kind == command.AskNothing:
		secret, said = nil, "seen"
	default:
		said = "given"
	}
	return said, d.At.AnswerPassword(ctx, q.ID, secret, given)
}
