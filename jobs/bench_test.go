package jobs_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func BenchmarkStart(b *testing.B) {
	ctx := testenv.Context(b)
	r, err := jobs.Open(b.TempDir(), nil)
	require.NoError(b, err)
	defer r.Close()
	var plain, ours time.Duration
	for b.Loop() {
		began := time.Now()
		require.NoError(b, exec.Command("bash", "-c", "echo hi").Run())
		plain += time.Since(began)
		began = time.Now()
		_, err := r.Start(ctx, jobs.Spec{Command: "echo hi"})
		require.NoError(b, err)
		ours += time.Since(began)
	}
	b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "plain-us")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "ours-us")
}
