package screen_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/terminal/screen"
)

func TestPlainIsWhatAnEmulatorPrints(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[1;31mb\x1b[m c":                        "ab c",
		"\x1b]0;tÜ title\ax":                          "x", // 0x9c, a byte of Ü, ends no string.
		"\x1bktitle\x1b\\x":                           "x",
		"\x1bP1;2q\"1;1#0~~\n~\x1b\\x":                "x",
		"\x1b[3\n1mx":                                 "\nx",
		"\x1b]0;a\x18x":                               "x",
		"one\r\ntwo\tthree\r50%":                      "one\r\ntwo\tthree\r50%",
		"a\b\x00\x7f\x0e\ab":                          "ab",
		"a\u009b31mb\u009d0;c\u009c":                  "a31mb0;c",
		"\u202egpj.\u2066exe\u2069\u200e\u061c\ufeff": "gpj.exe",
		"👩\u200d👩\u200d👧 e\u0301 👍🏽 ❤\ufe0f 한": "👩\u200d👩\u200d👧 e\u0301 👍🏽 ❤\ufe0f 한",
		"\xff\xfea\xe6\x97": "\uFFFDa\uFFFD",
		"\x9b31m":           "\uFFFD31m",
		"\x1b[31":           "",
	} {
		assert.Equal(t, want, screen.Plain([]byte(in)), "%q", in)
	}
}

func TestPlainLinesEndAsInFiles(t *testing.T) {
	assert.Equal(t, "one\ntwo\nthree\r50%\nfour\r", screen.PlainLines([]byte("one\r\n\x1b[1mtwo\r\r\nthree\r50%\nfour\r")))
}

func FuzzPlain(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, in []byte, _, _, _ uint8) {
		start := time.Now()
		text := screen.Plain(in)
		assert.True(t, utf8.ValidString(text), "%q", text)
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool {
			return unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		}), "%q", text)
		assert.Equal(t, text, screen.Plain([]byte(text)), "there is nothing more to be taken out")
		assert.Less(t, time.Since(start), inTime)
	})
}
