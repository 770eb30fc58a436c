package keeper_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
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
	still                string // the one that stands still meanwhile; empty: none does
}

// stopped has a process stand still, unless it is gone. It stops it again where limpet has it go on, as it does with an idle bash that is
// asked for something.
func stopped(t *testing.T, pid int) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("process %d to stand still", pid), func() bool {
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return true
		}
		st, err := proc.Read(pid)
		return err != nil || st.Zombie() || st.State == 'T'
	})
}

// runtimeOf are the runtime directories in which a process has files open. There are none to be seen without /proc.
func runtimeOf(pid int) (dirs []string) {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // It is a pattern.
	for _, fd := range all {
		path, _ := os.Readlink(fd) // It may be closed.
		if dir := inRuntime.FindString(path); dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

var inRuntime = regexp.MustCompile(`^.*/limpet-\d+(-passable)?/[^/]+`)

// atOnce is how soon the name of a session works again, after whatever was killed: the median of many rounds, as one of them may wait
// for a processor.
const atOnce = 2 * time.Second

// Processes are killed at random moments, while one of them may stand still. A command must run once or not at all, the session must have
// its state or say that it was lost, and its name must work again at once. In the end nothing is left that nobody owns.
func TestDeathsAtRandomMoments(t *testing.T) {
	testenv.Slow(t)
	dir, mark := testenv.TempDir(t), "LIMPET_TEST_MARK="+rand.Text()
	r := registry(t, dir)
	spec := &keeper.Spec{Dir: "/tmp", Env: append(shell.DefaultEnv(), mark)}
	file := filepath.Join(testenv.TempDir(t), "ran")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 1))
	made, died, before := true, false, "none"
	var runtimes []string
	took := make(map[string][]time.Duration) // until the name worked again, by what was killed
	told, deaf := "", false                  // what was said to be lost, and whether nobody was there to hear it
	for round := range testenv.Repeats(3, 20, 200) {
		began := time.Now()
		k, err := r.Session(testenv.Context(t), "s", spec)
		require.NoError(t, err)
		what := fmt.Sprintf("round %d", round)
		assert.Equal(t, made, k.Made, what)
		assert.Equal(t, made && round > 0, k.Was != nil, "%s: a loss is told", what)
		if died { // It may be about to.
			if res, _ := k.Run(testenv.Context(t), "true"); res.Restart != nil {
				told += res.Restart.String()
			}
		}
		leave := "" // what the session's end has to end
		if k.Made {
			leave = "sleep 1000 & "
		}
		bash, state, _ := strings.Cut(says(t, k, leave+"echo $$ ${n-none}"), " ")
		switch {
		case round == 0:
		case made:
			took["keeper"] = append(took["keeper"], time.Since(began))
		case died:
			took["bash"] = append(took["bash"], time.Since(began))
		}
		sockets, err := filepath.Glob(filepath.Join(r.Dir(), "*", "s"))
		require.NoError(t, err)
		assert.Len(t, sockets, 1, "%s: of keepers that are dead", what)
		switch kept := state == before || state == fmt.Sprint(round-1); {
		case made:
			assert.Equal(t, "none", state, what)
		case died && !kept: // The state is saved when the session is idle for a moment, which is no more than some rounds ago.
			assert.True(t, deaf || strings.Contains(told, "what the last"), "%s: it is %s and was %s, and what was told is %q", what, state, before, told)
		default:
			assert.True(t, kept, "%s: it is %s and was %s", what, state, before)
		}
		pid := pidOf(t, r, k)
		runtimes = append(runtimes, runtimeOf(pid)...)

		die := victims{random.IntN(2) == 0, random.IntN(3) == 0, random.IntN(3) == 0, []string{"client", "keeper", "bash", "", "", ""}[random.IntN(6)]}
		what += fmt.Sprintf(" %+v", die)
		client := exec.Command(os.Args[0], "client", dir, "s", fmt.Sprintf("echo %d >>%s; n=%d; sleep 0.0%d; echo over", round, file, round, 1+random.IntN(9)))
		var said strings.Builder
		client.Stdout, client.Stderr = &said, &said
		require.NoError(t, client.Start())
		pause := 60
		if die.still != "" {
			pause = 30 // Mostly before the command begins.
		}
		time.Sleep(time.Duration(random.IntN(pause)) * time.Millisecond)
		kill := func(yes bool, pid int, sig syscall.Signal) {
			if yes {
				_ = syscall.Kill(pid, sig) // It may be gone.
			}
		}
		still := map[string]int{"client": client.Process.Pid, "keeper": pid, "bash": atoi(t, bash)}[die.still]
		if still != 0 {
			stopped(t, still)
		}
		kill(die.client, client.Process.Pid, syscall.SIGKILL)
		kill(die.bash, atoi(t, bash), syscall.SIGKILL)
		kill(die.keeper, pid, syscall.SIGKILL)
		if still != 0 {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		kill(still != 0, still, syscall.SIGCONT)
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
	for killed, times := range took {
		slices.Sort(times)
		median := times[(len(times)-1)/2]
		t.Logf("when the %s was killed the name worked again in %v, and %v at most", killed, median, times[len(times)-1])
		const enough = 5
		if len(times) >= enough { // One that waited for a processor is not the median of fewer.
			assert.Less(t, median, atOnce, killed)
		}
	}

	if runtime.GOOS == "linux" {
		assert.NotEmpty(t, runtimes)
	}
	gone := func(when string) {
		t.Helper()
		testenv.AwaitNone(t, mark, when)
		testenv.Await(t, "the runtime directories to be removed", func() bool {
			return !slices.ContainsFunc(runtimes, func(dir string) bool { _, err := os.Lstat(dir); return err == nil })
		})
	}
	k, err := r.Session(testenv.Context(t), "s", spec)
	require.NoError(t, err)
	says(t, k, "sleep 1000 &")
	runtimes = append(runtimes, runtimeOf(pidOf(t, r, k))...)
	k.Disconnect()
	require.NoError(t, r.Kill(testenv.Context(t), "s"))
	gone("killed") // Before another keeper sweeps.
	k, err = r.Session(testenv.Context(t), "s", spec)
	require.NoError(t, err)
	says(t, k, "sleep 1000 &")
	runtimes = append(runtimes, runtimeOf(pidOf(t, r, k))...)
	require.NoError(t, r.Close(testenv.Context(t), k))
	gone("closed")
	list, err := r.List(testenv.Context(t), false)
	require.NoError(t, err)
	assert.Empty(t, list)
	dirs, err := filepath.Glob(filepath.Join(r.Dir(), "*", "lock"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(r.Dir(), k.Record.ID, "lock")}, dirs, "the one that was closed is remembered, and no other")
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
