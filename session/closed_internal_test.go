package session

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/interrupt"
)

// That the shell is closed means, for who has the session, that the session was. What an error says besides stays.
func TestAnErrorOfAClosedShellLosesNothing(t *testing.T) {
	s := &Session{name: "s"}
	stopped := &interrupt.Error{Cause: ErrClosed}
	err := s.ofShell("run", stopped)
	require.ErrorIs(t, err, ErrClosed)
	assert.ErrorContains(t, err, `session "s" was closed`)

	timeout := &interrupt.Error{Cause: context.DeadlineExceeded}
	for _, more := range []error{
		errors.Join(timeout, fmt.Errorf("could not run on as a job: %w", ErrClosed)),
		errors.Join(stopped, errors.New("2 processes are left")),
		errors.Join(ErrClosed, errors.New("the disk is full")),
		errors.Join(&BackgroundError{Cause: context.DeadlineExceeded}, ErrClosed),
	} {
		assert.Equal(t, more, s.ofShell("run", more))
	}
	assert.EqualError(t, s.ofShell("run", fmt.Errorf("the shell is %w", ErrClosed)), `session: run "s": closed; open it again`)
	assert.NoError(t, s.ofShell("run", nil))
}
