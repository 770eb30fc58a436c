package keys_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/keys"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// typed returns what a key sends.
func typed(t testing.TB, name string, m keys.Modes) string {
	t.Helper()
	in, err := keys.Key(name)
	require.NoError(t, err)
	return string(in.Encode(m))
}

func TestKeysSendWhatXtermWasSeenToSend(t *testing.T) {
	file, err := os.ReadFile("testdata/xterm.tsv")
	require.NoError(t, err)
	modes := map[string]keys.Modes{"-": {}, "cursor": {AppCursor: true}, "keypad": {AppKeypad: true}}
	rows := 0
	for row := range strings.Lines(string(file)) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		rows++
		fields := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		require.Len(t, fields, 3)
		mode, ok := modes[fields[1]]
		require.True(t, ok, row)
		want, err := strconv.Unquote(fields[2])
		require.NoError(t, err, row)
		assert.Equal(t, want, typed(t, fields[0], mode), row)
	}
	assert.Greater(t, rows, 200)
}

func TestNamesMayBeWrittenAsOthersDo(t *testing.T) {
	for _, same := range [][]string{
		{"Ctrl-C", "C-c", "^C", "ctrl-c", "CTRL-C", "Control-C", "C-C", "^c", "Ctrl+C", "c-c", "Ctrl-Shift-C"},
		{"Alt-x", "M-x", "Meta-x", "alt+x", "Option-x"},
		{"Shift-Tab", "S-Tab", "BTab", "Backtab", "Ctrl-Shift-Tab"},
		{"Ctrl-Shift-Up", "C-S-Up", "Shift-Ctrl-ArrowUp", "Ctrl-Shift-UpArrow", "S-C-up", "Ctrl+Shift+Up"},
		{"Ctrl-Alt-Del", "C-M-Delete", "Alt-Ctrl-DELETE"},
		{"Enter", "Return", "^M", "Ctrl-M", "\r", "Ctrl-Enter"},
		{"PageUp", "PgUp", "PPage", "pageup"}, {"PageDown", "PgDn", "PgDown", "NPage"},
		{"Esc", "Escape", "^[", "Ctrl-[", "C-3"}, {"Ctrl-Space", "Ctrl-@", "^@", "C-2"},
		{"Backspace", "BSpace", "^?", "Ctrl-?", "C-8"}, {"Ctrl-Backspace", "^H"}, {"Ctrl-_", "Ctrl-/", "^_", "C-7"},
		{"Tab", "^I", "\t"}, {"Space", " "}, {"Shift-a", "A", "S-A", "Shift-A"}, {"Alt-A", "M-S-a"}, {"Shift-é", "É"},
		{"F13", "Shift-F1"}, {"Ctrl-F13", "Ctrl-Shift-F1"}, {"F24", "S-F12"}, {"KP+", "KPPlus", "KPAdd"},
	} {
		first, err := keys.Key(same[0])
		require.NoError(t, err)
		for _, name := range same[1:] {
			in, err := keys.Key(name)
			require.NoError(t, err)
			assert.Equal(t, first, in, "%q and %q", same[0], name)
		}
	}
}

func TestACharacterIsAKey(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "A": "A", "é": "é", "€": "€", "^": "^", "-": "-", "+": "+", "Alt--": "\x1b-", "M-+": "\x1b+", "Alt-é": "\x1bé", "^^": "\x1e", "Ctrl-Alt-c": "\x1b\x03",
	} {
		assert.Equal(t, want, typed(t, name, keys.Modes{}), name)
	}
}

func TestTheKeypad(t *testing.T) {
	app := keys.Modes{AppKeypad: true}
	for i, name := range []string{"KP0", "KP1", "KP2", "KP3", "KP4", "KP5", "KP6", "KP7", "KP8", "KP9"} {
		assert.Equal(t, strconv.Itoa(i), typed(t, name, keys.Modes{AppCursor: true}))
		assert.Equal(t, "\x1bO"+string("pqrstuvwxy"[i]), typed(t, name, app))
	}
	assert.Equal(t, "\r", typed(t, "KPEnter", keys.Modes{}))
	assert.Equal(t, "\x1bO5n", typed(t, "Ctrl-KP.", app))
}

