package keys

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key finds a key by its name, such as "Enter", "Ctrl-C" or "Alt-x": the package says
// how they are written. An error says what is wrong with the name, and which names
// are like it.
//
// What a terminal cannot tell from another key is that key, as in xterm: Ctrl-Enter
// is Enter, Ctrl-I is Tab, Ctrl-Shift-C is Ctrl-C. Not so where a character would be
// typed that nobody meant: there is no Ctrl-1. What Shift makes of another character
// than a letter is the keyboard's affair, so there is no Shift-1.
func Key(name string) (Input, error) {
	in, wrong := find(name)
	if wrong != "" {
		return Input{}, fmt.Errorf("keys: no key %q: %s", name, wrong)
	}
	return in, nil
}

// find returns the key, or what is wrong with the name.
func find(name string) (in Input, wrong string) {
	if c, ok := strings.CutPrefix(name, "^"); ok && len(c) == 1 {
		return caret(c)
	}
	mods, rest := cutModifiers(name)
	if key, ok := byName()[strings.ToLower(rest)]; ok {
		if twice := key.mods & mods; twice != 0 {
			return Input{}, fmt.Sprintf("%s has Shift in it: leave out one", key.name)
		}
		mods |= key.mods
		if key.seq.form != noKey {
			return Input{key: key.seq, mods: mods}, ""
		}
		return character(key.char, mods)
	}
	if r, size := utf8.DecodeRuneInString(rest); size > 0 && size == len(rest) && (r != utf8.RuneError || size > 1) {
		return character(r, mods)
	}
	return Input{}, advice(name, mods, rest)
}

// caret is "^C" and the like. There is no more to this notation than the control
// characters.
func caret(c string) (in Input, wrong string) {
	const controlled = "@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_?"
	if !strings.Contains(controlled, strings.ToUpper(c)) {
		return Input{}, "^ goes with a letter from A to Z or one of @ [ \\ ] ^ _ ?"
	}
	return character(rune(c[0]), ctrl)
}

// modifiers by their names, in lower case.
var modifiers = map[string]modifier{
	"ctrl": ctrl, "control": ctrl, "c": ctrl, "alt": alt, "meta": alt, "option": alt, "m": alt, "shift": shift, "s": shift,
}

// cutModifiers takes "Ctrl-", "C-" or "Ctrl+" off the front, any number of them.
// "C+" is none: it begins what is added up.
func cutModifiers(name string) (mods modifier, rest string) {
	for {
		i := strings.IndexAny(name, "-+")
		if i < 0 {
			return mods, name
		}
		mod, ok := modifiers[strings.ToLower(name[:i])]
		if !ok || name[i] == '+' && i == len("C") {
			return mods, name
		}
		mods |= mod
		name = name[i+1:]
	}
}

// character is a key that sends one.
func character(r rune, mods modifier) (in Input, wrong string) {
	text := string(r)
	switch r {
	case '\r', '\x1b': // The same with all but Alt.
	case '\t':
		if mods&shift != 0 {
			return Input{text: csi + "Z"}, "" // terminfo's kcbt, whatever else is held.
		}
	case '\x7f':
		if mods&ctrl != 0 {
			text = "\b" // The other of the two.
		}
	default:
		if mods&shift != 0 && r != ' ' {
			if !unicode.IsLetter(r) {
				return Input{}, "what Shift makes of it is up to the keyboard: name that character instead"
			}
			r = unicode.ToUpper(r)
			text = string(r)
		}
		if mods&ctrl != 0 {
			c, ok := control(r)
			if !ok {
				return Input{}, "terminals have no code for it, but for Ctrl with a letter from a to z, Space, or one of @ [ \\ ] ^ _ ? /"
			}
			text = string(c)
		}
	}
	if mods&alt != 0 {
		text = esc + text
	}
	return Input{text: text}, ""
}

// control returns what Ctrl makes of a character, as Xlib does, to which xterm leaves
// it. The digits are in it since the keyboards of DEC.
func control(r rune) (rune, bool) {
	const mask = 0x1f
	switch {
	case r >= '@' && r <= '~', r == ' ':
		return r & mask, true
	case r == '2':
		return 0, true
	case r >= '3' && r <= '7':
		return r - '3' + '\x1b', true
	case r == '8', r == '?':
		return '\x7f', true
	case r == '/':
		return '_' & mask, true
	}
	return 0, false
}
