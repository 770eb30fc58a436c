package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/terminal"
)

// Whether a command wants one terminal, or several.
const (
	oneTerm   = "wants the id of a terminal"
	someTerms = "wants the ids of terminals"
)

// termOf returns what is known of the terminal that is meant, which may be said by a part
// of its id.
func (f *termFlags) termOf(ctx context.Context, cmd *cobra.Command, p termPlace, said string) (terminal.Info, error) {
	if said == "" {
		return terminal.Info{}, usagef(cmd, `"" is no id; is a variable empty?`)
	}
	all, err := p.list(ctx)
	if err != nil {
		return terminal.Info{}, err
	}
	var meant []terminal.Info
	ids, near := []string{}, []string{}
	for _, info := range all {
		switch {
		case info.ID == said:
			return info, nil
		case abbreviates(said, info.ID):
			meant = append(meant, info)
			ids = append(ids, info.ID)
		case resembles(said, info.ID):
			near = append(near, info.ID)
		}
	}
	switch {
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) > 1:
		return terminal.Info{}, usagef(cmd, "%q means %d terminals: %s; write more of the one that is meant", said, len(meant), noun.Some(ids))
	}
	hint := "limpet term list" + sameWhere(cmd) + " has those that there are"
	if len(near) > 0 {
		hint = "is it one of these? " + noun.Some(near)
	}
	return terminal.Info{}, fmt.Errorf("%q: %w in %s: it never was, or was forgotten; %s", said, terminal.ErrNotFound, p, hint)
}

// termsOf is termOf for several, of which each comes once.
func (f *termFlags) termsOf(ctx context.Context, cmd *cobra.Command, p termPlace, said []string) ([]terminal.Info, error) {
	var infos []terminal.Info
	for _, s := range said {
		info, err := f.termOf(ctx, cmd, p, s)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(infos, func(i terminal.Info) bool { return i.ID == info.ID }) {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// resembles reports whether an id may be what was meant by a text that is no part of it:
// two letters are wrong at most, or the text is in the middle.
func resembles(said, id string) bool {
	const most = 2
	if strings.Contains(id, said) {
		return true
	}
	_, name, _ := strings.Cut(id, "-")
	program := name
	if i := strings.LastIndex(name, "-"); i >= 0 {
		program = name[:i]
	}
	for _, text := range []string{id, name, program} {
		if len(said) > most && distance(said, text) <= most {
			return true
		}
	}
	return false
}

// distance is how many letters must be changed, put in or left out (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
