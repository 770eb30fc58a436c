package runes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/runes"
)

func TestLinesAreCounted(t *testing.T) {
	for _, row := range []struct {
		text        string
		most        int
		first, last string
	}{
		{"", 2, "", ""},
		{"a", 1, "a", "a"},
		{"a\n", 1, "a\n", "a\n"},
		{"a\nb", 1, "a\n", "b"},
		{"a\nb\n", 1, "a\n", "b\n"},
		{"a\nb\nc", 2, "a\nb\n", "b\nc"},
		{"a\nb\n", 2, "a\nb\n", "a\nb\n"},
		{"a\nb\n", 9, "a\nb\n", "a\nb\n"},
		{"\n\n\n", 2, "\n\n", "\n\n"},
		{"\na", 1, "\n", "a"},
		{"a\n\n", 1, "a\n", "\n"},
	} {
		assert.Equal(t, row.first, string(runes.FirstLines([]byte(row.text), row.most)), "the first %d of %q", row.most, row.text)
		assert.Equal(t, row.last, string(runes.LastLines([]byte(row.text), row.most)), "the last %d of %q", row.most, row.text)
	}
}
