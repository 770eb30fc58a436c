package approval

import "strings"

// An option is one that a command line has.
type option struct {
	name string // "n" or "line-number"
	arg  value
}

// optionSet are the options of a program that a rule knows, with what they want.
type optionSet struct {
	// short are letters: n: wants an argument, n? may have one in the same word.
	short string
	// long are names with spaces between: name= wants an argument, name? may have one behind an equals sign.
	long string
	// number: -5 is an option.
	number bool
	// first: options end at the first operand, as of env and xargs.
	first bool
	// whole: no option of the program does harm, also of those that are not in the set. A word that is not known may
	// be an option then.
	whole bool
}

const (
	none = iota
	wants
	may
	missing
)

func (s *optionSet) letter(c byte) int {
	i := strings.IndexByte(s.short, c)
	switch {
	case i < 0 || c == ':' || c == '?':
		return missing
	case i+1 < len(s.short) && s.short[i+1] == ':':
		return wants
	case i+1 < len(s.short) && s.short[i+1] == '?':
		return may
	}
	return none
}

func (s *optionSet) word(name string) int {
	for one := range strings.FieldsSeq(s.long) {
		switch {
		case one == name:
			return none
		case one == name+"=":
			return wants
		case one == name+"?":
			return may
		}
	}
	if name == "help" || name == "version" {
		return none
	}
	return missing
}

// Reasons why a command line is not known.
const (
	whyUnknownWord   = "a word whose value is not known may be an option"
	whyUnknownOption = "the option %s is not known to change nothing"
	whyMayBeNext     = "the argument of the option %s may be empty, so that the next word is it"
	whySeveral       = "the argument of the option %s may be several words"
)

// parse returns the options and operands of a command line, or why it does not know them. It knows no
// abbreviations.
func (s *optionSet) parse(args []value) (options []option, operands []value, why string) {
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.is("--"):
			return options, append(operands, args[i+1:]...), ""
		case !v.mayBeOption() || v.is("-"):
			if operands = append(operands, v); s.first {
				return options, append(operands, args[i+1:]...), ""
			}
			continue
		case v.text == "" || v.splits && v.text[0] != '-':
			if !s.whole {
				return nil, nil, whyUnknownWord
			}
			if operands = append(operands, v); s.first {
				return options, append(operands, args[i+1:]...), ""
			}
			continue
		}
		list, next, why := s.one(v)
		if why != "" {
			return nil, nil, why
		}
		options = append(options, list...)
		if !next {
			continue
		}
		if i++; i == len(args) {
			return nil, nil, "the option " + v.text + " wants an argument"
		}
		if args[i].many && !s.whole {
			return nil, nil, strings.Replace(whySeveral, "%s", v.text, 1)
		}
		options[len(options)-1].arg = args[i]
	}
	return options, operands, ""
}

// one parses a word that begins with a dash. next says that the argument of the last option is the next word.
func (s *optionSet) one(v value) (options []option, next bool, why string) {
	if v.many && !s.whole {
		return nil, false, strings.Replace(whySeveral, "%s", v.text, 1)
	}
	unknown := strings.Replace(whyUnknownOption, "%s", v.text, 1)
	if rest, ok := strings.CutPrefix(v.text, "--"); ok {
		name, arg, equals := strings.Cut(rest, "=")
		kind := s.word(name)
		if kind == missing || equals && kind == none || !v.known && !equals {
			return nil, false, unknown
		}
		a := v
		a.text, a.pattern = arg, v.pattern[min(len("--"+name+"="), len(v.pattern)):]
		return []option{{name, a}}, kind == wants && !equals, ""
	}
	if s.number && v.known && isNumber(v.text) {
		return nil, false, ""
	}
	for i := 1; i < len(v.text); i++ {
		switch s.letter(v.text[i]) {
		case missing:
			return nil, false, unknown
		case none:
			options = append(options, option{name: v.text[i : i+1]})
			continue
		case wants:
			if i+1 == len(v.text) && v.known {
				return append(options, option{name: v.text[i : i+1]}), true, ""
			}
			if i+1 == len(v.text) && !v.filled && !s.whole {
				return nil, false, strings.Replace(whyMayBeNext, "%s", v.text, 1)
			}
		}
		a := v
		a.text, a.pattern = v.text[i+1:], v.pattern[min(i+1, len(v.pattern)):]
		return append(options, option{v.text[i : i+1], a}), false, ""
	}
	if !v.known {
		return nil, false, whyUnknownWord
	}
	return options, false, ""
}
