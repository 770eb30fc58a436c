package saved

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// withoutLarge reads a state and leaves out the declarations that have more than most bytes. It
// returns what is left, and the names of these variables. What is left may not have more than
// total bytes.
func withoutLarge(r io.Reader, most, total int) (kept []byte, names []string, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var q quoting
	start := 0 // of the statement, in kept
	size := 0  // of the statement
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return kept, names, nil
		}
		if err != nil {
			return nil, nil, err
		}
		size++
		if size <= most {
			kept = append(kept, c)
		}
		if len(kept) > total {
			return nil, nil, fmt.Errorf("ipc: a state has more than %d bytes: %w", total, fs.ErrInvalid)
		}
		inside := q.open()
		switch q.next(c); {
		case c == 0: // The next part begins.
			q = quoting{}
		case c != '\n' || inside:
			continue
		}
		if size > most {
			if all := declarations(kept[start:]); len(all) > 0 && all[0].name != "" {
				names = append(names, all[0].name)
			}
			kept = kept[:start]
			if c == 0 {
				kept = append(kept, 0)
			}
		}
		start, size = len(kept), 0
	}
}

// quoting follows the quotes of a text: "..." and $'...' with backslashes, '...' without.
type quoting struct {
	quote   byte // the quote that is open; 0: none
	literal bool // a backslash escapes nothing
	escaped bool // a backslash stands before the next byte
	last    byte
}

// open reports whether what comes next is in quotes, or behind a backslash.
func (q *quoting) open() bool { return q.quote != 0 || q.escaped }

func (q *quoting) next(c byte) {
	switch {
	case q.escaped:
		q.escaped = false
	case c == '\\' && !q.literal:
		q.escaped = true
	case c == q.quote:
		q.quote, q.literal = 0, false
	case q.quote != 0:
	case c == '"', c == '\'':
		q.quote, q.literal = c, c == '\'' && q.last != '$'
	}
	q.last = c
}

// plain returns how many bytes the text begins with that are in quotes, and do not end them: the
// value of a variable may have megabytes.
func (q *quoting) plain(text []byte) int {
	if q.quote == 0 || q.escaped {
		return 0
	}
	for n, c := range text {
		if c == q.quote || c == '\\' && !q.literal {
			return n
		}
	}
	return len(text)
}

// split splits behind a byte that is in no quotes.
func split(script []byte, behind byte) (all [][]byte) {
	var q quoting
	start := 0
	for i := 0; i < len(script); i++ {
		i += q.plain(script[i:])
		if i == len(script) {
			break
		}
		c, inside := script[i], q.open()
		if q.next(c); c == behind && !inside {
			all = append(all, script[start:i+1])
			start = i + 1
		}
	}
	if start < len(script) {
		all = append(all, script[start:])
	}
	return all
}

// quotedWords splits words that bash has quoted.
func quotedWords(script []byte) (words [][]byte) {
	for _, word := range split(script, ' ') {
		if word = bytes.TrimSuffix(word, []byte{' '}); len(word) > 0 {
			words = append(words, word)
		}
	}
	return words
}

// statements splits what bash has written of itself at the newlines that are in no
// quotes.
func statements(script []byte) [][]byte { return split(script, '\n') }
