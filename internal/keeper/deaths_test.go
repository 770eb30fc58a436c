package keeper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// playClient runs a script in a session, and prints what came of it.
func playClient(dir, name, script string) error {
	r, err := keeper.Open(dir)
	if err != nil {
		return err
	}
	k, err := r.Session(context.Background(), name, nil)
	if err != nil {
		return err
	}
	res, err := k.Run(context.Background(), script)
	fmt.Printf("%q %v\n", res.Stdout.String(), err)
	if res.Restart != nil {
		fmt.Println(res.Restart)
	}
	return nil
}

// victims says which processes a round kills.
type victims struct {
	client, keeper, bash bool
	stop                 bool // the keeper stands still for a moment before
}

// Processes are killed at random moments. A command must run once or not at all, the session must have its
// state or say that it was lost, and its name must work again at once.
func TestDeathsAtRandomMoments(t *testing.T) {
	testenv.Slow(t)
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	file := filepath.Join(testenv.TempDir(t), "ran")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	made, died, before := true, false, "none"
	slowest := time.Duration(0)
	told, deaf := "", false // what was said to be lost, and whether nobody was there to hear it
	for round := range testenv.Repeats(3, 20, 200) {
		began := time.Now()
		k, err := r.Session(testenv.Context(t), "s", &keeper.Spec{Dir: "/tmp"})
		require.NoError(t, err)
		what := fmt.Sprintf("round %d", round)
		assert.Equal(t, made, k.Made, what)
		assert.Equal(t, made && round > 0, k.Was != nil, "%s: a loss is told", what)
		if died { // It may be about to.
			if res, _ := k.Run(testenv.Context(t), "true"); res.Restart != nil {
				told += res.Restart.String()
			}
		}
		bash, state, _ := strings.Cut(says(t, k, "echo $$ ${n-none}"), " ")
		slowest = max(slowest, time.Since(began))
		assert.Less(t, time.Since(began), testenv.Patience, what)
		switch kept := state == before || state == fmt.Sprint(round-1); {
		case made:
			assert.Equal(t, "none", state, what)
		case died && !kept: // The state is saved when the session is idle for a moment, which is no more than some rounds ago.
			assert.True(t, deaf || strings.Contains(told, "what the last"), "%s: it is %s and was %s, and what was told is %q", what, state, before, told)
		default:
			assert.True(t, kept, "%s: it is %s and was %s", what, state, before)
		}
		pid := pidOf(t, r, k)

		die := victims{random.IntN(2) == 0, random.IntN(3) == 0, random.IntN(3) == 0, random.IntN(4) == 0}
		what += fmt.Sprintf(" %+v", die)
		client := exec.Command(os.Args[0], "client", dir, "s", fmt.Sprintf("echo %d >>%s; n=%d; sleep 0.0%d; echo over", round, file, round, 1+random.IntN(9)))
		var said strings.Builder
		client.Stdout, client.Stderr = &said, &said
		require.NoError(t, client.Start())
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		kill := func(yes bool, pid int, sig syscall.Signal) {
			if yes {
				_ = syscall.Kill(pid, sig) // It may be gone.
			}
		}
		kill(die.stop, pid, syscall.SIGSTOP)
		kill(die.client, client.Process.Pid, syscall.SIGKILL)
		kill(die.bash, atoi(t, bash), syscall.SIGKILL)
		kill(die.keeper, pid, syscall.SIGKILL)
		kill(die.stop, pid, syscall.SIGCONT)
		err = client.Wait()
		switch {
		case die.client:
		case die.keeper: // It may have been dead when the client came.
			assert.Regexp(t, `over\\n" <nil>|is gone|there is none of that name|bash was killed`, said.String(), what)
		case die.bash:
			require.NoError(t, err, "%s: %s", what, said.String())
		default:
			assert.Equal(t, "\"over\\n\" <nil>\n", said.String(), what)
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.LessOrEqual(t, strings.Count("\n"+string(b), fmt.Sprintf("\n%d\n", round)), 1, "%s: it ran once at most", what)
		k.Disconnect()
		made, died, before = die.keeper, die.bash, state
		told, deaf = said.String(), die.client
	}
	t.Logf("the name worked again in %v at most", slowest)
	k, err := r.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	require.NoError(t, r.Close(testenv.Context(t), k))
	list, err := r.List(testenv.Context(t), false)
	require.NoError(t, err)
	assert.Empty(t, list)
	sockets, err := filepath.Glob(filepath.Join(r.Dir(), "*", "s"))
	require.NoError(t, err)
	assert.Empty(t, sockets, "of keepers that are dead")
}

// pidOf is that of the keeper of a session.
func pidOf(t *testing.T, r *keeper.Registry, k *keeper.Kept) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Dir(), k.Record.ID, "lock"))
	require.NoError(t, err)
	return atoi(t, string(b))
}
