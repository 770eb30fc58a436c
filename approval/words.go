package approval

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// value is what is known of one word of a command when it runs.
type value struct {
	// text is the whole text if known, and else the text that it certainly begins with. A tilde or $HOME at the
	// beginning is "~", and home is set.
	text  string
	known bool
	home  bool
	// many says that it may become no word, or several. noDash says that it does not begin with - or +,
	// although text is empty.
	many, noDash bool
	// splits says that the value may become several words, and that a word behind the first may begin with a dash. The names that a pattern finds
	// all begin as the pattern does. solid says that a variable with the value is one word, also without quotes and if the word is not known.
	splits, solid bool
	// filled says that something follows text for certain, if that is not all.
	filled bool
	// numeric says that it is a number, although it may not be known which.
	numeric bool
	// pattern is the text for rules that look for paths: patterns as they stand, and hidden for what is not known.
	pattern  string
	from, to int          // bytes of the whole script
	node     *syntax.Word // nil if it was made here
}

// hidden stands in a pattern for text that is not known.
const hidden = "\x01"

// mayBeOption reports whether the value, or one of the words that it may become, may begin with a dash.
func (v value) mayBeOption() bool {
	if v.splits {
		return true
	}
	if v.text != "" {
		return v.text[0] == '-'
	}
	return !v.known && !v.noDash
}

// is reports whether the value is that text, and no other.
func (v value) is(text string) bool { return v.known && !v.many && v.text == text && !v.home }

// number reports whether the value can only be a number: its digits are all that an expression can see.
func (v value) number() bool { return v.known && isOperand(v.text) }

// isOperand reports whether a text is a number in arithmetic, where 08 is an error.
func isOperand(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return isNumber(text) && (digits[0] != '0' || !strings.ContainsAny(digits, "89"))
}

func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != "" && len(text) < 19
}

// expandedMax bounds the bytes of variables that become parts of words in a script: where each variable is twice the one before it, a few lines
// would fill the memory. A script with more asks.
const expandedMax = 1 << 20

// bracesMax bounds the words that one word with braces becomes.
const bracesMax = 64

// words returns the values of words, and adds findings about what is expanded in them.
func (w *walker) words(words []*syntax.Word) (values []value) {
	for _, word := range words {
		values = append(values, w.fields(word)...)
	}
	return values
}

// fields returns the values that a word of a command becomes.
func (w *walker) fields(word *syntax.Word) []value {
	w.expansions(word.Parts, false)
	copied := *word
	if !syntax.SplitBraces(&copied) {
		return w.parted(word)
	}
	var values []value
	from, to := w.node(word)
	tooMany := func() []value {
		if !onlyCounts(copied.Parts) {
			w.addAt(KindExpansion, from, to, Ask, ruleUnreadable, "its braces make more words than are looked at")
		}
		v := w.value(&syntax.Word{Parts: copied.Parts})
		v.many, v.from, v.to, v.node = true, from, to, word
		return []value{v}
	}
	if w.posix {
		w.addAt(KindExpansion, from, to, Ask, ruleExpansion, "some shells expand the braces, and others do not")
	}
	if hasManyBraces(copied.Parts) {
		return tooMany()
	}
	for one := range expand.BracesSeq(nil, &copied) {
		if len(values) >= bracesMax || one == nil {
			return tooMany()
		}
		for _, v := range w.parted(one) {
			if v.is("") && !hasQuotes(one.Parts) {
				v.known, v.many = false, true // It is no word.
			}
			v.from, v.to, v.node = from, to, word
			values = append(values, v)
		}
	}
	return values
}

func hasQuotes(parts []syntax.WordPart) bool {
	return slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		_, literal := part.(*syntax.Lit)
		return !literal
	})
}

// hasManyBraces reports whether a word becomes more than bracesMax, or has more than so many pairs of braces: to expand those takes long before the
// first word is there.
func hasManyBraces(parts []syntax.WordPart) bool {
	beside, all := 0, 0
	var count func(parts []syntax.WordPart)
	count = func(parts []syntax.WordPart) {
		for _, part := range parts {
			if braces, ok := part.(*syntax.BraceExp); ok {
				all++
				for _, word := range braces.Elems {
					count(word.Parts)
				}
			}
		}
	}
	for _, part := range parts {
		if braces, ok := part.(*syntax.BraceExp); ok && !(braces.Sequence && braces.Elems[0].Lit() == braces.Elems[1].Lit()) { // {a..a} is one word.
			beside++
		}
	}
	count(parts)
	return 1<<min(beside, 30) > bracesMax || all >= bracesMax
}

// onlyCounts reports whether all braces are ranges of numbers.
func onlyCounts(parts []syntax.WordPart) bool {
	return !slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		braces, ok := part.(*syntax.BraceExp)
		return ok && (!braces.Sequence || slices.ContainsFunc(braces.Elems, func(word *syntax.Word) bool { return !isNumber(word.Lit()) }))
	})
}

