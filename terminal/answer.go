package terminal

import (
	"slices"
	"time"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// Programs ask their terminal what it is and where the cursor stands, and some wait for
// the answer before they do anything else. There may be nobody at the terminal, or many:
// so it is always the terminal itself that answers, and who shows it to a person keeps
// the questions from the person's own (screen.QueryFilter).

// mostAnswers bounds what is kept for a program that asks, and does not read.
const mostAnswers = 4 << 10

// answerPatience is how long an answer waits for the program to read: it may be none any
// more that it wants.
const answerPatience = time.Second

// answer is for the one that reads, which must not wait.
func (p *program) answer(asked []screen.Query) {
	var (
		cursor  screen.Cursor
		size, _ = p.display.history.size(p.out.end)
	)
	if slices.ContainsFunc(asked, wantsCursor) {
		cursor, size = p.display.cursor()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range asked {
		if a := q.Answer(cursor, size); len(p.answers)+len(a) <= mostAnswers {
			p.answers = append(p.answers, a...)
		}
	}
	if len(p.answers) > 0 && !p.answering {
		p.answering = true
		p.replies.Go(p.sendAnswers)
	}
}

func wantsCursor(q screen.Query) bool {
	return q.Kind == screen.QueryCursor || q.Kind == screen.QueryCursorPrivate
}

// sendAnswers ends when all are sent, or when the terminal is closed.
func (p *program) sendAnswers() {
	for {
		p.mu.Lock()
		answers := p.answers
		p.answers = nil
		if len(answers) == 0 {
			p.answering = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if deadline := time.Now().Add(answerPatience); p.in.begin(deadline) {
			_ = p.master.SetWriteDeadline(deadline) // It can have deadlines.
			_, _ = p.master.Write(answers)          // Who does not read has no use for it.
			p.in.end()
		}
	}
}
