package keeper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// playUpgrader upgrades a session to a version, as a program that can be killed.
func playUpgrader(dir, name, version string) error {
	r, err := keeper.Open(dir)
	if err != nil {
		return err
	}
	r.Version, r.Execute = version, asKeeper(version)
	k, err := r.Session(context.Background(), name, nil)
	if err != nil {
		return err
	}
	_, err = r.Upgrade(context.Background(), k, keeper.Upgrade{})
	return err
}

// shells are the processes of a bash of that path that sessions have started.
func shells(t *testing.T, path string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, cmdline := range all {
		dir := filepath.Dir(cmdline)
		b, err := os.ReadFile(cmdline)
		comm, _ := os.ReadFile(filepath.Join(dir, "comm")) // It may be gone.
		if err == nil && string(comm) == filepath.Base(path)+"\n" && strings.Contains(string(b), "\x00--noediting\x00") {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// Whoever takes part in an upgrade is killed at a random moment. The session must go on with its state, or
// end and say so; one keeper and one bash must be left.
func TestUpgradesWithDeathsAtRandomMoments(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	path, err := exec.LookPath("bash")
	require.NoError(t, err)
	spec := &keeper.Spec{Dir: "/tmp", Bash: filepath.Join(testenv.TempDir(t), fmt.Sprintf("b%d", random.Uint32()))}
	require.NoError(t, os.Symlink(path, spec.Bash)) // By its name its processes are known.
	user := kept(t, r, "s", spec)
	says(t, user, "true")
	outcomes := make(map[string]int)
	for round := range testenv.Repeats(3, 10, 200) {
		k, err := r.Session(testenv.Context(t), "s", nil)
		require.NoError(t, err)
		bash := says(t, k, fmt.Sprintf("n=%d; cd /usr; echo $$", round))
		old := keepers(t, r)
		require.Len(t, old, 1)
		k.Disconnect()

		victim := []string{"client", "old", "new", "nobody"}[random.IntN(4)]
		what := fmt.Sprintf("round %d, %s", round, victim)
		version := fmt.Sprintf("v%d", round)
		client := exec.Command(os.Args[0], "upgrader", dir, "s", version)
		var said strings.Builder
		client.Stderr = &said
		require.NoError(t, client.Start())
		if random.IntN(4) > 0 { // Mostly when it has begun in earnest.
			for began := time.Now(); time.Since(began) < time.Second && len(keepers(t, r)) < 2; {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
		switch victim {
		case "client":
			_ = client.Process.Kill() // It may be gone.
		case "old":
			_ = syscall.Kill(atoi(t, old[0]), syscall.SIGKILL) // As above.
		case "new":
			for _, pid := range keepers(t, r) {
				if pid != old[0] {
					_ = syscall.Kill(atoi(t, pid), syscall.SIGKILL) // As above.
				}
			}
		}
		failed := client.Wait()
		if victim == "nobody" {
			require.NoError(t, failed, "%s: %s", what, said.String())
		}

		began := time.Now()
		k, err = r.Session(testenv.Context(t), "s", spec)
		require.NoError(t, err, what)
		assert.Less(t, time.Since(began), testenv.Patience, what)
		if k.Made {
			assert.Contains(t, []string{"old", "new"}, victim, what)
			require.NotNil(t, k.Was, what)
			assert.Equal(t, "ended when its keeper was killed; it was in /usr", k.Was.String(), what)
			assert.Equal(t, "none", says(t, k, "echo ${n-none}"), what)
		} else {
			assert.Equal(t, fmt.Sprint(round, " /usr"), says(t, k, "echo $n $PWD"), what)
		}
		one := alone(t, r, "s")
		done := one.Record.Version == version
		if failed == nil && victim != "new" && victim != "old" {
			assert.True(t, done, what)
		}
		outcomes[fmt.Sprintf("%s: upgraded %v, lost %v", victim, done, k.Made)]++
		now := says(t, k, "echo $$")
		testenv.Await(t, what+": other bashes to end", func() bool { return slices.Equal(shells(t, spec.Bash), []string{now}) })
		assert.True(t, done || k.Made || now == bash, "%s: it is another bash though nothing was done", what)
		given, err := filepath.Glob(filepath.Join(r.Dir(), "*", "given"))
		require.NoError(t, err)
		assert.Empty(t, given, what)
		k.Disconnect()
	}
	kept(t, r, "sweeps", nil)
	dirs, err := filepath.Glob(filepath.Join(r.Dir(), "*", "record.json"))
	require.NoError(t, err)
	assert.Len(t, dirs, 2, "of keepers that are dead")
	t.Log(outcomes)
}
