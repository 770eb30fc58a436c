package terminal

import (
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

// answersTo returns the answers to the requests of one read. The output behind a request may move the cursor again: so it commits the output
// up to each request for the cursor before it looks where that stands, and returns how many bytes it has committed. Only the goroutine that
// reads may call it.
func (p *program) answersTo(asked []screen.Query) (answers [][]byte, committed int) {
	size, _ := p.display.history.size(p.out.end)
	for _, q := range asked {
		var cursor screen.Cursor
		if wantsCursor(q) {
			p.out.commit(q.End-committed, nil)
			committed = q.End
			cursor, size = p.display.cursor()
		}
		answers = append(answers, q.Answer(cursor, size))
	}
	return answers, committed
}

// answer is for the one that reads, which must not wait.
func (p *program) answer(answers [][]byte) {
	if len(answers) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range answers {
		if len(p.answers)+len(a) <= mostAnswers {
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
