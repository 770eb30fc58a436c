package conformance_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// leastInSession is how many rows one session must take: fewer would mean that
// rows were marked as stateful rather than understood.
const leastInSession = 1000

// TestThousandRowsInOneSession runs all rows that neither differ nor are
// stateful through one bash, one after the other: what a command answers must
// not depend on how many came before it.
func TestThousandRowsInOneSession(t *testing.T) {
	testenv.Slow(t)
	t.Run("oracle", askAhead)
	sh := start(t, t.TempDir())
	count := 0
	for _, row := range rows(t) {
		if !inSession(row) {
			continue
		}
		count++
		t.Run(row.Name, func(t *testing.T) {
			want := oracle(t, row)
			_, err := sh.Run(context.Background(), "cd -- "+freshDir(t, row))
			require.NoError(t, err)
			judge(t, conformance.Persistent, row, want, answer(t, sh, row, ""))
		})
	}
	assert.GreaterOrEqual(t, count, leastInSession)
	t.Logf("%d rows in one session", count)
}

// askAhead has bash answer the rows, several at a time: a session takes them one by one.
func askAhead(t *testing.T) {
	const bashes = 4
	all := rows(t)
	for first := range bashes {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			t.Parallel()
			for i := first; i < len(all); i += bashes {
				if inSession(all[i]) {
					oracle(t, all[i])
				}
			}
		})
	}
}

// inSession reports whether a row can be one of many in a session.
func inSession(row conformance.Row) bool {
	_, differs := row.Differs[conformance.Persistent]
	return !differs && !row.Stateful
}
