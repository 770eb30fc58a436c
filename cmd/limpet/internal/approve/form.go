package approve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/mcpserver"
)

// A form takes a yes only to a question of at most formRows rows of formColumns columns, as clients cut longer ones. On a terminal of 80
// columns Claude Code 2.1.332 shows four rows, each up to column 74; of five rows it shows three. Codex 0.169 shows the first rows that
// the terminal has room for, and Copilot 1.0.102 the last ones.
const (
	formRows    = 4
	formColumns = 74
	formWrapped = "  ↪ " // stands before the rest of a line that is longer; a line of a script begins with a bar
)

// The choices of a form, besides yesAgain.
const (
	formNo        = "no"
	formYes       = "yes, this time"
	formElsewhere = "I answer at a terminal"
)

// elicit asks by the client of an agent. If its user chooses nothing, the question stays open elsewhere.
func elicit(ctx context.Context, c mcpserver.Caller, q questions.Open) (approval.Reply, error) {
	text, choices := form(q)
	choice, err := c.Elicit(ctx, text, choices...)
	if err != nil {
		return approval.Reply{}, err
	}
	again := yesAgain(q.Question)
	switch {
	case choice == formElsewhere:
		return approval.Reply{}, mcpserver.ErrNoChoice
	case choice == formYes:
		return approval.Reply{Answer: approval.Once}, nil
	case again != "" && choice == again:
		return approval.Reply{Answer: approval.Session}, nil
	}
	return approval.Reply{}, nil
}

// form returns the text and the choices of a question for a form. If the question is too long for a form, the form can refuse it, and
// cannot approve it.
func form(q questions.Open) (text string, choices []string) {
	var rows []string
	if len(q.Question.Script)+len(q.Stdin) <= formRows*formColumns*utf8.UTFMax { // A longer text does not fit.
		rows = formQuestion(q)
	}
	if rows == nil || len(rows) > formRows || slices.ContainsFunc(rows, func(row string) bool { return ansi.StringWidth(row) > formColumns }) {
		what := "a script"
		if q.Question.Input != "" {
			what = "what is typed"
		}
		return fmt.Sprintf("limpet: a question is too long for this form (%s, %s).\nTo read it, and to answer: limpet approvals answer, at a terminal.",
			what, counted(q.Question.Script+q.Stdin)), []string{formNo, formElsewhere}
	}
	choices = []string{formNo, formYes}
	if again := yesAgain(q.Question); again != "" {
		choices = append(choices, again)
	}
	return strings.Join(rows, "\n"), choices
}

// formQuestion returns the rows of a question in a form: where it runs, the script, what the script reads, and the reasons.
func formQuestion(q questions.Open) []string {
	rows := []string{title(q.Question, "")}
	if ansi.StringWidth(rows[0]) > formColumns && q.Question.Input == "" {
		rows = []string{"limpet: may this run?", "in " + Escape(q.Question.Dir)}
	}
	var texts strings.Builder
	lines(&texts, q.Question.Script)
	if q.Stdin != "" {
		texts.WriteString("It reads:\n")
		lines(&texts, q.Stdin)
	}
	for line := range strings.Lines(texts.String()) {
		row, rest := splitRow(strings.TrimSuffix(line, "\n"), formColumns)
		rows = append(rows, row)
		for rest != "" && len(rows) <= formRows { // More is too long anyway.
			row, rest = splitRow(rest, formColumns-ansi.StringWidth(formWrapped))
			rows = append(rows, formWrapped+row)
		}
	}
	first, _ := q.Question.Why()
	why := []string{Escape(first)}
	for _, f := range q.Question.Judgement.Findings {
		reason := Escape(f.Reason)
		if f.Verdict == q.Question.Judgement.Verdict && f.Verdict != approval.Allow && !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	return append(rows, strings.Split(ansi.Wordwrap(strings.Join(why, "; "), formColumns, ""), "\n")...)
}

// splitRow splits a line behind its first columns.
func splitRow(line string, columns int) (row, rest string) {
	row = ansi.Truncate(line, columns, "")
	rest, ok := strings.CutPrefix(line, row)
	if !ok || row == "" {
		return line, "" // It cannot be split, and is too long.
	}
	return row, rest
}

// counted returns the length of a text, in lines if it has several.
func counted(text string) string {
	if n := strings.Count(strings.TrimSuffix(text, "\n"), "\n"); n > 0 {
		return fmt.Sprintf("%d lines", n+1)
	}
	return fmt.Sprintf("%d bytes", len(text))
}