// word is fields for a word that braces do not split: in an assignment, a redirection, a [[.
func (w *walker) word(word *syntax.Word) value {
	if word == nil {
		return value{known: true}
	}
	w.expansions(word.Parts, false)
	return w.value(word)
}

// value returns what is known of a word that bash does not split. It adds no findings.
func (w *walker) value(word *syntax.Word) value {
	return w.build(word, false).value
}

// build puts the value of a word together. splitting: it has gaps.
func (w *walker) build(word *syntax.Word, splitting bool) builder {
	b := builder{w: w, value: value{known: true, node: word}, splitting: splitting}
	if len(word.Parts) > 0 {
		b.from, b.to = w.node(word)
	}
	b.parts(word.Parts, false)
	b.numeric = w.numeric(word.Parts)
	b.value.text, b.value.pattern = string(b.text), string(b.pattern)
	return b
}

// builder puts the value of a word together, which may be as long as a script.
type builder struct {
	w *walker
	value
	text, pattern []byte // those of value
	splitting     bool   // the shell splits the word: see gap
	guessed       bool   // a part of it is not known
}

func (b *builder) literal(text string) {
	if b.known {
		b.text = append(b.text, text...)
	}
	b.filled = b.filled || !b.known && text != ""
	b.pattern = append(b.pattern, text...)
}

// unknown is for a part whose text is not known. noDash: it does not begin with a dash.
func (b *builder) unknown(noDash, many bool) {
	if b.known && len(b.text) == 0 {
		b.noDash = noDash
	}
	b.known, b.guessed = false, true
	b.many = b.many || many
	b.pattern = append(b.pattern, hidden...)
}

func (b *builder) parts(parts []syntax.WordPart, quoted bool) {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if quoted {
				b.literal(unquoteDouble(part.Value))
			} else {
				b.unquoted(part.Value, i == 0, i == len(parts)-1)
			}
		case *syntax.SglQuoted:
			text, ok := part.Value, true
			if part.Dollar {
				text, ok = unquoteDollar(part.Value)
			}
			if !ok {
				b.unknown(false, false)
				continue
			}
			b.literal(text)
		case *syntax.DblQuoted:
			if part.Dollar && b.w.translates() {
				b.unknown(false, false) // A translation may be anything.
				continue
			}
			b.parts(part.Parts, true)
		case *syntax.ParamExp:
			b.parameter(part, quoted)
		case *syntax.CmdSubst:
			if counts(part) { // A number, or nothing where the program fails.
				b.unknown(false, !quoted && len(b.text) == 0)
				continue
			}
			b.split(!quoted)
		case *syntax.ArithmExp:
			b.unknown(false, false)
			b.filled = true
		case *syntax.ProcSubst:
			b.literal("/dev/fd/")
			b.unknown(true, false)
		default: // ExtGlob, BraceExp.
			b.unknown(false, true)
		}
	}
}

// unquoted is for text outside of quotes. first: it begins the word; last: it ends it.
func (b *builder) unquoted(text string, first, last bool) {
	if first && strings.HasPrefix(text, "~") {
		user, rest, slash := strings.Cut(text[1:], "/")
		switch {
		case user == "" && (slash || last):
			b.ofHome("~", b.w.s.homeless, true, false)
			text = rest
			if slash {
				text = "/" + rest
			}
		default: // Somebody's home, ~+ or ~-: a path.
			if user == "+" || user == "-" {
				b.directory(false)
			} else {
				b.literal("/")
				b.unknown(true, false)
			}
			if text = rest; slash {
				text = "/" + rest
			}
		}
	}
	closing := strings.LastIndexByte(text, ']')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) && text[i] != '\n' {
				b.literal(text[i : i+1])
			}
		case '*', '?', '[':
			if c == '[' && last && closing < i {
				b.literal("[") // No pattern without its end.
				continue
			}
			b.unknown(false, true)
			b.pattern[len(b.pattern)-1] = c
		default:
			b.literal(text[i : i+1])
		}
	}
}

// homes are where the specification has these variables lead, as long as nobody assigns to them. That asks.
var homes = map[string]string{"HOME": "~", "XDG_STATE_HOME": "~/.local/state", "XDG_CONFIG_HOME": "~/.config"}

// isPlain reports whether an expansion is a variable's value.
func isPlain(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Excl && !p.Length
}

// replaces reports whether nothing of a path is left of a variable's value: it is another text, or a name, as in ${HOME##*/}.
func replaces(p *syntax.ParamExp) bool {
	return p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull || p.Exp.Op == syntax.RemLargePrefix && p.Exp.Word != nil && p.Exp.Word.Lit() == "*/")
}

// wholes are the operators that yield the variable's value where it is set.
var wholes = []syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull}

