package approve

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/command"
)

// A program whose question nobody has answered says to its user what to do.
func TestAPasswordThatNobodyGivesSaysHow(t *testing.T) {
	s := Sessions{From: "a test", Dir: func() (string, error) { return filepath.Join(t.TempDir(), "asking"), nil }}
	late := errors.New("nobody answered within 1 ms")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, late)
	defer cancel()
	_, err := s.Password(ctx, command.PasswordQuestion{Prompt: "Password: "})
	assert.EqualError(t, err, "nobody answered within 1 ms; a person answers by limpet approvals answer, at a terminal")
	assert.ErrorIs(t, err, late)
	gone := errors.New("the program has ended")
	given, give := context.WithCancelCause(t.Context())
	give(gone)
	_, err = s.Password(given, command.PasswordQuestion{Prompt: "Password: "})
	assert.Equal(t, gone, err)
}

// After 300 s the model of Codex CLI reads that its call has timed out, and neither that nothing ran nor what to do.
func TestAQuestionIsGivenUpBeforeTheCallIs(t *testing.T) {
	assert.LessOrEqual(t, DefaultWait+10*time.Second, 300*time.Second)
}
