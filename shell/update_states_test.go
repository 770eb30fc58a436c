package shell_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// What limpet has set goes with the shell's state: a bash that takes over is asked for that again, and
// for nothing that a script has set.
func TestUpdateEnvGoesOnInTheNextBash(t *testing.T) {
	for _, end := range []string{inBash + "kill -9 $BASHPID", inBash + "kill -HUP $BASHPID; sleep 5", inBash + "exit 3"} {
		for _, idle := range []bool{false, true} {
			t.Run(fmt.Sprint(end, idle), func(t *testing.T) {
				t.Parallel()
				sh := start(t, born("V=born", "W=born"))
				run(t, sh, "W=mine")
				ended := func(entry string) {
					updated(t, sh, "true", "V=before")
					if idle {
						_, err := sh.Checkpoint(testenv.Context(t)) // It saves the state.
						require.NoError(t, err)
					}
					res, err := sh.Do(testenv.Context(t), command.Request{Script: end, UpdateEnv: []string{entry, "W=other"}})
					if err != nil {
						require.ErrorAs(t, err, new(*shell.DeadError))
					}
					require.NotNil(t, res.Restart)
					assert.NotContains(t, res.Restart.String(), "2 commands")
				}
				for _, entry := range []string{"V=while", "V", "V=before"} {
					ended(entry)
					assert.Equal(t, "after mine", updated(t, sh, "echo $V $W", "V=after", "W=other"), entry)
					ended(entry)
					assert.Equal(t, "none mine", updated(t, sh, "echo ${V-none} $W", "V", "W"), entry)
				}
				run(t, sh, "V=mine")
				ended("V=while")
				assert.Equal(t, "mine mine", updated(t, sh, "echo $V $W", "V=after", "W=other"))
			})
		}
	}
}

func TestUpdateEnvAfterResetAndRestore(t *testing.T) {
	sh := start(t, born("V=born"))
	early, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	assert.Equal(t, "one", updated(t, sh, "echo $V", "V=one"))
	one, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	assert.Equal(t, "two", updated(t, sh, "echo $V; W=mine", "V=two", "W"))
	run(t, sh, "V=mine")
	mine, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	restore := func(sh *shell.PersistentShell, state shell.State) {
		_, err := sh.Restore(testenv.Context(t), state)
		require.NoError(t, err)
	}
	restore(sh, one)
	assert.Equal(t, "one none", says(t, sh, "echo $V ${W-none}"))
	assert.Equal(t, "three w", updated(t, sh, "echo $V $W", "V=three", "W=w"), "that is what limpet had set then")
	restore(sh, mine)
	assert.Equal(t, "mine mine", updated(t, sh, "echo $V $W", "V=three", "W=w"))
	restore(sh, early)
	assert.Equal(t, "three", updated(t, sh, "echo $V", "V=three"))

	other := start(t, born("V=elsewhere"))
	restore(other, early)
	assert.Equal(t, "four", updated(t, other, "echo $V", "V=four"), "it began with the environment of the first")
	require.NoError(t, other.Reset(testenv.Context(t)))
	assert.Equal(t, "elsewhere", says(t, other, "echo $V"))
	assert.Equal(t, "five", updated(t, other, "echo $V", "V=five"))
	begun := start(t, &shell.Options{Env: []string{"V=none"}, State: &one})
	assert.Equal(t, "six", updated(t, begun, "echo $V", "V=six"))
}

// However a script runs, it has the variables of its caller.
func TestUpdateEnvHoldsHoweverAScriptRuns(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{
		"echo $V", "set -e; echo $V; exit 3", "echo $V; exit 1", "echo $V $$ | cut -d' ' -f1", ". /dev/stdin <<<'echo $V'", "set -o posix; echo $V",
		"trap 'echo $V' EXIT", "printenv V", "(printenv V) & wait", "set -u; echo $V", "echo ${V?}; W=2", "echo $V; echo ${nothing?} 2>/dev/null", "export V; echo $V; exit",
	} {
		for name, req := range map[string]command.Request{
			"": {}, "env": {Env: []string{"X=1"}}, "unset": {Unset: []string{"X"}}, "dir": {Dir: "/"}, "stdin": {Stdin: strings.NewReader("")},
		} {
			sh := start(t, born("V=born", "PATH=/usr/bin:/bin"))
			for _, want := range []string{"one", "two"} {
				req.Script, req.UpdateEnv = script, []string{"V=" + want}
				res, err := sh.Do(testenv.Context(t), req)
				require.NoError(t, err)
				assert.Equal(t, want+"\n", res.Stdout.String(), "%s (%s)", script, name)
			}
			assert.Equal(t, "two two", updated(t, sh, seen), "%s (%s)", script, name)
			assert.Equal(t, "three three", updated(t, sh, seen, "V=three"), "%s (%s): it is still limpet's", script, name)
		}
	}
	sh := start(t, born("V=born"))
	for _, row := range []struct {
		req  command.Request
		want string
	}{
		{command.Request{Script: seen, Env: []string{"V=own"}, UpdateEnv: []string{"V=one"}}, "own own\n"},
		{command.Request{Script: seen}, "one one\n"},
		{command.Request{Script: seen, Unset: []string{"V"}, UpdateEnv: []string{"V=two"}}, "none none\n"},
		{command.Request{Script: seen}, "two two\n"},
		{command.Request{Script: seen + "; exit", Env: []string{"V=own"}, UpdateEnv: []string{"V=three"}}, "own own\n"},
		{command.Request{Script: seen}, "three three\n"},
		{command.Request{Script: seen, UpdateEnv: []string{"V=four"}}, "four four\n"},
	} {
		res, err := sh.Do(testenv.Context(t), row.req)
		require.NoError(t, err)
		assert.Equal(t, row.want, res.Stdout.String())
	}
}

func TestUpdateEnvAfterAHandover(t *testing.T) {
	sh := start(t, born("V=born"))
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 1000", HandOverAfter: 20 * time.Millisecond, UpdateEnv: []string{"V=one"}})
	handed := new(shell.HandedOverError)
	require.ErrorAs(t, err, &handed)
	require.NoError(t, handed.Command.Close())
	assert.Equal(t, "two", updated(t, sh, "echo $V", "V=two"))
}

// Each command has the variables of its own caller, whoever else asks.
func TestUpdateEnvOfManyCallers(t *testing.T) {
	sh := start(t, born("V=born", "W=born"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				res, err := sh.Do(testenv.Context(t), command.Request{Script: "echo $V $W", UpdateEnv: []string{fmt.Sprint("V=", i), fmt.Sprint("W=w", i)}})
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%d w%d\n", i, i), res.Stdout.String())
			}
		})
	}
	all.Wait()
}

func TestOptionsUpdateEnvIsAskedInTheTurn(t *testing.T) {
	opts := born("V=born")
	var running sync.Mutex
	opts.UpdateEnv = func(entries []string) []string {
		assert.True(t, running.TryLock(), "one at a time")
		defer running.Unlock()
		return append(slices.Clone(entries), "ALSO=1")
	}
	sh := start(t, opts)
	assert.Equal(t, "two 1", updated(t, sh, "echo $V $ALSO", "V=two"))
	assert.Equal(t, "two", updated(t, sh, "unset ALSO; echo $V"), "nobody is asked without")

	for _, entry := range []string{"1a=b", "=", "V=a\x00b", "a b"} {
		_, err := sh.Do(testenv.Context(t), command.Request{Script: "true", UpdateEnv: []string{entry}})
		require.ErrorAs(t, err, new(*command.EnvError), "%q", entry)
	}
}