// cuts reports whether a part of a variable's value may be left, but for a slash at its end.
func (w *walker) cuts(p *syntax.ParamExp) bool {
	switch {
	case isPlain(p) || p.Length || replaces(p):
		return false
	case p.Exp == nil:
		return true
	}
	suffix := p.Exp.Op == syntax.RemSmallSuffix || p.Exp.Op == syntax.RemLargeSuffix
	return !slices.Contains(wholes, p.Exp.Op) && !(suffix && (p.Exp.Word == nil || w.value(p.Exp.Word).is("/")))
}

// ofHome is for the home, or what is usually in it. perhaps says that it may be another directory; noDash and many are as for unknown, then.
func (b *builder) ofHome(text string, perhaps, noDash, many bool) {
	b.home = b.home || len(b.text) == 0 && b.known
	if !perhaps {
		b.literal(text)
		return
	}
	b.unknown(noDash, many)
	b.splits = b.splits || many
	b.pattern = append(b.pattern[:len(b.pattern)-len(hidden)], text...)
}

// directory is for that where the script is, or was.
func (b *builder) directory(many bool) {
	b.literal("/")
	b.unknown(true, many)
	b.pattern = append(b.pattern[:len(b.pattern)-len("/"+hidden)], here...)
}

func (b *builder) parameter(p *syntax.ParamExp, quoted bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	plain := isPlain(p)
	switch {
	case !plain && homes[name] != "" && !p.Length && !p.Excl && !replaces(p): // The value, most often, or another.
		b.ofHome(homes[name], true, false, !quoted)
	case p.Length, plain && (name == "#" || name == "?" || name == "$"): // $! is empty in a new shell.
		b.unknown(true, false)
		b.filled = true
	case plain && homes[name] != "": // Most have no more than a HOME.
		b.ofHome(homes[name], name != "HOME" || b.w.s.homeless, false, !quoted)
	case plain && name == "PWD": // A new shell has no OLDPWD.
		b.directory(!quoted)
		b.splits = b.splits || !quoted
	case plain && b.w.has(name):
		b.variable(b.w.vars[name], quoted)
	default:
		b.filled = b.filled || plain && b.w.isNumber(name)
		b.split(!quoted || name == "@" || name == "*" || p.Index != nil || p.Excl || hasAll(p))
	}
}

// hasAll reports whether there is a $@, or all of an array, in what stands for a parameter: "${x-$@}" becomes several words, too.
func hasAll(p *syntax.ParamExp) (found bool) {
	syntax.Walk(p, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			found = found || node != p && (node.Excl || node.Param != nil && node.Param.Value == "@" || allElements(node.Index))
		}
		return !found
	})
	return found
}

// split adds an expansion whose value is not known. If many is true, the shell may make several words of the value, or none.
func (b *builder) split(many bool) {
	b.unknown(false, many)
	b.splits = b.splits || many
}

// fits counts the bytes of a variable that becomes part of a word, and asks if those are too many.
func (w *walker) fits(v value) bool { return w.expands(v, len(v.text)+len(v.pattern)) }

// expands counts bytes for a value of a variable, and asks if there are too many.
func (w *walker) expands(v value, bytes int) bool {
	if w.s.expanded += bytes; w.s.expanded <= expandedMax {
		return true
	}
	w.addAt(KindExpansion, v.from, v.to, Ask, ruleUnreadable, "its variables make more text than is looked at")
	return false
}

// variable is for the value of a variable that the script has set.
func (b *builder) variable(v value, quoted bool) {
	of := v
	if of.from, of.to = b.from, b.to; !b.w.fits(of) {
		b.split(!quoted)
		return
	}
	b.guessed = b.guessed || !v.known || !quoted && strings.ContainsAny(v.text, "*?[\\")
	if b.splitting && !quoted && strings.ContainsAny(v.pattern, " \t\n") {
		v.pattern = strings.NewReplacer(" ", gap, "\t", gap, "\n", gap).Replace(v.pattern)
	}
	if !quoted && !v.numeric && !v.solid && (!v.known || v.text == "" || strings.ContainsAny(v.text, " \t\n*?[\\")) {
		v.splits = v.splits || !v.known || strings.ContainsAny(v.text, " \t\n")
		v.known, v.many = false, true
		if !v.noDash && (strings.ContainsAny(v.text, " \t\n") || v.text != "" && strings.IndexByte("*?[\\", v.text[0]) >= 0) {
			v.text = "" // Its first piece is not the only one that may begin with a dash, and a file that a pattern finds may.
		}
	}
	if len(b.text) == 0 && b.known {
		b.home, b.noDash = v.home, v.noDash
	}
	if v.numeric || v.solid {
		v.many, v.splits = false, false
	}
	b.filled = b.filled || v.filled || !b.known && v.text != ""
	if b.known {
		b.text = append(b.text, v.text...)
	}
	b.known = b.known && v.known
	b.many = b.many || v.many && !quoted
	b.splits = b.splits || v.splits && v.many && !quoted
	b.pattern = append(b.pattern, v.pattern...)
}

// clean returns a path without . and .. and doubled slashes; "" stays.
func clean(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}
