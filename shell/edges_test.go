package shell_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func lines(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// The read builtin reads descriptor 0 in bash itself, as bash does at its
// prompt. It may wait for as long as it likes.
func TestAReadThatWaitsIsNotTakenForASilentBash(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, nil)
	res := run(t, sh, `while read -r l; do echo "got $l"; done < <(sleep 2.5; echo hi)`)
	assert.Equal(t, "got hi\n", res.Stdout.String())
	assert.Nil(t, res.Restart)
}

// What a trace or an ERR trap says may look like bash's complaint that it could
// not read the session's files.
func TestNoCommandRunsTwiceWhateverItsTracesSay(t *testing.T) {
	for _, setup := range []string{
		`PS4='+ ${BASH_SOURCE}:${LINENO}: '; set -x`,
		`PS4='bash: ${BASH_SOURCE}: '; set -x`,
		`trap 'echo "$BASH_COMMAND: exit $?" >&2' ERR`,
		`set -E; trap 'echo "${BASH_SOURCE[0]}: line $LINENO: $BASH_COMMAND" >&2' ERR`,
	} {
		sh := start(t, nil)
		run(t, sh, setup)
		for range 3 {
			res := run(t, sh, "echo ran >>count; grep nothing /dev/null")
			assert.Equal(t, 1, res.ExitCode, setup)
			assert.Nil(t, res.Restart, setup)
		}
		assert.Equal(t, "ran\nran\nran\n", lines(t, filepath.Join(sh.Dir(), "count")), setup)
	}
}

// A script that was stopped never runs its next command, also when a trap for
// SIGINT, which would have bash go on, comes from where no text shows it.
func TestATrapThatTheScriptDoesNotShowLetsNothingRunAfterAStop(t *testing.T) {
	for _, row := range []struct{ setup, script string }{
		{"echo \"trap 'echo caught' INT\" >lib", ". ./lib; echo >ready; sleep 50; touch X"},
		{"echo \"trap 'echo caught' INT\" >lib", "if true; then source ./lib; fi; echo >ready; sleep 50; touch X"},
		{"quiet() { trap : INT; }; outer() { quiet; }; trap - INT", "outer; echo >ready; sleep 50; touch X"},
	} {
		sh := start(t, nil)
		run(t, sh, row.setup)
		run(t, sh, ":")
		done := make(chan error, 1)
		go func() {
			_, err := sh.Run(testenv.Context(t), row.script)
			done <- err
		}()
		testenv.AwaitFile(t, filepath.Join(sh.Dir(), "ready"))
		require.NoError(t, sh.Interrupt())
		assert.ErrorIs(t, <-done, shell.ErrInterrupted)
		assert.NoFileExists(t, filepath.Join(sh.Dir(), "X"), row.script)
	}
}

func TestFindDotIsNoSourcing(t *testing.T) {
	sh := start(t, nil)
	pid := says(t, sh, "echo $$")
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "find . -name x; sleep 50", Timeout: 200 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, pid, says(t, sh, "echo $$"), "it is another bash")
}

// The directory of a request is for its command alone, however that ends.
func TestTheDirectoryOfARequestDoesNotOutliveIt(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{"true", "exit 7", "f() { exit 7; }; f", inBash + "exit 7", "kill -9 $$", killBash, `bash -c 'trap "exit 0" INT; sleep 50 & wait'`} {
		sh := start(t, nil)
		home, other := sh.Dir(), t.TempDir()
		run(t, sh, ":")
		_, _ = sh.Do(testenv.Context(t), command.Request{Script: script, Dir: other, Timeout: time.Second})
		assert.Equal(t, home, sh.Dir(), script)
		assert.Equal(t, home+" "+home, says(t, sh, `echo "$PWD $(pwd -P)"`), script)
	}
	sh := start(t, nil)
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "true", Dir: t.TempDir()})
	require.NoError(t, err)
	testenv.Await(t, "the state to be saved", func() bool { return says(t, sh, "cd -P .; pwd") == sh.Dir() })
	run(t, sh, ":")
	_, err = sh.Run(testenv.Context(t), killBash)
	require.Error(t, err)
	assert.Equal(t, sh.Dir()+" "+sh.Dir(), says(t, sh, `echo "$PWD $(pwd -P)"`))
}

// A script that was meant for one directory never runs in another one.
func TestNoScriptRunsInTheDirectoryOfAnEarlierRequest(t *testing.T) {
	sh := start(t, nil)
	home, other := filepath.Join(t.TempDir(), "home"), t.TempDir()
	require.NoError(t, os.Mkdir(home, 0o700))
	run(t, sh, "cd "+home)
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "rmdir " + home, Dir: other})
	require.NoError(t, err)
	_, err = sh.Run(testenv.Context(t), "touch "+other+"/X; touch X")
	if err != nil { // Else it had gone back while it was idle, to where there is nothing left.
		var gone *shell.DirError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, filepath.Dir(home), sh.Dir())
	}
	assert.NoFileExists(t, filepath.Join(other, "X"))
	assert.Equal(t, "fine", says(t, sh, "echo fine"))
}

