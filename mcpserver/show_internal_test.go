package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/limpet-sh/limpet/command"
)

func TestPlainIsWhatATerminalWouldLeave(t *testing.T) {
	for printed, want := range map[string]string{
		"":                                     "",
		"a\nb":                                 "a\nb",
		"a\r\nb\r\n":                           "a\nb\n",
		"10%\r20%\r30%\n":                      "30%\n",
		"long line\rshort\n":                   "shortline\n",
		"long line\r\x1b[Kshort\n":             "short\n",
		"long line\x1b[2K\rshort\n":            "short\n",
		"long line\r\x1b[2Kshort\n":            "short\n",
		"abcdef\r\x1b[31mx\x1b[0K\x1b[0m\n":    "x\n",
		"\x1b]0;title\x07text\n":               "text\n",
		"\x1b[1mbold\x1b[0m\ttab\n":            "bold\ttab\n",
		"\x1b[1mName: \x1b[0m":                 "Name: ",
		"a\x1b[1;31m\x1b[Kb\x1b[0K":            "ab",
		"one\rtwo":                             "two",
		"50%\r":                                "50%",
		"\xff\n":                               "�\n",
		"日本\r本\n":                              "本本\n",
		"a\n\n\nb\n":                           "a\n\n\nb\n",
		"Building 1/3\r\x1b[KBuilding 2/3\r\n": "Building 2/3\n",
	} {
		assert.Equal(t, want, plain([]byte(printed), false), "%q", printed)
	}
	assert.Equal(t, "\x1b[1ma\rb�\n", plain([]byte("\x1b[1ma\rb\xff\n"), true))
}

func TestWhatIsShownIsBoundedAndCountsWhatIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lineOf := rapid.StringMatching(`[a-zß日 ]{0,40}`)
		var all strings.Builder
		for range rapid.IntRange(0, 60).Draw(t, "lines") {
			fmt.Fprintln(&all, lineOf.Draw(t, "line"))
		}
		printed := []byte(all.String())
		o := command.Output{Head: printed, Total: int64(len(printed))}
		if cut := rapid.IntRange(0, len(printed)).Draw(t, "cut"); rapid.Bool().Draw(t, "omitted") {
			end := rapid.IntRange(cut, len(printed)).Draw(t, "end")
			o.Head, o.Tail = printed[:cut], printed[end:]
		}
		limit := rapid.IntRange(16, 2000).Draw(t, "limit")
		at := int64(-1)
		s := show(o, limit, true, func(offset int64) string { at = offset; return "HOW" })
		assert.True(t, utf8.ValidString(s.text))
		head, tail, cut := strings.Cut(s.text, fmt.Sprintf("\n[%d bytes are left out here: HOW]\n", s.omitted))
		if !cut {
			assert.Zero(t, s.omitted)
			assert.Equal(t, strings.ToValidUTF8(string(printed), "�"), s.text)
			return
		}
		// Where a rune was cut, there is a mark of three bytes.
		assert.LessOrEqual(t, len(head)+len(tail), limit+12)
		assert.GreaterOrEqual(t, at, int64(0))
		assert.Positive(t, s.omitted)
	})
}

func TestTheLastLineIsTheOneToBeSeen(t *testing.T) {
	var l lastLine
	for _, step := range []struct{ write, want string }{
		{"", ""}, {"one\n", "one"}, {"two", "two"}, {" three\n\n", "two three"}, {"1%\r2%", "2%"}, {"\n\x1b[1mbold\x1b[0m\n", "bold"},
		{strings.Repeat("x", 10000), strings.Repeat("x", 199) + "…"},
	} {
		n, err := l.Write([]byte(step.write))
		assert.NoError(t, err)
		assert.Equal(t, len(step.write), n)
		assert.Equal(t, step.want, l.String())
	}
}
