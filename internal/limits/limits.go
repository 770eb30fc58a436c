// Package limits holds the two limits of a command, in all and without output,
// and says when to look at them next.
package limits

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/limpet-sh/limpet/interrupt"
)

// Limits of one command that started at Started. 0 means none.
type Limits struct {
	Started       time.Time
	Timeout, Idle time.Duration

	HandOver time.Duration // when it is to be given away
}

// Pick returns a request's own limit or, if it says none, the general one.
// Negative means none, and comes out as 0.
func Pick(own, general time.Duration) time.Duration {
	if own == 0 {
		own = general
	}
	return max(own, 0)
}

// Next returns when to look again: after the given time, or earlier if a limit
// comes first. quiet is for how long there has been no output.
func (l Limits) Next(again, quiet time.Duration) time.Duration {
	if l.Timeout > 0 {
		again = min(again, l.Timeout-time.Since(l.Started))
	}
	if l.Idle > 0 {
		again = min(again, l.Idle-quiet)
	}
	if l.HandOver > 0 {
		again = min(again, l.HandOver-time.Since(l.Started))
	}
	return max(again, 0)
}

// Exceeded returns an error that is interrupt.ErrTimeout or interrupt.ErrIdle
// if the command has passed that limit.
func (l Limits) Exceeded(quiet time.Duration) error {
	switch {
	case l.Timeout > 0 && time.Since(l.Started) >= l.Timeout:
		return fmt.Errorf("%w: it ran longer than %v", interrupt.ErrTimeout, l.Timeout)
	case l.Idle > 0 && quiet >= l.Idle:
		return fmt.Errorf("%w: no output for %v", interrupt.ErrIdle, l.Idle)
	}
	return nil
}

// NotBegun is the error for what did not begin because ctx had ended. It is, for
// errors.Is, what ended ctx, and ctx's own error. If somebody interrupts, by a Source, say,
// it is an [*interrupt.Error].
func NotBegun(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, interrupt.ErrInterrupted) {
		return interrupt.NewRefusal(cause)
	}
	if errors.Is(cause, interrupt.ErrClosed) {
		return cause
	}
	if !errors.Is(cause, ctx.Err()) {
		cause = fmt.Errorf("%w (%w)", cause, ctx.Err())
	}
	return fmt.Errorf("nothing ran: %w", cause)
}
