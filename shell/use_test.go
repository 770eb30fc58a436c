package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

func TestDefaultEnvDropsSecretsAndKeepsWhatItIsTold(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "s", "GH_TOKEN": "s", "DB_PASSWORD": "s", "AWS_PROFILE": "s", "PGPASSWORD": "s",
		"BASH_ENV": "/tmp/x", "BASH_FUNC_f%%": "() { :; }", "PROMPT_COMMAND": "x", "LIMPET_SESSION": "outer",
		"HARMLESS": "1", "PAGER": "less", "TOKENS": "many",
	} {
		t.Setenv(name, value)
	}
	env := shell.DefaultEnv()
	for _, name := range []string{"OPENAI_API_KEY", "GH_TOKEN", "DB_PASSWORD", "AWS_PROFILE", "PGPASSWORD", "BASH_ENV", "BASH_FUNC_f%%", "PROMPT_COMMAND", "LIMPET_SESSION"} {
		assert.NotContains(t, strings.Join(env, "\n")+"\n", "\n"+name+"=")
	}
	assert.Contains(t, env, "HARMLESS=1")
	assert.Contains(t, env, "TOKENS=many")
	assert.Contains(t, env, "PAGER=cat")
	assert.Contains(t, env, "TERM=dumb")

	kept := shell.DefaultEnv("AWS_*", "GH_TOKEN", "PAGER")
	assert.Contains(t, kept, "AWS_PROFILE=s")
	assert.Contains(t, kept, "GH_TOKEN=s")
	assert.Contains(t, kept, "PAGER=less")
	assert.NotContains(t, kept, "DB_PASSWORD=s")
}

func TestEnvIsExactlyWhatOptionsSay(t *testing.T) {
	t.Setenv("FROM_THE_PROGRAM", "1")
	sh := start(t, &shell.Options{Env: []string{"A=1", "A=2", "B=x y", "odd.name=3"}})
	assert.Equal(t, "2|x y|unset", says(t, sh, `echo "$A|$B|${FROM_THE_PROGRAM-unset}"`))
	env := says(t, sh, "/usr/bin/env")
	assert.Contains(t, env, "LIMPET_SESSION=")
	assert.NotContains(t, env, "FROM_THE_PROGRAM")
}

// Bash has no variables for them, but passes them on: so does whatever takes the place of bash.
func TestVariablesWhoseNamesAreNoIdentifiersStay(t *testing.T) {
	const ask, want = `env | grep -E '^(job\.status|X-Y|1ST|ProgramFiles\(x86\))=' | sort`, "1ST=first\nProgramFiles(x86)=C:\nX-Y=a\njob.status=o k"
	sh := start(t, &shell.Options{Env: append(shell.DefaultEnv(), "X-Y=0", "job.status=o k", "X-Y=a", "ProgramFiles(x86)=C:", "1ST=first", "A=1")})
	assert.Equal(t, want, says(t, sh, ask))
	state := checkpoint(t, sh)
	other := start(t, &shell.Options{Env: []string{"PATH=" + os.Getenv("PATH"), "other-one=1"}, State: &state})
	assert.Equal(t, want, says(t, other, ask))
	for name, replace := range map[string]func(){
		"an exit":   func() { run(t, sh, inBash+"exit 3") },
		"a fork":    func() { run(t, sh, "set -e; false") },
		"a kill":    func() { killAndWait(t, bashPID(t, sh)); _, _ = sh.Run(testenv.Context(t), ":") },
		"a restore": func() { _, err := sh.Restore(testenv.Context(t), state); require.NoError(t, err) },
		"a reset":   func() { require.NoError(t, sh.Reset(testenv.Context(t))) },
		"another":   func() { _, err := sh.Restore(testenv.Context(t), checkpoint(t, other)); require.NoError(t, err) },
	} {
		replace()
		assert.Equal(t, want, says(t, sh, ask), name)
		assert.Equal(t, want, says(t, sh, "set -e; "+ask), name+", in a fork")
		assert.Equal(t, want, says(t, sh, "shopt -s extglob; set -e; "+ask), name+", in a fresh bash")
		res, err := sh.Do(testenv.Context(t), command.Request{Script: ask, Stdin: strings.NewReader("")})
		require.NoError(t, err)
		assert.Equal(t, want+"\n", res.Stdout.String(), name+", in a bash of its own")
	}
	require.NoError(t, other.Reset(testenv.Context(t)))
	assert.Equal(t, "other-one=1", says(t, other, `env | grep -E '^other-one=|^X-Y'`), "its own environment")
}

