package shell_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
)

// The parts, one by one. What they mean against a bash -c or a bare pipe is
// told by the comparisons in bench, within one run.

func benchmarkRun(b *testing.B, script string) {
	b.Helper()
	ctx := context.Background()
	sh, err := shell.Start(ctx, nil)
	require.NoError(b, err)
	defer sh.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sh.Run(ctx, script); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunBuiltin(b *testing.B)  { benchmarkRun(b, "true") }
func BenchmarkRunProgram(b *testing.B)  { benchmarkRun(b, "/bin/true") }
func BenchmarkRunPipeline(b *testing.B) { benchmarkRun(b, "true | true") }
func BenchmarkRunOutput(b *testing.B)   { benchmarkRun(b, "echo {1..1000}") }

func BenchmarkStart(b *testing.B) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		sh, err := shell.Start(ctx, nil)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, sh.Close())
		b.StartTimer()
	}
}

func BenchmarkOneshot(b *testing.B) {
	ctx := context.Background()
	runner := oneshot.New(nil)
	defer runner.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runner.Run(ctx, "true"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefaultEnv(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		shell.DefaultEnv()
	}
}
