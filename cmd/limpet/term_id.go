package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

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
	all, err := p.list(ctx)
	if err != nil {
		return terminal.Info{}, err
	}
	ids := make([]string, len(all))
	for i, info := range all {
		ids[i] = info.ID
	}
	id, err := aTerminal.pick(cmd, said, ids, p.String())
	if err != nil {
		return terminal.Info{}, err
	}
	return all[slices.Index(ids, id)], nil
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
