package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
)

// TestBashOneshot runs every row with one Runner, as it is meant to be used.
func TestBashOneshot(t *testing.T) {
	testenv.Slow(t)
	sh := oneshot.New(&oneshot.Options{Env: []string{}})
	t.Cleanup(func() { require.NoError(t, sh.Close()) }) // After all that run in parallel.
	for _, row := range rows(t) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			want := oracle(t, row)
			judge(t, conformance.Oneshot, row, want, answer(t, sh, row, freshDir(t, row)))
		})
	}
}
