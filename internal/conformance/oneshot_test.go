package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
)

// TestBashOneshot runs every row with one Runner, as it is meant to be used; every sixth
// one outside of ./test all, since most of it is bash's own doing.
func TestBashOneshot(t *testing.T) {
	testenv.Slow(t)
	sh := oneshot.New(&oneshot.Options{Env: []string{}})
	t.Cleanup(func() { require.NoError(t, sh.Close()) }) // After all that run in parallel.
	every := testenv.Repeats(0, 6, 1)
	for i, row := range rows(t) {
		if _, differs := row.Differs[conformance.Oneshot]; !differs && i%every > 0 {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			want := oracle(t, row)
			judge(t, conformance.Oneshot, row, want, answer(t, sh, row, freshDir(t, row)))
		})
	}
}
