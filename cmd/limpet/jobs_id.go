package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/jobs"
)

// Whether a command wants one job, or several.
const (
	oneJob   = "wants the id of a job"
	someJobs = "wants the ids of jobs"
)

var wants = noun.Wants

// idOf returns the id of the job that is meant, which may be said by a part of it.
func idOf(cmd *cobra.Command, r jobs.Handle, said string) (string, error) {
	if said == "" {
		return "", usagef(cmd, `"" is no id; is a variable empty?`)
	}
	_, err := r.Get(said)
	if !errors.Is(err, jobs.ErrNotFound) {
		return said, err
	}
	all, err := r.List(jobs.Filter{})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, job := range all {
		if abbreviates(said, job.ID) {
			ids = append(ids, job.ID)
		}
	}
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return "", usagef(cmd, "%q means %d jobs: %s; write more of the one that is meant", said, len(ids), noun.Some(ids))
	}
	return "", fmt.Errorf("%q: %w in %s: it never was, or was forgotten; limpet jobs list%s has those that there are", said, jobs.ErrNotFound, placeOf(r), sameWhere(cmd))
}

// sameWhere are the flags of a command that say where things are, for a message that names another command.
func sameWhere(cmd *cobra.Command) (flags string) {
	for _, name := range []string{"state", "session", "on", "agents"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			flags += " --" + name + " " + quoted([]string{flag.Value.String()})
		}
	}
	return flags
}

// placeOf is where jobs are, for messages.
func placeOf(r jobs.Handle) string {
	if in, ok := r.(interface{ Dir() string }); ok {
		return in.Dir()
	}
	return "the session"
}

// idsOf is idOf for several, of which each comes once.
func idsOf(cmd *cobra.Command, r jobs.Handle, said []string) ([]string, error) {
	var ids []string
	for _, s := range said {
		id, err := idOf(cmd, r, s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// abbreviates reports whether a text is the beginning of an id, with or without
// "job-", or of its random end, or an end of the whole.
func abbreviates(said, id string) bool {
	_, name, _ := strings.Cut(id, "-")
	random := id[strings.LastIndex(id, "-")+1:]
	return strings.HasPrefix(id, said) || strings.HasPrefix(name, said) || strings.HasPrefix(random, said) || strings.HasSuffix(id, said)
}
