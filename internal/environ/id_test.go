package environ_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/environ"
)

func TestIDsAreUnguessableWords(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := environ.NewID()
		assert.Regexp(t, "^[0-9a-f]{24}$", id)
		assert.False(t, seen[id])
		seen[id] = true
	}
}
