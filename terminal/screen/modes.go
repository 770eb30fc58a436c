package screen

import (
	"fmt"
	"strconv"
)

// MouseMode is what a program wants to be told of the mouse.
type MouseMode uint8

// The modes, in the order of how much is told.
const (
	MouseOff    MouseMode = iota
	MouseX10              // presses (?9)
	MouseClick            // presses and releases (?1000)
	MouseDrag             // and motion while a button is down (?1002)
	MouseMotion           // and all other motion (?1003)
)

// Modes is what a program has set on its terminal, besides the picture. The zero value is
// that of a terminal that was just started. Modes can be compared.
type Modes struct {
	AppCursor      bool      `json:"app_cursor,omitempty"`      // the arrows send SS3 (?1)
	AppKeypad      bool      `json:"app_keypad,omitempty"`      // ESC =
	BracketedPaste bool      `json:"bracketed_paste,omitempty"` // pasted text is to be marked (?2004)
	Alternate      bool      `json:"alternate,omitempty"`       // the alternate screen is shown (?1049, ?1047, ?47)
	CursorHidden   bool      `json:"cursor_hidden,omitempty"`   // ?25
	Focus          bool      `json:"focus,omitempty"`           // focus changes are reported (?1004)
	SyncOutput     bool      `json:"sync_output,omitempty"`     // an update is half done (?2026); never for long in a sound program
	MouseSGR       bool      `json:"mouse_sgr,omitempty"`       // ?1006
	Mouse          MouseMode `json:"mouse,omitempty"`
	ModifyKeys     uint8     `json:"modify_keys,omitempty"`    // xterm's modifyOtherKeys, 0 to 2 (CSI > 4 ; n m)
	AltScrollOff   bool      `json:"alt_scroll_off,omitempty"` // the wheel is not to send arrows in the alternate screen (?1007)

	AutoWrapOff   bool   `json:"auto_wrap_off,omitempty"`  // ?7
	Origin        bool   `json:"origin,omitempty"`         // rows count from the scroll region (?6)
	Insert        bool   `json:"insert,omitempty"`         // 4
	NewLine       bool   `json:"new_line,omitempty"`       // LF is also CR (20)
	ReverseScreen bool   `json:"reverse_screen,omitempty"` // ?5
	Top           uint16 `json:"top,omitempty"`            // of the scroll region, from 1 on; 0 is the first row
	Bottom        uint16 `json:"bottom,omitempty"`         // its last row; 0 is that of the screen

	LineDrawing [2]bool `json:"line_drawing,omitzero"` // what G0 and G1 are, if not ASCII
	ShiftOut    bool    `json:"shift_out,omitempty"`   // G1 is in use

	CursorShape CursorShape `json:"cursor_shape,omitempty"`
	CursorBlink bool        `json:"cursor_blink,omitempty"`
}

// Restore returns the sequences that put a terminal that is fresh into these modes. The
// alternate screen comes first and is left empty. The cursor is at home afterwards.
func (m Modes) Restore() []byte {
	var b []byte
	dec := func(mode int, set bool) {
		final := byte('l')
		if set {
			final = 'h'
		}
		b = append(strconv.AppendInt(append(b, "\x1b[?"...), int64(mode), 10), final)
	}
	// Each is written only if it differs from what a fresh terminal has.
	on := func(mode int, set bool) {
		if set {
			dec(mode, true)
		}
	}
	on(1049, m.Alternate)
	if m.Top != 0 || m.Bottom != 0 {
		b = appendCSI(b, "", 'r', int(m.Top), int(m.Bottom))
	}
	on(6, m.Origin)
	if m.Alternate || m.Origin {
		b = append(b, "\x1b[H"...)
	}
	if m.AutoWrapOff {
		dec(7, false)
	}
	if m.Insert {
		b = append(b, "\x1b[4h"...)
	}
	if m.NewLine {
		b = append(b, "\x1b[20h"...)
	}
	on(5, m.ReverseScreen)
	for i, drawing := range m.LineDrawing {
		if drawing {
			b = append(b, 0x1b, "()"[i], '0')
		}
	}
	if m.ShiftOut {
		b = append(b, 0x0e)
	}
	on(1, m.AppCursor)
	if m.AppKeypad {
		b = append(b, "\x1b="...)
	}
	on(2004, m.BracketedPaste)
	on(1004, m.Focus)
	if m.AltScrollOff {
		dec(1007, false)
	}
	if m.Mouse != MouseOff && m.Mouse <= MouseMotion {
		dec([...]int{0, 9, 1000, 1002, 1003}[m.Mouse], true)
	}
	on(1006, m.MouseSGR)
	if m.ModifyKeys != 0 {
		b = appendCSI(b, ">", 'm', 4, int(m.ModifyKeys))
	}
	if n := m.cursorStyle(); n != 0 {
		b = appendCSI(b, "", 'q', n)
		b = append(b[:len(b)-1], " q"...)
	}
	if m.CursorHidden {
		dec(25, false)
	}
	on(2026, m.SyncOutput)
	return b
}

// check returns what of the modes cannot be so on a screen of so many rows.
func (m Modes) check(rows int) error {
	switch {
	case m.Mouse > MouseMotion:
		return fmt.Errorf("there is no mouse mode %d", m.Mouse)
	case m.ModifyKeys > 2:
		return fmt.Errorf("there is no way %d to modify keys", m.ModifyKeys)
	case m.CursorShape > CursorBar:
		return fmt.Errorf("there is no shape %d of a cursor", m.CursorShape)
	case int(m.Top) > rows, int(m.Bottom) > rows, m.Bottom != 0 && m.Top >= m.Bottom:
		return fmt.Errorf("rows %d to %d are no part of %d rows", m.Top, m.Bottom, rows)
	}
	return nil
}

// cursorStyle is the number that DECSCUSR has for the cursor.
func (m Modes) cursorStyle() int {
	n := int(m.CursorShape)*2 + 2
	if m.CursorBlink {
		n--
	}
	if n == 2 {
		return 0 // The zero Modes are the terminal's own choice.
	}
	return n
}

// appendCSI appends a sequence. Zeros at the end are left out, as they are the default.
func appendCSI(b []byte, prefix string, final byte, params ...int) []byte {
	b = append(append(b, "\x1b["...), prefix...)
	for len(params) > 0 && params[len(params)-1] == 0 {
		params = params[:len(params)-1]
	}
	for i, p := range params {
		if i > 0 {
			b = append(b, ';')
		}
		if p != 0 {
			b = strconv.AppendInt(b, int64(p), 10)
		}
	}
	return append(b, final)
}
