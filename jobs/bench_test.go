package jobs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/jobs"
)

// What these are compared with is in package bench: an absolute time means little.

func BenchmarkStart(b *testing.B) {
	r := open(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Start(b.Context(), jobs.Spec{Command: "true"})
		require.NoError(b, err)
	}
}

func BenchmarkPoll(b *testing.B) {
	r := open(b, nil)
	job := start(b, r, jobs.Spec{Command: "seq 1000; sleep 1000"})
	until(b, r, job.ID, "^1000$")
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Poll(job.ID, nil)
		require.NoError(b, err)
	}
}