func TestRequestEnvIsForOneCommandOnly(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "export KEPT=old; PLAIN=old")
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: `echo "$KEPT $PLAIN $NEW"; sh -c 'echo "$KEPT $PLAIN $NEW"'`,
		Env:    []string{"KEPT=1", "KEPT=2", "PLAIN=p", "NEW=$(echo no) 'q'"},
	})
	require.NoError(t, err)
	assert.Equal(t, "2 p $(echo no) 'q'\n2 p $(echo no) 'q'\n", res.Stdout.String())
	assert.Equal(t, "old old unset", says(t, sh, `echo "$KEPT $PLAIN ${NEW-unset}"`))
	assert.Equal(t, "old unset unset", says(t, sh, `sh -c 'echo "$KEPT ${PLAIN-unset} ${NEW-unset}"'`))
}

func TestRequestEnvHoldsForOneCommandInPosixMode(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "set -o posix")
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "echo $NEW", Env: []string{"NEW=1"}})
	require.NoError(t, err)
	assert.Equal(t, "unset", says(t, sh, `echo "${NEW-unset}"`))
}

func TestRequestEnvReachesScriptsPastAFunctionNamedEval(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "eval() { echo hijacked; }")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "echo $NEW", Env: []string{"NEW=1"}})
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())
}

func TestRequestDirIsForOneCommandOnly(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"home", "other/deep", "elsewhere"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	home, other, elsewhere := filepath.Join(top, "home"), filepath.Join(top, "other"), filepath.Join(top, "elsewhere")
	sh := start(t, &shell.Options{Dir: home})
	do := func(dir, script string) command.Result {
		res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Dir: dir})
		require.NoError(t, err)
		return res
	}
	assert.Equal(t, other+"\n", do(other, "pwd").Stdout.String())
	assert.Equal(t, home, sh.Dir())
	assert.Equal(t, home, says(t, sh, "pwd"))
	assert.Equal(t, filepath.Join(other, "deep")+"\n", do("../other/deep", "pwd").Stdout.String(), "relative to the shell's")
	res := do(other, "cd "+elsewhere)
	assert.Equal(t, elsewhere, res.Dir, "the script went somewhere else")
	assert.Equal(t, elsewhere, says(t, sh, "pwd"))
}

func TestRequestDirLeavesCdMinusAlone(t *testing.T) {
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	sh := start(t, &shell.Options{Dir: a})
	run(t, sh, "cd "+b)
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "true", Dir: c})
	require.NoError(t, err)
	assert.Equal(t, a, says(t, sh, "cd -"))
}

func TestStdinRunsWithTheShellsDirectoryAndEnvironment(t *testing.T) {
	dir := t.TempDir()
	sh := start(t, nil)
	run(t, sh, "cd "+dir+"; export X='a b'; plain=1")
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: `cat; echo "$X ${plain-unset} $PWD $Y"; cd /; (exit 3)`, Stdin: strings.NewReader("in\n"), Env: []string{"Y=y"},
	})
	require.NoError(t, err)
	assert.Equal(t, 3, res.ExitCode)
	assert.Equal(t, "in\na b unset "+dir+" y\n", res.Stdout.String())
	assert.Equal(t, dir, res.Dir)
	assert.Equal(t, "0", says(t, sh, "echo $?"), "$? is that of the last command that ran here")
}

