// Package keys says which bytes are typed into a terminal: keys by their names, text
// as it is, and what is pasted. They are those that xterm sends, which is what
// programs expect where TERM is xterm-256color.
//
// A name is that of a key, or one character, behind any of Ctrl-, Alt- and Shift-:
// "Enter", "F5", "Ctrl-C", "Alt-x", "Ctrl-Shift-Up". Names of keys and modifiers are
// the same in upper and lower case; a character is not, except behind Ctrl. The
// spellings of others are known too: "C-c", "M-x" and "S-Up" of tmux and Emacs,
// "Ctrl+C", "^C", "PgUp", "Return". [Names] lists the keys.
//
// The sources are "XTerm Control Sequences"
// (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "PC-Style Function Keys",
// "VT220-Style Function Keys" and "Bracketed Paste Mode"), the terminfo of
// xterm-256color, and xterm itself: testdata has what it was seen to send.
//
// Everything here is a value, and may be used at the same time.
package keys

import "strconv"

// Modes are what the program in a terminal has asked for. The zero value is what a
// terminal has at its start.
type Modes struct {
	AppCursor      bool // DECCKM, "CSI ? 1 h": the cursor keys send SS3
	AppKeypad      bool // DECKPAM, "ESC =": the keypad sends SS3
	BracketedPaste bool // "CSI ? 2004 h": a paste has marks around it
}

// Input is one thing to type: [Key], [Text] or [Paste] makes it. The zero value is
// nothing.
type Input struct {
	text  string // what is typed, or pasted
	paste bool
	key   sequence // typed if there is no text
	mods  modifier // held with the key
}

// Text is typed as it is, whatever it is: a newline remains one, though the Enter key
// sends a carriage return, and a control character does what its key does.
func Text(s string) Input { return Input{text: s} }

// Encode returns the bytes that are sent. What they are may depend on the modes of
// that moment.
func (in Input) Encode(m Modes) []byte {
	switch {
	case in.paste:
		return encodePaste(in.text, m.BracketedPaste)
	case in.key.form != noKey:
		return []byte(in.key.encode(in.mods, m))
	default:
		return []byte(in.text)
	}
}

// modifier is a set of keys that are held. Its bits are those of the parameter that
// xterm sends, less one.
type modifier uint8

const (
	shift modifier = 1 << iota
	alt
	ctrl
)

// The beginnings of what function keys send.
const (
	esc = "\x1b"
	csi = esc + "["
	ss3 = esc + "O"
)

// sequence is what a key sends that has no character.
type sequence struct {
	form  form
	code  string
	typed string // on the keypad: what it sends as long as nobody asks for more
}

type form uint8

const (
	noKey       form = iota
	cursorKey        // CSI code; SS3 code for AppCursor; CSI 1 ; modifiers code
	functionKey      // SS3 code; CSI 1 ; modifiers code
	editingKey       // CSI code ~; CSI code ; modifiers ~
	keypadKey        // typed; SS3 code for AppKeypad; SS3 modifiers code
)

func (s sequence) encode(mods modifier, m Modes) string {
	held := strconv.Itoa(int(mods) + 1)
	switch s.form {
	case cursorKey, functionKey:
		switch {
		case mods != 0:
			return csi + "1;" + held + s.code
		case s.form == cursorKey && !m.AppCursor:
			return csi + s.code
		}
		return ss3 + s.code
	case editingKey:
		if mods != 0 {
			return csi + s.code + ";" + held + "~"
		}
		return csi + s.code + "~"
	case keypadKey:
		switch {
		case !m.AppKeypad:
			return s.typed // Whatever is held.
		case mods != 0:
			return ss3 + held + s.code
		}
		return ss3 + s.code
	}
	return ""
}
