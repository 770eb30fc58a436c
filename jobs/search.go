package jobs

import (
	"fmt"
	"regexp"
)

// Match is a line that was found.
type Match struct {
	Number int64  `json:"number"` // from 1
	Offset int64  `json:"offset"` // of its first byte
	Text   string `json:"text"`   // without its end, and without escape sequences
}

// SearchOptions say what a Search returns.
type SearchOptions struct {
	// From is the offset to begin at.
	From int64 `json:"from,omitempty"`

	// Max bounds the matches. 0 means 100.
	Max int `json:"max,omitempty"`
}

// Found is what a Search has found.
type Found struct {
	Job     Job     `json:"job"`
	Matches []Match `json:"matches"`
	More    bool    `json:"more,omitempty"`    // there are more than Max
	Dropped int64   `json:"dropped,omitempty"` // so many bytes before it were not searched, as they are not kept
}

// Search returns the lines of a job's output that match a regular expression (RE2).
func (r *Registry) Search(id, pattern string, o SearchOptions) (Found, error) {
	const op = "search"
	j, f, err := r.open(op, id)
	if err != nil {
		return Found{}, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return Found{}, &Error{Op: op, ID: id, Err: fmt.Errorf("pattern %q: %w", pattern, err)}
	}
	setDefault(&o.Max, DefaultLogLines)
	found := Found{Job: r.present(j, &f), Matches: []Match{}, Dropped: max(f.log.First-o.From, 0)}
	s := scanner{at: max(o.From, f.log.First)}
	s.line = f.lineOf(s.at)
	err = s.scan(f.log, true, func(m Match) bool {
		text, ok := find(re, m.Text)
		if !ok {
			return true
		}
		if found.More = len(found.Matches) == o.Max; found.More {
			return false
		}
		m.Text = text
		found.Matches = append(found.Matches, m)
		return true
	})
	if err != nil {
		return Found{}, &Error{Op: op, ID: id, Err: err}
	}
	return found, nil
}
