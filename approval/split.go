package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// gap stands in a pattern for blanks of a variable without quotes, where the shell splits the word.
const gap = "\x00"

// parted returns the values of a word without braces: several where blanks of a variable that is known split it.
func (w *walker) parted(word *syntax.Word) (list []value) {
	b := w.build(word, true)
	if n := strings.Count(b.value.pattern, gap); n > 0 && !w.expands(b.value, (n+1)*pieceSize) {
		return []value{{pattern: hidden, many: true, splits: true, from: b.from, to: b.to, node: word}}
	}
	pieces := strings.FieldsFunc(b.value.pattern, func(r rune) bool { return string(r) == gap })
	if !strings.Contains(b.value.pattern, gap) || len(pieces) == 0 {
		b.value.pattern = strings.ReplaceAll(b.value.pattern, gap, "")
		return []value{b.value}
	}
	exact := !b.guessed && !slices.ContainsFunc(word.Parts, isQuoted) // A text in quotes is a word also if it is empty.
	for i, piece := range pieces {
		v := b.value
		v.pattern, v.home = piece, strings.HasPrefix(piece, "~") && (v.home || i > 0) // Behind the first, which tilde is a home is not known.
		switch {
		case exact:
			v = value{text: piece, known: true, home: v.home, pattern: piece, from: v.from, to: v.to, node: word}
		case i > 0:
			v.text, v.noDash, v.filled, v.many, v.splits = "", false, false, true, true
		}
		list = append(list, v)
	}
	return list
}

// pieceSize is how many bytes of expandedMax each piece of a word that is split counts for.
const pieceSize = 64

func isQuoted(part syntax.WordPart) bool {
	switch part.(type) {
	case *syntax.SglQuoted, *syntax.DblQuoted:
		return true
	}
	return false
}
