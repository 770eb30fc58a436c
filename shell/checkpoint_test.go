package shell_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func checkpoint(t *testing.T, sh *shell.PersistentShell) shell.State {
	t.Helper()
	state, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	return state
}

// overBytes is the state as another process gets it.
func overBytes(t *testing.T, state shell.State) (again shell.State) {
	t.Helper()
	b, err := state.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, again.UnmarshalBinary(b))
	require.Error(t, again.UnmarshalBinary(b[1:]))
	assert.Equal(t, state.Dir(), again.Dir(), "it is left as it was")
	return again
}

func TestACheckpointBringsEverythingBack(t *testing.T) {
	testenv.Slow(t)
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			fresh := checkpoint(t, sh)
			run(t, sh, row.set)
			state := overBytes(t, checkpoint(t, sh))
			_, err := sh.Restore(testenv.Context(t), fresh)
			require.NoError(t, err)
			_, err = sh.Restore(testenv.Context(t), state)
			require.NoError(t, err)
			assert.Equal(t, row.want, says(t, sh, row.ask))
		})
	}
}

func TestRestoreTakesBackWhatCameSince(t *testing.T) {
	top := testenv.TempDir(t)
	sh := start(t, &shell.Options{Dir: top})
	run(t, sh, "mkdir sub; x=1; f() { echo one; }; export E=e")
	state := checkpoint(t, sh)
	assert.Equal(t, top, state.Dir())
	run(t, sh, "cd sub; x=2; y=new; f() { echo two; }; unset E; set -f; alias a=b")
	restart, err := sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	assert.Equal(t, top, sh.Dir())
	assert.Equal(t, "1 no one e "+top, says(t, sh, `echo $x ${y-no} $(f) $E $PWD`))
	assert.NotContains(t, says(t, sh, "echo $-; alias"), "f")
	assert.NotContains(t, strings.Join(restart.Lost, "; "), "the last", "what came since is not lost but unwanted")
	assert.Nil(t, run(t, sh, "true").Restart, "who asked for it was told")

	// And again, to the same state, as often as one likes.
	run(t, sh, "x=3")
	_, err = sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	assert.Equal(t, "1", says(t, sh, "echo $x"))
}

func TestRestoreLeavesBackgroundProcessesRunning(t *testing.T) {
	testenv.NeedProc(t)
	sh := start(t, nil)
	state := checkpoint(t, sh)
	run(t, sh, "sleep 1000 & disown; until [[ /proc/$!/exe -ef $(type -P sleep) ]]; do :; done")
	restart, err := sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(restart.Lost, "; "), "sleep 1000")
	background, err := sh.Background(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, background, 1)
	assert.Equal(t, "sleep 1000", background[0].Command)
	require.NoError(t, sh.Close())
	assert.False(t, testenv.Alive(background[0].PID), "it is the shell's still")
}

func TestAShellCanStartWithTheStateOfAnother(t *testing.T) {
	testenv.Slow(t)
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			first := start(t, nil)
			run(t, first, row.set)
			state := checkpoint(t, first)
			second := start(t, &shell.Options{State: &state})
			assert.Equal(t, first.Dir(), second.Dir())
			assert.Equal(t, row.want, says(t, second, row.ask))
		})
	}
}

func TestAForkIsSeparateAndHasItsOwnMark(t *testing.T) {
	first := start(t, nil)
	run(t, first, "x=1")
	state := checkpoint(t, first)
	second := start(t, &shell.Options{State: &state})
	run(t, second, "x=2; cd /")
	assert.Equal(t, "1", says(t, first, "echo $x"))
	assert.NotEqual(t, says(t, first, "echo $LIMPET_SESSION"), says(t, second, "echo $LIMPET_SESSION"))
	require.NoError(t, second.Reset(testenv.Context(t)))
	assert.Equal(t, "unset", says(t, second, "echo ${x-unset}"), "a reset is back at the options")
}

func TestACheckpointOutlivesItsShellAndADeadBash(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "x=1")
	state := checkpoint(t, sh)
	_, err := sh.Run(testenv.Context(t), killBash)
	require.Error(t, err)
	_, err = sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	assert.Equal(t, "1", says(t, sh, "echo $x"))
	require.NoError(t, sh.Close())
	_, err = sh.Restore(testenv.Context(t), state)
	require.ErrorIs(t, err, shell.ErrClosed)
	_, err = sh.Checkpoint(testenv.Context(t))
	require.ErrorIs(t, err, shell.ErrClosed)
	again := start(t, &shell.Options{State: &state})
	assert.Equal(t, "1", says(t, again, "echo $x"))
}

