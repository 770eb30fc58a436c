// Package mask finds what looks like a secret in text, and puts a name of its form in the place of it. It knows tokens by their prefixes,
// private keys by their armour, and values by the names that they are assigned to. A secret that looks like nothing is not found: it keeps
// records from being full of secrets, and makes none safe to publish.
package mask

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/environ"
)

// form is a way in which secrets look.
type form struct {
	name string

	// re matches; the first of its groups that is not empty is what is masked, and all of the match if it has none. Where is is set, the
	// first group is the name of a variable instead.
	re func() *regexp.Regexp

	// any are texts of which one is in each match: without them re is not tried. Nil means that there are none.
	any []string

	// is decides by the name. Nil means that all matches are secrets.
	is func(name string) bool

	examples, others []string // what is found, and what is not
}

// secret returns which part of a match is the secret.
func (f form) secret(text []byte, match []int) (from, to int) {
	groups := match[2:]
	if f.is != nil {
		if !f.is(string(text[groups[0]:groups[1]])) {
			return 0, 0
		}
		groups = groups[2:]
	}
	for ; len(groups) > 0; groups = groups[2:] {
		if groups[0] < groups[1] {
			return groups[0], groups[1]
		}
	}
	if len(match) == 2 {
		return match[0], match[1]
	}
	return 0, 0
}

// span is a part of a text that is a secret.
type span struct {
	from, to int
	name     string
}

// Text returns the text with "[masked: NAME]" in the place of each secret, and the names of the forms of those, each once. It returns the text
// itself if there are none.
func Text(text []byte) (masked []byte, names []string) {
	var spans []span
	for _, f := range forms {
		if len(f.any) > 0 && !slices.ContainsFunc(f.any, func(part string) bool { return bytes.Contains(text, []byte(part)) }) {
			continue
		}
		for _, m := range f.re().FindAllSubmatchIndex(text, -1) {
			from, to := f.secret(text, m)
			if from < to {
				spans = append(spans, span{from, to, f.name})
			}
		}
	}
	if len(spans) == 0 {
		return text, nil
	}
	// Of those that overlap, the one that begins first, and then the longest, has the name.
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	done := 0
	for _, s := range spans {
		if s.to <= done {
			continue
		}
		if s.from >= done {
			masked = append(masked, text[done:s.from]...)
			masked = append(masked, "[masked: "+s.name+"]"...)
			if !slices.Contains(names, s.name) {
				names = append(names, s.name)
			}
		}
		done = s.to
	}
	return append(masked, text[done:]...), names
}

// Ends returns the beginning and the end of a text, masked, of at most so many bytes each, and how many bytes of the text were left out
// between them. A secret that is cut is masked, too.
func Ends(text []byte, each int) (head, tail []byte, omitted int64, names []string) {
	if len(text) <= 2*each {
		head, names = Text(text)
		return head, nil, 0, names
	}
	const around = 8 << 10 // so much longer than what is kept is what is looked at: longer than a private key
	head, names = Text(text[:min(each+around, len(text))])
	tail, more := Text(text[max(len(text)-each-around, 0):])
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	head, tail = head[:min(each, len(head))], tail[max(len(tail)-each, 0):]
	return head, tail, max(int64(len(text))-int64(len(head))-int64(len(tail)), 1), names
}

// Assignment is Text of a "NAME=value" of an environment, whose value may be anything.
func Assignment(entry string) (masked string, names []string) {
	if name, value, _ := strings.Cut(entry, "="); value != "" && environ.Secret(name) {
		return name + "=[masked: " + ofVariable + "]", []string{ofVariable}
	}
	text, names := Text([]byte(entry))
	return string(text), names
}
