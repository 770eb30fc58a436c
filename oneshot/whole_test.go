//go:build linux

package oneshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
)

func TestOutputThroughProcessSubstitutionsIsWhole(t *testing.T) {
	testenv.Slow(t)
	for _, row := range []struct{ script, stdout, stderr string }{
		{"exec > >(tee log) 2>&1; echo a; echo b", "a\nb\n", ""},
		{"f() { echo err >&2; }; f 2> >(sed s/^/E:/ >&2)", "", "E:err\n"},
		{"exec > >(while read -r l; do sleep 0.05; echo \"<$l>\"; done); echo a; echo b", "<a>\n<b>\n", ""},
		{"echo a > >(sed s/^/1/ > >(sed s/^/2/))", "21a\n", ""},
		{"x='exec > >(cat)'; eval \"$x\"; echo a", "a\n", ""},
	} {
		r := runner(t, &oneshot.Options{Dir: t.TempDir()})
		for range 5 {
			res, err := r.Run(testenv.Context(t), row.script)
			require.NoError(t, err)
			assert.Equal(t, row.stdout, res.Stdout.String(), row.script)
			assert.Equal(t, row.stderr, res.Stderr.String(), row.script)
			assert.Empty(t, res.Receipt.Leftover, row.script)
		}
	}
}

// A process substitution that does not end is waited for until it has been quiet for a
// moment, and a job never.
func TestWhoWritesForEverIsNotWaitedFor(t *testing.T) {
	testenv.Slow(t)
	r := runner(t, nil)
	for _, script := range []string{
		"sleep 1000 & echo hi > >(cat)",
		"exec > >(cat; sleep 1000); echo hi",
		"(sleep 1000; echo late) & echo hi",
	} {
		res, err := r.Run(testenv.Context(t), script)
		require.NoError(t, err)
		assert.Equal(t, "hi\n", res.Stdout.String(), script)
		assert.NotEmpty(t, res.Receipt.Leftover, script)
	}
}
