package jobs

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/limpet-sh/limpet/internal/rolling"
)

const (
	scanAtOnce  = 64 << 10
	longestLine = 16 << 10 // A longer one comes in parts.
)

// scanner reads a log line by line, and knows how far it is.
type scanner struct {
	at   int64
	line int64 // the number of the line there, from 1
}

// scan calls each with every line that is whole, and at the end of a job, which is
// last, with what is behind them, until it returns false.
func (s *scanner) scan(log rolling.View, last bool, each func(Match) bool) error {
	for s.at < log.End {
		b, off, err := log.Read(s.at, scanAtOnce)
		if err != nil {
			return err
		}
		if off > s.at { // What was between was dropped.
			s.at, s.line = off, max(s.line, log.FirstLine+1)
		}
		end := off + int64(len(b))
		final := last && end == log.End || end < log.End && len(b) < scanAtOnce // There is no more of this line.
		used, goOn := s.lines(b, final, each)
		if !goOn || used == 0 {
			return nil
		}
	}
	return nil
}

// lines is scan for what was read. It returns how many bytes were lines.
func (s *scanner) lines(b []byte, final bool, each func(Match) bool) (used int, goOn bool) {
	for len(b) > 0 {
		line, rest := cutLine(b)
		whole := line[len(line)-1] == '\n'
		if !whole && !final && len(line) < longestLine {
			break
		}
		m := Match{Number: s.line, Offset: s.at, Text: string(plain(bytes.TrimRight(line, "\r\n")))}
		s.at += int64(len(line))
		if used += len(line); whole {
			s.line++
		}
		if !each(m) {
			return used, false
		}
		b = rest
	}
	return used, true
}

// find reports whether the line matches, or a part of it between carriage returns: each
// was a line of its own for who looked at a terminal. It returns that part.
func find(re *regexp.Regexp, line string) (string, bool) {
	for part := range strings.SplitSeq(line, "\r") {
		if re.MatchString(part) {
			return shorten(part), true
		}
	}
	return "", false
}
