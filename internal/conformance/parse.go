package conformance

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Parse reads the rows of all *.txt files. Names must be unique, directives
// known and reasons listed: a typing error must not switch a check off.
func Parse(files fs.FS) ([]Row, error) {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil, err
	}
	var rows []Row
	seen := make(map[string]bool)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		more, err := parseFile(name, string(text))
		if err != nil {
			return nil, err
		}
		for _, row := range more {
			if seen[row.Name] {
				return nil, fmt.Errorf("conformance: %s:%d: a second row %q", row.File, row.Line, row.Name)
			}
			seen[row.Name] = true
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

const (
	nameMark      = "=== "
	directiveMark = "--- "
)

func parseFile(file, text string) ([]Row, error) {
	var rows []Row
	var script []string
	directed := false // a directive was there: the script is over
	finish := func() {
		if len(rows) > 0 {
			rows[len(rows)-1].Script = strings.Join(script, "\n")
		}
		script, directed = nil, false
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, nameMark); ok {
			finish()
			rows = append(rows, Row{Name: name, File: file, Line: i + 1})
			continue
		}
		if len(rows) == 0 {
			continue // A comment on the file.
		}
		if directive, ok := strings.CutPrefix(line, directiveMark); ok {
			if err := rows[len(rows)-1].direct(directive); err != nil {
				return nil, fmt.Errorf("conformance: %s:%d: %w", file, i+1, err)
			}
			directed = true
			continue
		}
		if directed {
			return nil, fmt.Errorf("conformance: %s:%d: script text below a directive", file, i+1)
		}
		script = append(script, line)
	}
	finish()
	return rows, nil
}

// direct obeys a directive.
func (r *Row) direct(directive string) error {
	verb, rest, _ := strings.Cut(directive, " ")
	switch verb {
	case "needs":
		var major, minor int
		if _, err := fmt.Sscanf(rest, "%d.%d", &major, &minor); err != nil {
			return fmt.Errorf("no bash version %q", rest)
		}
		r.Needs = rest
		return nil
	case "stateful":
		r.Stateful = true
		return nil
	case "piped":
		r.Piped = true
		return nil
	case "differs":
		return r.differ(rest)
	}
	return fmt.Errorf("no directive %q", directive)
}

// differ reads "SIDE: KEY in ASPECTS".
func (r *Row) differ(text string) error {
	side, rest, _ := strings.Cut(text, ": ")
	key, aspects, _ := strings.Cut(rest, " in ")
	if !slices.Contains(Sides, Side(side)) {
		return fmt.Errorf("no side %q in %q", side, text)
	}
	if _, ok := Reasons[key]; !ok {
		return fmt.Errorf("no reason %q: they are listed in reasons.go", key)
	}
	in, err := parseAspects(aspects)
	if err != nil {
		return err
	}
	if was, ok := r.Differs[Side(side)]; ok {
		return fmt.Errorf("a second reason for %s besides %q", side, was.Reason)
	}
	if r.Differs == nil {
		r.Differs = make(map[Side]Difference)
	}
	r.Differs[Side(side)] = Difference{Reason: key, In: in}
	return nil
}
