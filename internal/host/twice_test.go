package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// Two clients ask for a command of one id at once, each by a connection of its own, of which the first one's is cut while the command
// runs in every other round. It runs once, and both have what came of it.
func TestTwoClientsHaveOneCommandOfAnID(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	everyWay(t, twoClients)
}

func twoClients(t *testing.T, m machine) {
	ran := testenv.TempDir(t)
	var hosts [2]*host.Host
	var asks [2]*keeper.Kept
	for i := range hosts {
		var err error
		hosts[i] = dial(t, m.target, nil)
		asks[i], err = hosts[i].Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
	}
	for round := range testenv.Repeats(2, 10, 200) {
		file := filepath.Join(ran, fmt.Sprint(round))
		ctx := testenv.Context(t) // Each round has time of its own.
		req := command.Request{ID: fmt.Sprint("id-", round), Script: fmt.Sprintf("echo ran >>%s; until [[ -e %[1]s.go ]]; do sleep 0.01; done; echo out %d; echo err >&2; exit 3", file, round)}
		var all sync.WaitGroup
		var results [2]command.Result
		var errs [2]error
		for i := range asks {
			all.Go(func() { results[i], errs[i] = asks[i].Do(ctx, req) })
		}
		testenv.AwaitFile(t, file)
		if round%2 == 1 {
			m.kill(connectOf(hosts[0]))
		}
		require.NoError(t, os.WriteFile(file+".go", nil, 0o600))
		all.Wait()
		for i := range asks {
			require.NoError(t, errs[i], "round %d, client %d", round, i)
			assert.Equal(t, 3, results[i].ExitCode, "round %d, client %d", round, i)
			assert.Equal(t, fmt.Sprintf("out %d\n", round), results[i].Stdout.String(), "round %d, client %d", round, i)
			assert.Equal(t, "err\n", results[i].Stderr.String(), "round %d, client %d", round, i)
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(b), "ran"), "round %d", round)
	}
}