func TestStdinWorksWhateverIsExported(t *testing.T) {
	sh := start(t, &shell.Options{Env: append(shell.DefaultEnv(), "odd.name=1")})
	run(t, sh, "f() { echo from f; }; export -f f")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat; f", Stdin: strings.NewReader("in\n")})
	require.NoError(t, err)
	assert.Equal(t, "in\nfrom f\n", res.Stdout.String())
}

func TestStdinWorksPastAFunctionNamedBuiltin(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "builtin() { echo hijacked; }; export X=1")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat; echo $X", Stdin: strings.NewReader("in\n")})
	require.NoError(t, err)
	assert.Equal(t, "in\n1\n", res.Stdout.String())
}

func TestBeforeMayChangeARequest(t *testing.T) {
	var asked []string
	sh := start(t, &shell.Options{Before: func(_ context.Context, req *command.Request) error {
		asked = append(asked, req.Script)
		if req.Script == "spoil" {
			req.Script = "a\x00b"
			return nil
		}
		req.Script = "echo changed: '" + req.Script + "'"
		return nil
	}})
	assert.Equal(t, "changed: x", says(t, sh, "x"))
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "y", Stdin: strings.NewReader("")})
	require.NoError(t, err)
	assert.Equal(t, "changed: y\n", res.Stdout.String())
	_, err = sh.Run(testenv.Context(t), "spoil")
	assert.ErrorIs(t, err, command.ErrNUL)
	assert.Equal(t, []string{"x", "y", "spoil"}, asked)
}

func TestHooksAreToldOfEachCommandInOrder(t *testing.T) {
	var told []string
	sh := start(t, &shell.Options{Hooks: shell.Hooks{
		Started: func(req command.Request) { told = append(told, "start "+req.Script) },
		Finished: func(req command.Request, res command.Result, err error) {
			told = append(told, "end "+strings.TrimSpace(res.Stdout.String()))
		},
	}})
	run(t, sh, "echo a")
	run(t, sh, "echo b")
	assert.Equal(t, []string{"start echo a", "end a", "start echo b", "end b"}, told)
}

func TestAStoppedSourceRefusesUntilItIsCleared(t *testing.T) {
	src := interrupt.New()
	sh := start(t, &shell.Options{Interrupts: src.Child()})
	src.Stop(errWhy)
	marker := filepath.Join(t.TempDir(), "ran")
	_, err := sh.Run(testenv.Context(t), ": >"+marker)
	require.ErrorIs(t, err, errWhy)
	require.ErrorIs(t, err, shell.ErrInterrupted)
	assert.NoFileExists(t, marker)
	src.Clear()
	assert.Equal(t, "again", says(t, sh, "echo again"))
}

func TestAStoppedSourceRefusesThoseWhoWaitForTheirTurn(t *testing.T) {
	src := interrupt.New()
	sh := start(t, &shell.Options{Interrupts: src})
	first := begin(t, sh, testenv.Context(t), "sleep 60")
	const waiting = 8
	others := make(chan answer, waiting)
	marker := filepath.Join(t.TempDir(), "ran")
	var asked sync.WaitGroup
	for range waiting {
		asked.Add(1)
		go func() {
			asked.Done()
			res, err := sh.Run(testenv.Context(t), ": >"+marker)
			others <- answer{res, err}
		}()
	}
	asked.Wait()
	src.Stop(errWhy)
	require.ErrorIs(t, await(t, first).err, errWhy)
	for range waiting {
		require.ErrorIs(t, await(t, others).err, errWhy)
	}
	assert.NoFileExists(t, marker)
}

func TestNobodyWhoWaitsForTheTurnRunsAfterClose(t *testing.T) {
	sh := start(t, nil)
	first := begin(t, sh, testenv.Context(t), "sleep 60")
	const waiting = 8
	others := make(chan answer, waiting)
	marker := filepath.Join(t.TempDir(), "ran")
	for range waiting {
		go func() {
			res, err := sh.Run(testenv.Context(t), ": >"+marker)
			others <- answer{res, err}
		}()
	}
	require.NoError(t, sh.Close())
	require.ErrorIs(t, await(t, first).err, shell.ErrClosed)
	for range waiting {
		require.ErrorIs(t, await(t, others).err, shell.ErrClosed)
	}
	assert.NoFileExists(t, marker)
}