func TestThatBashWasReplacedIsToldAlsoIfACheckpointFoundItOut(t *testing.T) {
	sh := start(t, nil)
	pid := bashPID(t, sh)
	run(t, sh, "x=1")
	checkpoint(t, sh)
	killAndWait(t, pid)
	state := checkpoint(t, sh)
	assert.False(t, state.IsZero())
	res := run(t, sh, "echo $x")
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Reason, "signal 9")
	assert.Nil(t, run(t, sh, "true").Restart, "it is told once")
}

func TestCheckpointsWaitForTheirTurn(t *testing.T) {
	sh := start(t, nil)
	done := begin(t, sh, testenv.Context(t), "sleep 1000")
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	for _, call := range []func() error{
		func() error { _, err := sh.Checkpoint(ctx); return err },
		func() error { _, err := sh.Environ(ctx); return err },
		func() error { _, err := sh.Background(ctx); return err },
	} {
		assert.ErrorIs(t, call(), context.Canceled)
	}
	require.NoError(t, sh.Interrupt())
	require.ErrorIs(t, await(t, done).err, shell.ErrInterrupted)
}

func TestEnvironIsWhatACommandWouldHave(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "export A='x  y' B=$'two\\nlines'; C=no; unset HOME; cd /")
	env, err := sh.Environ(testenv.Context(t))
	require.NoError(t, err)
	assert.Contains(t, env, "A=x  y")
	assert.Contains(t, env, "B=two\nlines")
	assert.Contains(t, env, "PWD=/")
	for _, entry := range env {
		assert.False(t, strings.HasPrefix(entry, "C=") || strings.HasPrefix(entry, "HOME="), entry)
	}
	assert.Equal(t, "3", says(t, sh, "(exit 3); echo $?"))
}

func TestAStateSaysWhatItLacks(t *testing.T) {
	testenv.NeedProc(t)
	sh := start(t, nil)
	run(t, sh, "x=1; sleep 0 >/dev/null 2>&1")
	assert.Empty(t, checkpoint(t, sh).Unsaved())
	run(t, sh, "exec 5</dev/null")
	assert.Equal(t, []string{"open descriptors and coprocesses"}, checkpoint(t, sh).Unsaved())
	state := checkpoint(t, sh)
	again := start(t, &shell.Options{State: &state})
	run(t, again, "y=1")
	assert.Empty(t, checkpoint(t, again).Unsaved(), "it never had them")
	run(t, sh, "exec 5<&-")
	assert.Empty(t, shell.State{}.Unsaved())
}

func TestTheZeroStateIsRefused(t *testing.T) {
	sh := start(t, nil)
	_, err := sh.Restore(testenv.Context(t), shell.State{})
	require.ErrorContains(t, err, "Checkpoint makes one")
	assert.Empty(t, shell.State{}.Dir())
	_, err = shell.State{}.MarshalBinary()
	require.ErrorContains(t, err, "Checkpoint makes one")
}

func TestAForkWhoseDirectoryIsGoneSaysWhereItIs(t *testing.T) {
	top := testenv.TempDir(t)
	first := start(t, &shell.Options{Dir: top})
	run(t, first, "mkdir -p a/b; cd a/b")
	state := checkpoint(t, first)
	run(t, first, "rmdir ../b")
	fork := start(t, &shell.Options{State: &state})
	assert.Equal(t, top+"/a", fork.Dir())
	res := run(t, fork, "pwd")
	require.NotNil(t, res.Restart)
	assert.Contains(t, strings.Join(res.Restart.Lost, "; "), top+"/a/b, which is gone: now in "+top+"/a")
	assert.Nil(t, run(t, fork, "true").Restart, "it is told once")
}

func TestAForkStartsThoughTheDirectoryOfTheOptionsIsGone(t *testing.T) {
	first := start(t, nil)
	run(t, first, "cd /tmp; x=1")
	state := checkpoint(t, first)
	fork := start(t, &shell.Options{State: &state, Dir: "/no/such/directory"})
	assert.Equal(t, "/tmp 1", says(t, fork, "echo $PWD $x"))
}

func TestOfTwoRestartsAllThatWasLostIsTold(t *testing.T) {
	testenv.NeedProc(t)
	sh := start(t, nil)
	state := checkpoint(t, sh)
	pid := bashPID(t, sh)
	run(t, sh, "sleep 1000 & disown; until [[ /proc/$!/exe -ef $(type -P sleep) ]]; do :; done; : exit")
	killAndWait(t, pid)
	_, err := sh.Environ(testenv.Context(t)) // It finds that out, and leaves it to be told.
	require.NoError(t, err)
	restart, err := sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	assert.Contains(t, restart.Reason, "signal 9")
	assert.Contains(t, strings.Join(restart.Lost, "; "), "sleep 1000")
	assert.Nil(t, run(t, sh, "true").Restart)
}
