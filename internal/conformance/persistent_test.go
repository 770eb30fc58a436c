package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// TestBashPersistent runs every row as the first command of a fresh persistent
// shell; of those that TestThousandRowsInOneSession runs every eighth one outside of ./test all.
func TestBashPersistent(t *testing.T) {
	every := testenv.Repeats(20, 8, 1)
	for i, row := range rows(t) {
		if i%every > 0 && (inSession(row) || testing.Short()) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			want := oracle(t, row)
			sh := start(t, freshDir(t, row))
			judge(t, conformance.Persistent, row, want, answer(t, sh, row, ""))
		})
	}
}

// start starts a shell with nothing in its environment.
func start(t *testing.T, dir string) *shell.PersistentShell {
	t.Helper()
	sh, err := shell.Start(context.Background(), &shell.Options{Env: []string{}, Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}