func TestWaitingCallersGiveUpWithTheirOwnContext(t *testing.T) {
	sh := start(t, nil)
	first := begin(t, sh, testenv.Context(t), "sleep 60")
	ctx, cancel := context.WithTimeout(testenv.Context(t), 50*time.Millisecond)
	defer cancel()
	marker := filepath.Join(t.TempDir(), "ran")
	res, err := sh.Run(ctx, ": >"+marker)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	_, isStop := errors.AsType[*shell.InterruptError](err)
	assert.False(t, isStop, "nothing ran that could have been stopped")
	require.NoError(t, sh.Interrupt())
	require.ErrorIs(t, await(t, first).err, shell.ErrInterrupted)
	assert.NoFileExists(t, marker)
}

func TestCloseAnswersEverybody(t *testing.T) {
	sh := start(t, nil)
	first := begin(t, sh, testenv.Context(t), "sleep 60")
	waiting := make(chan answer, 10)
	for range cap(waiting) {
		go func() {
			res, err := sh.Run(testenv.Context(t), "echo ran")
			waiting <- answer{res, err}
		}()
	}
	require.NoError(t, sh.Close())
	require.ErrorIs(t, await(t, first).err, shell.ErrClosed)
	for range cap(waiting) {
		require.ErrorIs(t, await(t, waiting).err, shell.ErrClosed)
	}
}

func TestUseAfterCloseIsErrClosed(t *testing.T) {
	sh := start(t, nil)
	require.NoError(t, sh.Close())
	require.NoError(t, sh.Close())
	res, err := sh.Run(testenv.Context(t), "echo x")
	require.ErrorIs(t, err, shell.ErrClosed)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	require.ErrorIs(t, sh.Interrupt(), shell.ErrClosed)
	require.ErrorIs(t, sh.Reset(testenv.Context(t)), shell.ErrClosed)
	assert.NotEmpty(t, sh.Dir())
}

func TestInterruptWhenIdleDoesNothing(t *testing.T) {
	sh := start(t, nil)
	require.NoError(t, sh.Interrupt())
	assert.Equal(t, "x", says(t, sh, "echo x"))
}

func TestAnInterruptLeavesTheStateAndTheJobs(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "x=1; f() { echo f; }; sleep 1000 & job=$!")
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "while :; do :; done", Timeout: 100 * time.Millisecond})
	stopped, ok := errors.AsType[*shell.InterruptError](err)
	require.True(t, ok, "%v", err)
	assert.True(t, stopped.Outcome.ShellSurvived)
	res := run(t, sh, "echo $x $(f); kill -0 $job && echo alive")
	assert.Equal(t, "1 f\nalive\n", res.Stdout.String())
	assert.Nil(t, res.Restart)
}

func TestCloseLeavesNoProcessBehind(t *testing.T) {
	sh := start(t, nil)
	session := says(t, sh, "echo $LIMPET_SESSION")
	run(t, sh, "setsid sleep 1000 >/dev/null 2>&1 & (sleep 1000 &) ; nohup sleep 1000 & trap '' TERM; sleep 1000 &")
	require.NoError(t, sh.Close())
	all, err := proc.List()
	require.NoError(t, err)
	for _, st := range all {
		assert.False(t, !st.Zombie() && proc.HasEnv(st.PID, "LIMPET_SESSION="+session), proc.Command(st.PID))
	}
}

func TestManyCallersNeverMixResults(t *testing.T) {
	sh := start(t, nil)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			word := strings.Repeat("w", i+1)
			res, err := sh.Run(testenv.Context(t), "echo "+word)
			assert.NoError(t, err)
			assert.Equal(t, word+"\n", res.Stdout.String())
		})
	}
	callers.Wait()
}
