package main

import (
	"errors"
	"slices"

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
	if said != "" {
		if _, err := r.Get(said); !errors.Is(err, jobs.ErrNotFound) {
			return said, err
		}
	}
	all, err := r.List(jobs.Filter{})
	if err != nil {
		return "", err
	}
	ids := make([]string, len(all))
	for i, job := range all {
		ids[i] = job.ID
	}
	return aJob.pick(cmd, said, ids, placeOf(r))
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
