// Package exact carries strings in JSON byte for byte. File names, arguments and variables are bytes, and encoding/json
// makes U+FFFD of those that are no UTF-8: another file would be meant then.
package exact

import (
	"encoding/json"
	"unicode/utf8"
)

// String is a string in JSON if it is UTF-8, and else an object with its bytes in base64.
type String string

type object struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON implements [json.Marshaler].
func (s String) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(s)) {
		return json.Marshal(string(s))
	}
	return json.Marshal(object{[]byte(s)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *String) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var o object
		err := json.Unmarshal(b, &o)
		*s = String(o.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(s))
}

// Bytes returns those of a string that is no UTF-8, and else nil: for a field beside one that has to stay a plain string.
func Bytes(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

// Strings are an array of them.
type Strings []string

// MarshalJSON implements [json.Marshaler].
func (s Strings) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	list := make([]String, len(s))
	for i, one := range s {
		list[i] = String(one)
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Strings) UnmarshalJSON(b []byte) error {
	var list []String
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*s = nil
	if list != nil {
		*s = make(Strings, len(list))
	}
	for i, one := range list {
		(*s)[i] = string(one)
	}
	return nil
}
