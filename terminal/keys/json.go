package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// wired is an Input in JSON. Exactly one field is not empty, unless the Input is nothing.
type wired struct {
	Text  string `json:"text,omitempty"`
	Paste string `json:"paste,omitempty"`
	Key   string `json:"key,omitempty"`   // by its name
	Bytes []byte `json:"bytes,omitempty"` // a text that is no UTF-8
}

// MarshalJSON gives {"text": "ls"}, {"paste": "..."} or {"key": "Ctrl-Up"}.
func (in Input) MarshalJSON() ([]byte, error) {
	switch {
	case in.paste:
		return json.Marshal(struct {
			Paste string `json:"paste"` // An empty one has marks, too.
		}{in.text})
	case in.key.form != noKey:
		return json.Marshal(wired{Key: in.mods.String() + in.key.name()})
	case !utf8.ValidString(in.text):
		return json.Marshal(wired{Bytes: []byte(in.text)})
	}
	return json.Marshal(wired{Text: in.text})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (in *Input) UnmarshalJSON(b []byte) error {
	var w struct {
		wired
		Paste *string `json:"paste"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	given := 0
	for _, one := range []bool{w.Text != "", w.Paste != nil, w.Key != "", len(w.Bytes) > 0} {
		if one {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("keys: an input is one of text, paste, key and bytes, and not several")
	case w.Paste != nil:
		*in = Paste(*w.Paste)
	case w.Key != "":
		key, err := Key(w.Key)
		if err != nil {
			return err
		}
		*in = key
	default:
		*in = Text(w.Text + string(w.Bytes))
	}
	return nil
}

// String is how the modifiers are written before the name of a key.
func (m modifier) String() string {
	text := ""
	for _, one := range []struct {
		modifier
		name string
	}{{ctrl, "Ctrl-"}, {alt, "Alt-"}, {shift, "Shift-"}} {
		if m&one.modifier != 0 {
			text += one.name
		}
	}
	return text
}

// name is that of the key, without modifiers.
func (s sequence) name() string {
	for _, key := range table {
		if key.seq == s && key.mods == 0 {
			return key.name
		}
	}
	return "" // There is no other.
}
