package saved

import (
	"bytes"
	"slices"
	"strings"
)

// declaration is a line of "declare -p", or several.
type declaration struct {
	name string
	text []byte
}

// has reports whether the variable has the attribute.
func (d declaration) has(attribute string) bool { return strings.Contains(d.attributes(), attribute) }

// attributes returns the letters of the variable's attributes.
func (d declaration) attributes() string {
	words, ok := bytes.CutPrefix(d.text, []byte("declare -"))
	letters, _, found := bytes.Cut(words, []byte(" "))
	if !ok || !found {
		return ""
	}
	return strings.Trim(string(letters), "-")
}

// kind returns those of the attributes that an assignment does not change: whether it is
// a reference, an array, or a map.
func (d declaration) kind() string { return only(d.attributes(), "naA") }

// value returns what is behind the name: "=" and a word or a list. It is empty if the variable
// has no value.
func (d declaration) value() []byte {
	if d.name == "" {
		return nil
	}
	_, rest, _ := bytes.Cut(bytes.TrimPrefix(d.text, []byte("declare -")), []byte(" "))
	return bytes.TrimSuffix(rest[len(d.name):], []byte("\n"))
}

// scalar returns the value as bash quotes it, and whether the variable has one.
func (d declaration) scalar() (value string, set bool) {
	_, text, set := bytes.Cut(bytes.TrimRight(d.text, "\n"), []byte("="))
	return strings.Trim(string(text), `"`), set
}

// only returns those letters that are in the set, and without those that are not.
func only(letters, set string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(set, r) {
			return r
		}
		return -1
	}, letters)
}

func without(letters, set string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(set, r) {
			return -1
		}
		return r
	}, letters)
}

// converting are the attributes by which bash changes, or computes, what is assigned. A
// variable that had its value before it had the attribute may have one that it could not be
// assigned: x='a b'; declare -i x. Bash would give up what it reads.
const converting = "iluc"

// piece returns what brings the variable back where no variable has its name.
func (d declaration) piece() Piece {
	p := newPiece(kindVariable, d.name, d.text)
	letters, value := d.attributes(), d.value()
	if len(value) == 0 {
		return p
	}
	switch first := without(letters, converting+"r"); {
	case d.kind() == "a" || d.kind() == "A": // A list is an assignment alone, or behind a word that is declare as it is.
		p.steps = []step{call("declare -%s %s", first, d.name), {text: slices.Concat([]byte(d.name), value), assignment: true}}
		if first == letters {
			return p
		}
	case first == letters, only(letters, converting) == "":
		return p
	default:
		p.steps = []step{call("declare -%s %s%s", orDash(first), d.name, value)}
	}
	p.steps = append(p.steps, call("declare -%s %s", letters, d.name))
	return p
}

// since returns what brings the variable back where it is as before; false if it is so already.
func (d declaration) since(before declaration) (p Piece, differs bool) {
	if bytes.Equal(d.text, before.text) {
		return Piece{}, false
	}
	p = d.piece()
	if before.name == "" {
		return p, true
	}
	value, letters := d.value(), d.attributes()
	switch gone := without(before.attributes(), letters); {
	case d.kind() != before.kind() || d.has("n") || len(value) == 0:
		p.steps = slices.Insert(p.steps, 0, before.unset())
	case bytes.Equal(value, before.value()):
		p.steps = nil
		if gone != "" {
			p.steps = append(p.steps, call("declare +%s %s", gone, d.name))
		}
		if added := without(letters, before.attributes()); added != "" {
			p.steps = append(p.steps, call("declare -%s %s", added, d.name))
		}
	default:
		if off := gone + only(without(before.attributes(), gone), converting); off != "" {
			p.steps = slices.Insert(p.steps, 0, call("declare +%s %s", off, d.name))
		}
	}
	return p, true
}

// attributesSince returns what gives the variable the attributes that it has, whatever its
// value; false if it has them already.
func (d declaration) attributesSince(before declaration) (p Piece, differs bool) {
	added := without(d.attributes(), before.attributes())
	p = newPiece(kindVariable, d.name, d.text)
	p.steps = []step{call("declare -%s %s", added, d.name)}
	return p, added != ""
}

// unset is the command by which the variable goes.
func (d declaration) unset() step {
	option := "-v"
	if d.has("n") {
		option = "-n" // Else it is the variable that the reference leads to.
	}
	return call("unset %s %s", option, d.name)
}

func orDash(letters string) string {
	if letters == "" {
		return "-"
	}
	return letters
}

// sameMap reports whether two declarations of an associative array differ in the order of
// the elements at most: bash turns the order round within each slot of its hash table.
func (d declaration) sameMap(other declaration) bool {
	if !d.has("A") || len(d.text) != len(other.text) {
		return false
	}
	a, b := bytes.Clone(d.text), bytes.Clone(other.text)
	slices.Sort(a)
	slices.Sort(b)
	return bytes.Equal(a, b)
}

// declarations takes the output of "declare -p" apart. Other
// text is returned as declarations without a name.
func declarations(script []byte) []declaration {
	var all []declaration
	for _, text := range statements(script) {
		d := declaration{text: text}
		if words, ok := bytes.CutPrefix(text, []byte("declare -")); ok {
			_, rest, _ := bytes.Cut(words, []byte(" "))
			name, _, _ := bytes.Cut(bytes.TrimRight(rest, "\n"), []byte("="))
			d.name = string(name)
		}
		all = append(all, d)
	}
	return all
}
