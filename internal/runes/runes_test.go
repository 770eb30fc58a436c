package runes_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/limpet-sh/limpet/internal/runes"
)

func TestWhereTextMayBeCut(t *testing.T) {
	for text, want := range map[string]struct{ whole, broken int }{
		"": {0, 0}, "a": {1, 0}, "€": {3, 0}, "a\xe2\x82": {1, 0}, "\xe2": {0, 0}, "\x82\xaca": {3, 2}, "\x82\xac": {2, 2},
		"\xff\xfe": {2, 0}, "\x80\x80\x80\x80\x80": {5, 0}, "a\xff": {2, 0},
	} {
		assert.Equal(t, want.whole, runes.Whole([]byte(text)), "%q", text)
		assert.Equal(t, want.broken, runes.BrokenStart([]byte(text)), "%q", text)
	}
}

func TestACutTextIsWholeAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		head, tail := []byte(text[:at]), []byte(text[at:])
		whole, broken := runes.Whole(head), runes.BrokenStart(tail)
		assert.Equal(t, []rune(text[:whole]), []rune(string(head[:whole])))
		if whole < len(head) {
			assert.Equal(t, text[whole:at+broken], string([]rune(text[whole:])[:1]), "what is left out is one rune")
		} else {
			assert.Zero(t, broken)
		}
	})
}

func TestCutsNeverSplitARune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringN(1, 200, -1).Draw(t, "text"))
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		head, tail := text[:cut], text[cut:]
		assert.True(t, utf8.Valid(head[:runes.Whole(head)]))
		assert.True(t, utf8.Valid(tail[runes.BrokenStart(tail):]))
		assert.Less(t, len(head)-runes.Whole(head), utf8.UTFMax)
		assert.Less(t, runes.BrokenStart(tail), utf8.UTFMax)
	})
}

func TestCutsOfAnyBytesLoseAtMostAnIncompleteRune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		n := runes.Whole(b)
		// Whole leaves out the end only if more bytes could complete a sequence there.
		assert.True(t, n == len(b) || !utf8.FullRune(b[n:]))
		for _, left := range b[:runes.BrokenStart(b)] {
			assert.False(t, utf8.RuneStart(left))
		}
	})
}
