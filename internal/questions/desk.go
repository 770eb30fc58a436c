package questions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/watch"
)

// Desk is where questions are asked: a directory ([Dir]), or one of another machine ([Remote]). Its methods are safe for
// concurrent use.
type Desk interface {
	// List returns the questions that are asked, the oldest first.
	List(ctx context.Context) ([]Open, error)

	// Await waits until a question is asked. The error is the cause of ctx if that ends before.
	Await(ctx context.Context) error

	// Over, Answer and AnswerPassword are as the functions of these names.
	Over(ctx context.Context, id string) error
	Answer(ctx context.Context, id string, reply approval.Reply) error
	AnswerPassword(ctx context.Context, id string, secret []byte, given bool) error
}

// Dir is a directory of questions.
type Dir string

var _ Desk = Dir("")

// List implements [Desk].
func (d Dir) List(ctx context.Context) ([]Open, error) { return List(ctx, string(d)) }

// Over implements [Desk].
func (d Dir) Over(ctx context.Context, id string) error { return Over(ctx, string(d), id) }

// Answer implements [Desk].
func (d Dir) Answer(ctx context.Context, id string, reply approval.Reply) error {
	return Answer(ctx, string(d), id, reply)
}

// AnswerPassword implements [Desk].
func (d Dir) AnswerPassword(ctx context.Context, id string, secret []byte, given bool) error {
	return AnswerPassword(ctx, string(d), id, secret, given)
}

// Await implements [Desk]. The directory is made if it must be.
func (d Dir) Await(ctx context.Context) error {
	return d.AwaitOther(ctx, func(string) bool { return false })
}

// AwaitOther waits until a question is asked whose ID is not known, as Await does.
func (d Dir) AwaitOther(ctx context.Context, known func(id string) bool) error {
	fail := func(err error) error { return fmt.Errorf("waiting for questions: %w", err) }
	if err := private.MkdirAll(string(d)); err != nil {
		return fail(err)
	}
	w, err := watch.Dir(string(d))
	if err != nil {
		return fail(err)
	}
	defer w.Close() // Nothing is lost.
	for {
		open, mute, err := look(ctx, string(d))
		if err != nil || slices.ContainsFunc(open, func(q Open) bool { return !known(q.ID) }) {
			return err
		}
		var again <-chan time.Time
		if mute > 0 {
			again = time.After(askPatience) // It may say what it asks by then: no change of the directory tells.
		}
		select {
		case <-again:
		case <-w.Events:
		case <-w.Errors: // Of changes that are not told.
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