func TestErrorsSayWhatToWrite(t *testing.T) {
	for name, want := range map[string]string{
		"":             `a key is one character, or a name such as Enter, Up, F5 or Ctrl-C`,
		"hello":        `a key is one character, or a name such as Enter, Up, F5 or Ctrl-C`,
		"\xff":         `a key is one character, or a name such as Enter, Up, F5 or Ctrl-C`,
		"Pagupp":       `did you mean "PageUp"?`,
		"Page":         `did you mean "PageUp" or "PageDown"?`,
		"Entr":         `did you mean "Enter"?`,
		"Page-Up":      `did you mean "PageUp"?`,
		"Up-Arrow":     `did you mean "Up"?`,
		"Ctrl-Foo":     `behind "Ctrl-" goes one character, or a name such as Enter, Up, PageUp or F5`,
		"Ctrl-":        `behind "Ctrl-" goes one character, or a name such as Enter, Up, PageUp or F5`,
		"C-S-Lfet":     `did you mean "C-S-Left"?`,
		"Ctl-C":        `did you mean "Ctrl-C"?`,
		"Crtl+C":       `did you mean "Ctrl+C"?`,
		"Ctrl-Sift-Up": `did you mean "Ctrl-Shift-Up"?`,
		"Strg-C":       `did you mean "Ctrl-C"?`,
		"Cmd-C":        `terminals know no Cmd, only Ctrl, Alt and Shift`,
		"Ctrl-1":       "terminals have no code for it, but for Ctrl with a letter from a to z, Space, or one of @ [ \\ ] ^ _ ? /",
		"Ctrl-é":       "terminals have no code for it, but for Ctrl with a letter from a to z, Space, or one of @ [ \\ ] ^ _ ? /",
		"Shift-1":      "what Shift makes of it is up to the keyboard: name that character instead",
		"Shift-F13":    "F13 has Shift in it: leave out one",
		"^1":           "^ goes with a letter from A to Z or one of @ [ \\ ] ^ _ ?",
		"F99":          "there are F1 to F24",
	} {
		_, err := keys.Key(name)
		assert.EqualError(t, err, "keys: no key "+strconv.Quote(name)+": "+want)
	}
}

func TestEveryNameIsAKey(t *testing.T) {
	names := keys.Names()
	assert.Contains(t, names, "F20")
	assert.Contains(t, names, "PageUp")
	names[0] = "spoilt"
	sent := map[string]string{}
	for _, name := range keys.Names() {
		b := typed(t, name, keys.Modes{AppKeypad: true})
		assert.Empty(t, sent[b], "%s sends what %s does", name, sent[b])
		sent[b] = name
		assert.NotEmpty(t, b)
	}
}

func TestTextIsTypedAsItIs(t *testing.T) {
	for _, s := range []string{"", "Enter", "a\nb\r\n", "\x1b[201~", "\xff\x00"} {
		assert.Equal(t, s, string(keys.Text(s).Encode(keys.Modes{AppCursor: true, BracketedPaste: true})))
	}
	assert.Empty(t, keys.Input{}.Encode(keys.Modes{}))
}

func TestAPasteIsMarkedAndHasNoControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain €": "plain €", "a\nb\r\nc\rd\n\re": "a\rb\rc\rd\r\re", "\tx": "\tx",
		"\x1b[201~rm": " [201~rm", "\x1b\x1b[201~[201~": "  [201~[201~", "\x1b[20\x1b[201~1~": " [20 [201~1~", "ends\x1b": "ends ",
		"\x03\x04\x1a\x00\x7f\b\f": "       ", "\u009b201~": " 201~", "\x9b201~": " 201~", "\xff\xe2\x82": "\xff\xe2 ", "\xc2\r\n\x9b": "\xc2\r ",
	} {
		in := keys.Paste(text)
		assert.Equal(t, want, string(in.Encode(keys.Modes{})), "%q", text)
		assert.Equal(t, "\x1b[200~"+want+"\x1b[201~", string(in.Encode(keys.Modes{BracketedPaste: true})), "%q", text)
	}
}

func FuzzNothingEndsAPasteEarly(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\x1b[201~", "\x1b\x1b[201~[201~", "\u009b201~", "\xc2\x1b\x9b", "\x9b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := keys.Paste(s).Encode(keys.Modes{BracketedPaste: true})
		body, ok := bytes.CutPrefix(b, []byte("\x1b[200~"))
		require.True(t, ok)
		body, ok = bytes.CutSuffix(body, []byte("\x1b[201~"))
		require.True(t, ok)
		for _, c := range body {
			require.False(t, c < ' ' && c != '\t' && c != '\r' || c == 0x7f, "%q", body)
		}
		for rest := string(body); rest != ""; {
			r, size := utf8.DecodeRuneInString(rest)
			if size == 1 {
				r = rune(rest[0]) // Also if it is no UTF-8.
			}
			require.False(t, r >= 0x80 && r <= 0x9f, "%q", body)
			rest = rest[size:]
		}
		require.Equal(t, body, keys.Paste(s).Encode(keys.Modes{}))
		require.Equal(t, body, keys.Paste(string(body)).Encode(keys.Modes{}), "a paste of what is clean is the same")
		// What can be seen of it is all there.
		seen := func(s string) string {
			return strings.Map(func(r rune) rune {
				if r <= ' ' || r >= 0x7f && r <= 0x9f || r == '\ufffd' {
					return -1
				}
				return r
			}, s)
		}
		require.Equal(t, seen(s), seen(string(body)))
	})
}
