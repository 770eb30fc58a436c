package keys

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// named is a key that has a name.
type named struct {
	name    string   // as Names lists it
	aliases []string // what others call it
	seq     sequence // of a key without a character
	char    rune     // of one with a character
	mods    modifier // held by the name already
}

// table has all keys, in the order of help texts.
var table = slices.Concat([]named{
	{name: "Enter", aliases: []string{"Return"}, char: '\r'},
	{name: "Tab", char: '\t'},
	{name: "BTab", aliases: []string{"BackTab"}, char: '\t', mods: shift},
	{name: "Esc", aliases: []string{"Escape"}, char: '\x1b'},
	{name: "Space", aliases: []string{"Spacebar"}, char: ' '},
	{name: "Backspace", aliases: []string{"BSpace"}, char: '\x7f'}, // As kbs, and as Linux has it.
	{name: "Up", aliases: []string{"ArrowUp", "UpArrow"}, seq: sequence{form: cursorKey, code: "A"}},
	{name: "Down", aliases: []string{"ArrowDown", "DownArrow"}, seq: sequence{form: cursorKey, code: "B"}},
	{name: "Right", aliases: []string{"ArrowRight", "RightArrow"}, seq: sequence{form: cursorKey, code: "C"}},
	{name: "Left", aliases: []string{"ArrowLeft", "LeftArrow"}, seq: sequence{form: cursorKey, code: "D"}},
	{name: "Home", seq: sequence{form: cursorKey, code: "H"}},
	{name: "End", seq: sequence{form: cursorKey, code: "F"}},
	{name: "PageUp", aliases: []string{"PgUp", "PPage"}, seq: sequence{form: editingKey, code: "5"}},
	{name: "PageDown", aliases: []string{"PgDown", "PgDn", "NPage"}, seq: sequence{form: editingKey, code: "6"}},
	{name: "Insert", aliases: []string{"Ins"}, seq: sequence{form: editingKey, code: "2"}},
	{name: "Delete", aliases: []string{"Del"}, seq: sequence{form: editingKey, code: "3"}},
}, functionKeys(), keypad())

// lastFunction is as many function keys as keyboards have.
const lastFunction = 24

// functionKeys are F1 to F24. Those beyond F12 are Shift and the key that is twelve
// before, as in terminfo, where programs look. (xterm sends CSI 25 ~ and so on if a
// keyboard really has them, which terminfo's xterm-256color knows nothing of.)
func functionKeys() []named {
	codes := []sequence{
		{form: functionKey, code: "P"}, {form: functionKey, code: "Q"}, {form: functionKey, code: "R"}, {form: functionKey, code: "S"},
	}
	// The gaps are where the keys of the VT220 had a gap.
	for _, code := range []string{"15", "17", "18", "19", "20", "21", "23", "24"} {
		codes = append(codes, sequence{form: editingKey, code: code})
	}
	var keys []named
	for i := range lastFunction {
		key := named{name: "F" + strconv.Itoa(i+1), seq: codes[i%len(codes)]}
		if i >= len(codes) {
			key.mods = shift
		}
		keys = append(keys, key)
	}
	return keys
}

// isFunctionKey reports whether a name is F and a number of one or two digits, which
// need not be that of a key.
func isFunctionKey(name string) bool {
	const digits = 2
	number, ok := strings.CutPrefix(strings.ToUpper(name), "F")
	return ok && number != "" && len(number) <= digits && strings.Trim(number, "0123456789") == ""
}

// keypad has the keys of the numeric keypad, with the names of tmux.
func keypad() []named {
	key := func(typed, code string, aliases ...string) named {
		return named{name: "KP" + typed, aliases: aliases, seq: sequence{form: keypadKey, code: code, typed: typed}}
	}
	var keys []named
	for digit := range 10 {
		keys = append(keys, key(strconv.Itoa(digit), string(rune('p'+digit))))
	}
	enter := key("\r", "M")
	enter.name = "KPEnter"
	return append(keys,
		key("*", "j", "KPMultiply"), key("+", "k", "KPPlus", "KPAdd"), key(",", "l", "KPComma"), key("-", "m", "KPMinus", "KPSubtract"),
		key(".", "n", "KPDecimal"), key("/", "o", "KPDivide"), key("=", "X", "KPEqual"), enter)
}

// Names returns the names of the keys, for help texts and completion: one for each,
// without modifiers, and without the keys of single characters. The slice is the
// caller's.
func Names() []string {
	names := make([]string, len(table))
	for i, key := range table {
		names[i] = key.name
	}
	return names
}

// byName finds keys by all of their names, in lower case.
var byName = sync.OnceValue(func() map[string]named {
	m := map[string]named{}
	for _, key := range table {
		for _, name := range append([]string{key.name}, key.aliases...) {
			m[strings.ToLower(name)] = key
		}
	}
	return m
})
