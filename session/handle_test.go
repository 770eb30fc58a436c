package session_test

import (
	"testing"

	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

func TestASessionOfThisProgramKeepsThePromises(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Handle { return open(t, registry(t, nil), "s") })
}