// What is local to a function does not become the session's when the function
// ends bash.
func TestLocalsOfAFunctionThatExitsStayLocal(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, `x=global; f() { local x=inner IFS=,; h; }; h() { local -a z; declare -g y=new; cd /; g() { :; }; exit 3; }`)
	res := run(t, sh, "f")
	assert.Equal(t, 3, res.ExitCode)
	assert.Nil(t, res.Restart)
	assert.Equal(t, "global new / 3", says(t, sh, `set -- $(echo a b c); echo "$x $y $PWD $#"`))
	assert.Equal(t, "function", says(t, sh, "type -t g"))
	assert.Equal(t, "gone", says(t, sh, "declare -p z 2>/dev/null || echo gone"))
}

// An assignment to a variable that was made readonly earlier ends the script
// with 1, where one that is unset ends it with 127.
func TestAReadonlyVariableIsNotTakenForAnUnsetOne(t *testing.T) {
	for _, keep := range []bool{false, true} {
		sh := start(t, &shell.Options{KeepOptions: keep})
		run(t, sh, "set -u; readonly R=1; Q=1")
		set := "set -u; "
		if keep {
			set = ""
		}
		for range 2 {
			assert.Equal(t, 1, run(t, sh, set+"R=2; echo on").ExitCode)
			assert.Equal(t, 127, run(t, sh, set+"echo $nothing; echo on").ExitCode)
			checkpoint(t, sh)
		}
	}
}

// A script that opens /dev/stderr cuts the file, as it does with bash -c
// 2>file. What it prints then counts as output all the same.
func TestAScriptThatCutsItsOutputIsNotSilent(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, nil)
	var live bytes.Buffer
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script:      "echo 0123456789; sleep 0.3; echo A >/dev/stdout; for i in {1..15}; do sleep 0.1; echo $i; done",
		IdleTimeout: time.Second, Stdout: &live,
	})
	require.NoError(t, err)
	assert.Equal(t, "A\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n", res.Stdout.String())
	assert.Equal(t, "0123456789\n"+res.Stdout.String(), live.String())
}

// Who has no mark of the session (env -i) is ended with it all the same.
func TestProcessesWithoutTheMarkEndWithTheirSession(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sh := start(t, nil)
	res := run(t, sh, "env -i sleep 1000 & (env -i sleep 1000 &); until (($(pgrep -cxf 'sleep 1000') >= 2)); do :; done")
	require.Len(t, res.Receipt.Leftover, 2)
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "(env -i sleep 1001 &); echo >ready; sleep 50", Timeout: 300 * time.Millisecond})
	var stop *shell.InterruptError
	require.ErrorAs(t, err, &stop)
	var names []string
	for _, p := range stop.Outcome.Signalled {
		names = append(names, p.Command)
	}
	assert.ElementsMatch(t, []string{"sleep 1001", "sleep 50"}, names)
	require.NoError(t, sh.Close())
	for _, p := range res.Receipt.Leftover {
		assert.False(t, testenv.Alive(p.PID), "%v", p)
	}
}

// stuck is a Writer that blocks until it is let go.
type stuck struct{ free chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.free
	return len(p), nil
}

// A command that has ended waits for its Writer for as long as its caller does.
func TestACallerMayGiveUpAWriterThatBlocks(t *testing.T) {
	testenv.Slow(t)
	w := stuck{make(chan struct{})}
	defer close(w.free)
	sh := start(t, nil)
	for _, giveUp := range []func(context.CancelFunc){
		func(cancel context.CancelFunc) { cancel() },
		func(context.CancelFunc) { _ = sh.Close() }, // Always nil.
	} {
		ctx, cancel := context.WithCancel(testenv.Context(t))
		defer cancel()
		done := make(chan error, 1)
		ended := filepath.Join(t.TempDir(), "ended")
		go func() {
			_, err := sh.Do(ctx, command.Request{Script: "echo hi; echo >" + ended, Stdout: w})
			done <- err
		}()
		testenv.AwaitFile(t, ended)
		giveUp(cancel)
		select {
		case err := <-done:
			assert.Error(t, err)
		case <-time.After(testenv.Patience):
			t.Fatal("it hangs")
		}
	}
}

// A runtime directory that was made anew is locked, or the next program would
// take it for a leftover.
func TestARuntimeDirThatWasMadeAnewIsNotSwept(t *testing.T) {
	base := t.TempDir()
	sh := start(t, &shell.Options{RuntimeDir: base})
	removeRuntime(t, base)
	run(t, sh, "x=1")
	parents, err := filepath.Glob(filepath.Join(base, "limpet-*"))
	require.NoError(t, err)
	require.Len(t, parents, 1)
	programs, err := filepath.Glob(filepath.Join(parents[0], "*"))
	require.NoError(t, err)
	require.Len(t, programs, 1)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(programs[0], old, old))
	rundir.Sweep(parents[0])
	assert.DirExists(t, programs[0])
	assert.Equal(t, "1", says(t, sh, "echo $x"))
}

// The files of a session are where its commands can reach them. A state that
// was replaced by a link or a pipe is not read, and holds nobody up.
func TestAStateThatWasReplacedIsNotRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	for _, replace := range []string{"ln -sf " + secret + " exit", "rm exit; mkfifo exit", "rm exit; mkdir exit"} {
		base := t.TempDir()
		sh := start(t, &shell.Options{RuntimeDir: base})
		run(t, sh, "x=1")
		checkpoint(t, sh)
		res := run(t, sh, inBash+"cd "+base+"/limpet-*/*/*/status/..; trap - EXIT; "+replace+"; exec true")
		require.NotNil(t, res.Restart, replace)
		assert.Equal(t, "1", says(t, sh, "echo $x"), replace)
	}
}
