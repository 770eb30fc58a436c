package screen_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// asked returns the answers to what is in a stream; "-" is a request that gets none.
func asked(in []byte) []string {
	var got []string
	var s screen.Scanner
	s.Scan(in, func(q screen.Query) {
		answer := string(q.Answer(screen.Cursor{Col: 4, Row: 9}, screen.Size{Cols: 80, Rows: 24}))
		if answer == "" {
			answer = "-"
		}
		got = append(got, answer)
	})
	return got
}

// requests with their answers.
var requests = map[string]string{
	"\x1b[c": "\x1b[?62;22c", "\x1b[0c": "\x1b[?62;22c", "\x1b[>c": "\x1b[>1;10;0c", "\x1b[>0c": "\x1b[>1;10;0c",
	"\x1b[=c": "\x1bP!|00000000\x1b\\", "\x1b[>q": "\x1bP>|limpet\x1b\\", "\x1b[>0q": "\x1bP>|limpet\x1b\\",
	"\x1b[5n": "\x1b[0n", "\x1b[6n": "\x1b[10;5R", "\x1b[?6n": "\x1b[?10;5R",
	"\x1b[?2026$p": "\x1b[?2026;2$y", "\x1b[?7$p": "\x1b[?7;1$y", "\x1b[4$p": "\x1b[4;2$y", "\x1b[?12345$p": "\x1b[?12345;0$y",
	"\x1b[14t": "\x1b[4;432;720t", "\x1b[16t": "\x1b[6;18;9t", "\x1b[18t": "\x1b[8;24;80t", "\x1b[19t": "\x1b[9;24;80t",
	"\x1b]10;?\a": "\x1b]10;rgb:e5e5/e5e5/e5e5\a", "\x1b]11;?\x1b\\": "\x1b]11;rgb:0000/0000/0000\x1b\\",
	"\x1b]12;?\a": "\x1b]12;rgb:e5e5/e5e5/e5e5\a", "\x1b]4;1;?\a": "\x1b]4;1;rgb:cdcd/0000/0000\a",
	"\x1bP$qm\x1b\\": "\x1bP0$r\x1b\\", "\x1bP+q544e\x1b\\": "\x1bP0+r\x1b\\",
	"\x1b[20t": "-", "\x1b[21t": "-", "\x1b[11t": "-", "\x1b[?u": "-", "\x1b]52;c;?\a": "-", "\x1b[&u": "-", "\x1b]50;?\a": "-", "\x1b]60;?\a": "-", "\x1b]1337;ReportCellSize\a": "-",
	"\x1b]1337;RequestUpload=format=tgz\a": "-", "\x1b[?4m": "-", "\x1b[1;1;1;1;1;1*y": "-",
	"\x1b[?996n": "-", "\x1b_Gi=31,s=1,v=1,a=q,t=d;AAAA\x1b\\": "-", "\x1b]13;?\a": "-", "\x1b[x": "-",
}

// statements look like requests.
var statements = []string{
	"c", "\x1bc", "\x1b[1c", "\x1b[0n", "\x1b[3n", "\x1b[ q", "\x1b[2 q", "\x1b[!p", "\x1b[\"p", "\x1b[22t", "\x1b[23;0t", "\x1b[8;24;80t",
	"\x1b[u", "\x1b[>1u", "\x1b[<u", "\x1b[m", "\x1b[>4;2m", "\x1b]0;?\a", "\x1b]11;#000000\a", "\x1b]4;1;red\a", "\x1b]52;c;aGk=\a",
	"\x1b]8;;x?\a", "\x1b]2;\x1b\\", "\x1b]11;?\x18", "\x1bPq#0\x1b\\", "\x1b_Ga=T;AA\x1b\\", "\x1b[S", "\x1b[2S", "\x1b[6\x18n", "\x1b[<5;1n", "\x9b6n", "\u009b6n",
}

func TestRequestsAreAnswered(t *testing.T) {
	for in, want := range requests {
		assert.Equal(t, []string{want}, asked([]byte(in)), "%q", in)
		assert.Equal(t, []string{want}, asked([]byte("é"+in+"x")), "%q", in)
	}
	for _, in := range statements {
		assert.Empty(t, asked([]byte(in)), "%q", in)
	}
	assert.Equal(t, []string{"\x1b]4;1;rgb:cdcd/0000/0000\a", "\x1b]4;15;rgb:ffff/ffff/ffff\a"}, asked([]byte("\x1b]4;1;?;2;red;15;?\a")))
	assert.Equal(t, []string{"\x1b[6;5R"}, asked([]byte("\x1b[5;9r\x1b[?6h\x1b[6n")), "in origin mode")
}

func TestTheFilterTakesOnlyRequests(t *testing.T) {
	for in := range requests {
		for _, around := range []string{"", "text", "\x1b[31m", "\xc3", "\x1b]0;title", "\x1b]0;" + strings.Repeat("x", 3000), "\x1b", "\x1b[1;2"} {
			whole := around + in + "after"
			for size := 1; size <= len(in)+1; size++ {
				want := around + "after"
				if strings.Contains(around, "\x1b") && around != "\x1b[31m" {
					want = around + "\x18after" // The request would have cut it off.
				}
				assert.Equal(t, want, filtered([]byte(whole), size), "%q in pieces of %d", whole[max(len(whole)-40, 0):], size)
			}
		}
	}
	for _, in := range statements {
		assert.Equal(t, in, filtered([]byte(in), 1), "%q", in)
	}
	assert.Equal(t, "\r\nx", filtered([]byte("\x1b[\r6\nnx"), 1), "controls within stay")
}

// filtered puts a stream through a filter in pieces.
func filtered(in []byte, size int) string {
	var f screen.QueryFilter
	var out []byte
	for len(in) > 0 {
		n := min(size, len(in))
		out = f.Filter(out, in[:n])
		in = in[n:]
	}
	return string(f.Flush(out))
}

func TestTheFilterHoldsBackLittle(t *testing.T) {
	var f screen.QueryFilter
	endless := append([]byte("\x1b]11;"), bytes.Repeat([]byte("x"), 1<<20)...)
	out := f.Filter(nil, endless)
	assert.GreaterOrEqual(t, len(out), len(endless)-1024)
	assert.Equal(t, endless, f.Flush(out))
}

// No answer has anything in it that the program chose, but for numbers.
func TestAnswersHaveNoTextOfTheProgram(t *testing.T) {
	const word = "Xyzzy"
	for in := range requests {
		for i := range len(in) {
			for _, answer := range asked([]byte("\x1b]0;" + word + "\a" + word + in[:i] + word + in[i:] + in)) {
				assert.NotContains(t, answer, word)
				for _, c := range []byte(answer) {
					assert.False(t, c < ' ' && c != 0x1b && c != '\a', "%q", answer)
				}
			}
		}
	}
}

// A stream that breaks off anywhere goes on behind what was returned, by another filter.
func TestHeldIsWhereAnotherFilterGoesOn(t *testing.T) {
	all := []byte("a\x1b[31mb\x1b[cc\x1b]10;?\x07d\x1b]0;title\x1b\\e\x1bP$qm\x1b\\f\x1b[?1049hg\x1b[")
	var whole screen.QueryFilter
	want := string(whole.Flush(whole.Filter(nil, all)))
	for i := range all {
		var first, second screen.QueryFilter
		out := first.Filter(nil, all[:i])
		out = second.Filter(out, all[i-first.Held():])
		assert.Equal(t, want, string(second.Flush(out)), "cut at %d", i)
	}
}
