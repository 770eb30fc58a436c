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

// TestThousandRowsInOneSession runs rows that neither differ nor are
// stateful through one bash, one after the other: what a command answers must
// not depend on how many came before it. In ./test all they are all that there are, else every third one.
func TestThousandRowsInOneSession(t *testing.T) {
	testenv.Slow(t)
	var in []conformance.Row
	for i, row := range rows(t) {
		if inSession(row) && i%testenv.Repeats(0, 3, 1) == 0 {
			in = append(in, row)
		}
	}
	assert.GreaterOrEqual(t, len(in), leastInSession)
	t.Run("oracle", func(t *testing.T) { askAhead(t, in) })
	sh := start(t, t.TempDir())
	for _, row := range in {
		t.Run(row.Name, func(t *testing.T) {
			want := oracle(t, row)
			_, err := sh.Run(context.Background(), "cd -- "+freshDir(t, row))
			require.NoError(t, err)
			judge(t, conformance.Persistent, row, want, answer(t, sh, row, ""))
		})
	}
	t.Logf("%d rows in one session", len(in))
}

// askAhead has bash answer the rows, several at a time: a session takes them one by one.
func askAhead(t *testing.T, rows []conformance.Row) {
	const bashes = 4
	for first := range bashes {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			t.Parallel()
			for i := first; i < len(rows); i += bashes {
				oracle(t, rows[i])
			}
		})
	}
}

// inSession reports whether a row can be one of many in a session.
func inSession(row conformance.Row) bool {
	_, differs := row.Differs[conformance.Persistent]
	return !differs && !row.Stateful
}
