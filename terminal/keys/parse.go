package keys

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse returns what to type for the arguments of a command line, as "tmux
// send-keys" has them: one that [Key] knows is that key, every other is text. There
// is nothing typed between them. So Parse("make", "Enter") runs make.
//
// Unlike tmux, it types nothing that only looks like a key, since that could not be
// taken back. It is an error with the names that are like it:
//
//   - a modifier and a name that no key has, such as "Ctrl-Foo", or with which it has
//     no code, such as "Ctrl-1". With anything in it that no name has, such as a space
//     or a dot, it is text: "Ctrl-C stops it", "c-ares.h";
//   - a key of which the modifier is misspelt, such as "Ctl-C", or that of another
//     system, such as "Cmd-C";
//   - F and one or two digits, such as "F99".
//
// Words are keys in lower case as well: "end" is the key. Text that would be a key,
// or an error, is typed by [Text]; or in two arguments, which makes it text here.
func Parse(args ...string) ([]Input, error) {
	inputs := make([]Input, 0, len(args))
	for _, arg := range args {
		in, wrong := find(arg)
		if wrong == "" {
			inputs = append(inputs, in)
			continue
		}
		if head, meant := meantAsKey(arg); meant {
			return nil, fmt.Errorf("keys: no key %q: %s; if it is text, give it in two parts: %q %q", arg, wrong, arg[:head], arg[head:])
		}
		inputs = append(inputs, Text(arg))
	}
	return inputs, nil
}

// meantAsKey reports whether an argument that is no key was to be one, and where it
// may be cut in two that are none.
func meantAsKey(arg string) (head int, meant bool) {
	if mods, rest := cutModifiers(arg); mods != 0 {
		return strings.IndexAny(arg, "-+"), utf8.RuneCountInString(rest) == 1 || strings.IndexFunc(rest, notInName) < 0
	}
	if i := strings.IndexAny(arg, "-+"); i > 0 {
		_, known := likeModifier(arg[:i])
		_, rest := cutModifiers(arg[i+1:])
		_, isKey := byName()[strings.ToLower(rest)]
		return i, known && (isKey || utf8.RuneCountInString(rest) == 1)
	}
	return len("F"), isFunctionKey(arg)
}

func notInName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-+_", r)
}
