package sessions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/audit"
)

func plainFrame(s *screens, cols, rows int) []string {
	var lines []string
	for _, line := range s.frame(cols, rows) {
		lines = append(lines, strings.TrimRight(ansi.Strip(line), " "))
	}
	return lines
}

func TestAScreenShowsOneSession(t *testing.T) {
	s := newScreens("There is none.")
	assert.Equal(t, []string{" limpet watch", "There is none.", "", "             Tab next  ↑↓ scroll  q quit"}, plainFrame(s, 40, 4))
	assert.False(t, s.key("\t", 2))
	for i := range 5 {
		assert.NoError(t, s.line("one", fmt.Sprint("line ", i)))
	}
	assert.NoError(t, s.line("two", "of two"))
	s.state("one", "/tmp")
	assert.Equal(t, []string{" 1 one  2 two*", "line 3", "line 4", "/tmp         Tab next  ↑↓ scroll  q quit"}, plainFrame(s, 40, 4))
	assert.False(t, s.key("\t", 2))
	assert.Equal(t, []string{" 1 one  2 two", "of two", "", "             Tab next  ↑↓ scroll  q quit"}, plainFrame(s, 40, 4))
	assert.False(t, s.key("1", 2))
	for _, row := range []struct{ key, first string }{
		{"k", "line 2"}, {"\x1b[A", "line 1"}, {"g", "line 0"}, {"k", "line 0"}, {"\x1b[B", "line 1"}, {" ", "line 2"}, {" ", "line 3"}, {"\x1b[5~", "line 2"}, {"G", "line 3"},
	} {
		assert.False(t, s.key(row.key, 2))
		assert.Equal(t, row.first, plainFrame(s, 40, 4)[1], "behind %q", row.key)
	}
	assert.False(t, s.key("k", 2))
	assert.NoError(t, s.line("one", "line 5"))
	assert.Equal(t, []string{" 1 one  2 two", "line 2", "line 3", "/tmp           2 more lines  G end  q quit"}, plainFrame(s, 42, 4), "it stays where it is")
	for _, key := range []string{"q", "\x03", "\x04", "\x1c"} {
		assert.True(t, s.key(key, 2), "%q", key)
	}
}

// Whatever the size, no line is wider, and there are not more of them.
func TestAFrameFitsItsTerminal(t *testing.T) {
	s := newScreens("There is no session yet, and this is a long line about that.")
	for round := range 3 {
		for cols := 1; cols < 60; cols += 3 {
			for rows := 1; rows < 12; rows++ {
				frame := s.frame(cols, rows)
				assert.LessOrEqual(t, len(frame), rows, "%d by %d", cols, rows)
				for _, line := range frame {
					assert.LessOrEqual(t, ansi.StringWidth(line), max(cols, 2), "%d by %d: %q", cols, rows, line) // A wide character cannot be cut.
				}
			}
		}
		for i := range 20 {
			name := fmt.Sprint("session-", i*round)
			assert.NoError(t, s.line(name, strings.Repeat("wörter 漢字 ", i)))
			s.state(name, strings.Repeat("/ordner", i))
		}
		s.key("p", 3)
		s.key("k", 3)
	}
}

func TestLinesThatAreKeptAreBounded(t *testing.T) {
	s := newScreens("")
	for i := range mostLines {
		assert.NoError(t, s.line("one", fmt.Sprint(i)))
	}
	s.key("g", 2)
	assert.Equal(t, "0", plainFrame(s, 40, 4)[1])
	for i := range mostLines + 7 {
		assert.NoError(t, s.line("one", fmt.Sprint("later ", i)))
	}
	assert.Len(t, s.pages[0].lines, mostLines+6, "they go when there are twice as many")
	assert.Equal(t, []string{"later 1", "later 2"}, plainFrame(s, 40, 4)[1:3], "who has scrolled up sees the first that there are")
	for range 5 {
		assert.NoError(t, s.line("one", strings.Repeat("x", mostBytes)))
	}
	assert.Less(t, s.pages[0].bytes, 3*mostBytes)
	for i := range mostPages + 10 {
		assert.NoError(t, s.line(fmt.Sprint("many ", i), "x"))
	}
	assert.Len(t, s.pages, mostPages)
	assert.Equal(t, "one", s.pages[s.shown].name, "the one that is looked at stays")
}

func TestTabsAreSpaces(t *testing.T) {
	s := newScreens("")
	assert.NoError(t, s.line("one", "\ta\tbcd\té\t"))
	assert.Equal(t, "        a       bcd     é", plainFrame(s, 40, 4)[1])
	assert.Equal(t, "no tab", flat("no tab"))
}

// Whoever can write to a record has written what is in it.
func TestARecordGivesNoOrdersToTheTerminal(t *testing.T) {
	s := newScreens("")
	r := recorded{s, make(map[string][]running)}
	bad := "a\x1b]52;c;eA==\x07b\x1b[2J\nc\x9b1m"
	for _, kind := range []string{"open", "begin", "refused", "question", "answer", "end", "close", bad} {
		assert.NoError(t, r.entry(audit.Entry{
			Kind: kind, Session: bad, From: bad, Script: bad, Dir: bad, Input: bad, Error: bad, Started: bad, Answer: bad, Reason: bad, Action: bad,
			Stdout: &audit.Output{Bytes: 1, Head: bad, Tail: bad, Omitted: true},
		}))
	}
	for _, line := range s.frame(60, 60) {
		left := strings.NewReplacer("\x1b[7m", "", "\x1b[m", "").Replace(line)
		assert.Equal(t, -1, strings.IndexFunc(left, unicode.IsControl), "%q", left)
	}
}

// What was typed has no end, and of what was killed there is none.
func TestARecordsStateIsWhatRunsNow(t *testing.T) {
	s := newScreens("")
	r := recorded{s, make(map[string][]running)}
	put := func(pid int, kind, action, script string, id int64) string {
		assert.NoError(t, r.entry(audit.Entry{Kind: kind, Action: action, Session: "one", PID: pid, ID: id, Script: script, Dir: "/dir"}))
		return s.pages[0].state
	}
	assert.Contains(t, put(1, "begin", "run", "make", 1), "make since ")
	assert.Contains(t, put(2, "begin", "run", "sleep", 1), "sleep since ", "another limpet counts for itself")
	assert.Contains(t, put(2, "begin", "input", "q", 2), "sleep since ")
	assert.Contains(t, put(2, "end", "run", "", 1), "make since ")
	assert.Equal(t, "/dir", put(1, "open", "", "", 0))
	assert.Empty(t, r.runs)
}

func TestKeysAreToldApart(t *testing.T) {
	var got []string
	for text := "q\x1b[A\x1b[5~ä\x1bOB\x1b"; text != ""; {
		var key string
		key, text = nextKey(text)
		got = append(got, key)
	}
	assert.True(t, slices.Equal([]string{"q", "\x1b[A", "\x1b[5~", "ä", "\x1bOB", "\x1b"}, got), "%q", got)
}
