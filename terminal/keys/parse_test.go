package keys_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/keys"
)

// sent returns what all of the inputs send.
func sent(inputs []keys.Input) string {
	var all []byte
	for _, in := range inputs {
		all = append(all, in.Encode(keys.Modes{})...)
	}
	return string(all)
}

func TestArgumentsAreKeysOrText(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, ""}, {[]string{""}, ""}, {[]string{"make test", "Enter"}, "make test\r"}, {[]string{"ls", " ", "-l", "^M"}, "ls -l\r"},
		{[]string{"C-a", "echo ", "End", "Enter"}, "\x01echo \x1b[F\r"}, {[]string{"a", "b"}, "ab"}, {[]string{"f5"}, "\x1b[15~"},
		// Text, although it begins as a key does.
		{[]string{"Ctrl-C stops it"}, "Ctrl-C stops it"}, {[]string{"c-ares.h"}, "c-ares.h"}, {[]string{"Alt-Svc: h2"}, "Alt-Svc: h2"},
		{[]string{"s/a/b/"}, "s/a/b/"}, {[]string{"C+1"}, "C+1"}, {[]string{"m+n"}, "m+n"}, {[]string{"a-b"}, "a-b"}, {[]string{"-"}, "-"},
		{[]string{"salt-lake"}, "salt-lake"}, {[]string{"F100"}, "F100"}, {[]string{"FF"}, "FF"}, {[]string{"^foo"}, "^foo"}, {[]string{"^1"}, "^1"},
		{[]string{"Entr"}, "Entr"}, {[]string{"cmd-line"}, "cmd-line"}, {[]string{"line\n"}, "line\n"}, {[]string{"\xff\xfe"}, "\xff\xfe"},
		// What is an error in one piece.
		{[]string{"Ctrl", "-Foo"}, "Ctrl-Foo"}, {[]string{"F", "99"}, "F99"},
	} {
		got, err := keys.Parse(row.args...)
		require.NoError(t, err)
		assert.Equal(t, row.want, sent(got), "%q", row.args)
		assert.Len(t, got, len(row.args))
	}
}

func TestANearMissIsNotTyped(t *testing.T) {
	for arg, want := range map[string]string{
		"Ctrl-Foo": `keys: no key "Ctrl-Foo": behind "Ctrl-" goes one character, or a name such as Enter, Up, PageUp or F5; if it is text, give it in two parts: "Ctrl" "-Foo"`,
		"Ctl-C":    `keys: no key "Ctl-C": did you mean "Ctrl-C"?; if it is text, give it in two parts: "Ctl" "-C"`,
		"F99":      `keys: no key "F99": there are F1 to F24; if it is text, give it in two parts: "F" "99"`,
	} {
		_, err := keys.Parse("text", arg, "Enter")
		assert.EqualError(t, err, want)
	}
	for _, arg := range []string{"Ctrl-", "C-Lfet", "M-PageUpp", "Shift-1", "Ctrl-1", "Ctrl-é", "Shift-F13", "Cmd-C", "Strg-C", "Crtl-Alt-Del", "Ctrl-Alr-x", "f0", "F25"} {
		_, err := keys.Parse(arg)
		assert.Error(t, err, arg)
	}
}

func FuzzParseTypesWhatItIsGiven(f *testing.F) {
	for _, arg := range []string{"Ctrl-C", "Ctl-C", "F99", "^", "^é", "C-", "M--", "Ctrl-Alt-Shift-", "Cmd+x", "\xff", "-+-+", "KP+", "ﬀ-x"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		key, keyErr := keys.Key(arg)
		got, err := keys.Parse(arg)
		switch {
		case keyErr == nil:
			require.Equal(t, []keys.Input{key}, got)
			for _, m := range []keys.Modes{{}, {AppCursor: true, AppKeypad: true, BracketedPaste: true}} {
				require.NotEmpty(t, key.Encode(m))
			}
		case err == nil:
			require.Equal(t, arg, sent(got))
		default:
			// What the error says works: there are two parts that are text.
			for i := 1; i < len(arg); i++ {
				if got, err := keys.Parse(arg[:i], arg[i:]); err == nil && sent(got) == arg {
					return
				}
			}
			t.Fatalf("%q cannot be typed", arg)
		}
	})
}
