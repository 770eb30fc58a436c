package approve_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
)

func TestNothingIsHidden(t *testing.T) {
	for text, want := range map[string]string{
		"ls -l é 日本":      "ls -l é 日本",
		"a\x1b[2Jb":       `a\x1b[2Jb`,
		"a\rb\tc":         `a\x0db\x09c`,
		"\u009b2J":        `\u009b2J`,
		"a\u202eb\u2066c": `a\u202eb\u2066c`,
		"a\u200bb\ufeffc": `a\u200bb\ufeffc`,
		"a\u00a0b\u3164c": `a\u00a0b\u3164c`,
		"\xff\xfe":        `\xff\xfe`,
		"\U000e0041":      `\U000e0041`,
		"\u2028x\u0301":   `\u2028x\u0301`,
		"":                "",
	} {
		assert.Equal(t, want, approve.Escape(text), "%q", text)
	}
}
