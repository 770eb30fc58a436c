package shell_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

func TestARequestThatCannotSetAVariableDoesNotRun(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "readonly R=1; readonly NOVALUE; declare -ra LIST=(1 2); declare -n NAMEREF=R; declare -i NUMBER; (exit 3)")
	there := t.TempDir()
	for _, options := range []string{"", "set -u", "set -eu", "set -o posix", "set -C", "set +eu +o posix +C; true | true"} {
		if options != "" {
			run(t, sh, options)
		}
		for _, name := range []string{"R", "NOVALUE", "LIST", "NAMEREF", "UID", "SHELLOPTS"} {
			ran := filepath.Join(t.TempDir(), "ran")
			for _, req := range []command.Request{
				{Env: []string{"A=1", name + "=2", "Z=1"}},
				{Env: []string{name + "=2"}, Dir: there},
				{Unset: []string{"A", name}},
			} {
				if req.Unset != nil && (name == "UID" || name == "SHELLOPTS") {
					continue // Validate refuses it.
				}
				req.Script = "set +e; : >" + ran
				res, err := sh.Do(testenv.Context(t), req)
				env, ok := errors.AsType[*command.EnvError](err)
				require.True(t, ok, "%s: %q %v: %v", options, name, req.Env, err)
				assert.Equal(t, name, env.Name)
				assert.ErrorIs(t, err, command.ErrReadonly)
				assert.Equal(t, command.CodeUnknown, res.ExitCode)
				assert.Nil(t, res.Restart)
				assert.NoFileExists(t, ran)
			}
		}
		assert.NotEqual(t, there, says(t, sh, "pwd"))
	}
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "echo $A $NUMBER; true | true", Env: []string{"A=R readonly", "NUMBER=2"}})
	require.NoError(t, err)
	assert.Equal(t, "R readonly 2\n", res.Stdout.String())
}

func TestARequestMayUnsetVariablesForItsScript(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "export A=1 B=2; C=3; list=(1 2)")
	req := command.Request{Unset: []string{"A", "C", "list", "NEVER_SET"}}
	req.Script = `echo "${A-no} ${B-no} ${C-no} ${list-no}"; env | grep -c '^[AB]='; A=new; (exit 3)`
	for range 2 {
		res, err := sh.Do(testenv.Context(t), req)
		require.NoError(t, err)
		assert.Equal(t, "no 2 no no\n1\n", res.Stdout.String())
		assert.Equal(t, 3, res.ExitCode)
		assert.Nil(t, res.Restart)
		assert.Equal(t, "1 2 3 1 2", says(t, sh, `echo $A $B $C ${list[@]}`))
	}
	withStdin := req
	withStdin.Stdin = strings.NewReader("")
	res, err := sh.Do(testenv.Context(t), withStdin)
	require.NoError(t, err)
	assert.Equal(t, "no 2 no no\n1\n", res.Stdout.String())

	req.Env, req.Script = []string{"A=env"}, `echo "${A-no} ${C-no}"; true | false`
	res, err = sh.Do(testenv.Context(t), req)
	require.NoError(t, err)
	assert.Equal(t, "env no\n", res.Stdout.String(), res.Stderr.String())
	assert.Equal(t, []int{0, 1}, res.Receipt.Pipeline)
}

func TestWhatWasUnsetIsBackAfterAnInterrupt(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, nil)
	run(t, sh, "export A=1")
	for _, script := range []string{"sleep 60", "while :; do :; done"} {
		res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Unset: []string{"A"}, Timeout: 200 * time.Millisecond})
		require.ErrorIs(t, err, shell.ErrTimeout)
		assert.Nil(t, res.Restart)
		assert.Equal(t, "1", says(t, sh, "echo $A"))
	}
}

func TestAnErrorOfTheStdinOfARequestIsReturned(t *testing.T) {
	sh := start(t, nil)
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: "cat; (exit 3)", Stdin: io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errWhy)),
	})
	require.ErrorIs(t, err, errWhy)
	assert.Equal(t, "some", res.Stdout.String())
	assert.Equal(t, 3, res.ExitCode)
}

// However a command is stopped before bash has it: -1 means that nothing ran.
func TestWhatIsStoppedBeforeItRunsHasNoExitCode(t *testing.T) {
	for _, test := range []struct {
		name  string
		stop  func(*shell.PersistentShell, context.CancelCauseFunc)
		is    []error
		typed bool // an InterruptError
	}{
		{"ctx", func(_ *shell.PersistentShell, cancel context.CancelCauseFunc) { cancel(nil) },
			[]error{context.Canceled}, false},
		{"ctx with a cause", func(_ *shell.PersistentShell, cancel context.CancelCauseFunc) { cancel(errWhy) },
			[]error{context.Canceled, errWhy}, false},
		{"a deadline", func(_ *shell.PersistentShell, cancel context.CancelCauseFunc) {
			cancel(context.DeadlineExceeded)
		}, []error{context.DeadlineExceeded}, false},
		{"Interrupt", func(sh *shell.PersistentShell, _ context.CancelCauseFunc) { _ = sh.Interrupt() },
			[]error{shell.ErrInterrupted}, true},
	} {
		for _, stdin := range []io.Reader{nil, strings.NewReader("")} {
			t.Run(test.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(testenv.Context(t))
				defer cancel(nil)
				var sh *shell.PersistentShell
				sh = start(t, &shell.Options{Hooks: shell.Hooks{Started: func(command.Request) {
					test.stop(sh, cancel)
				}}})
				ran := filepath.Join(t.TempDir(), "ran")
				res, err := sh.Do(ctx, command.Request{Script: ": >" + ran, Stdin: stdin})
				assert.NoFileExists(t, ran)
				assert.Equal(t, command.CodeUnknown, res.ExitCode)
				assert.Zero(t, res.Elapsed)
				for _, want := range test.is {
					assert.ErrorIs(t, err, want)
				}
				assert.True(t, strings.HasPrefix(err.Error(), "nothing ran: "), "%v", err)
				stopped, typed := errors.AsType[*shell.InterruptError](err)
				require.Equal(t, test.typed, typed)
				if typed {
					assert.True(t, stopped.NothingRan)
					assert.Equal(t, command.CodeUnknown, stopped.ExitCode())
				}
			})
		}
	}
}

func TestASourceThatStopsRefusesWhatWaitsForItsTurn(t *testing.T) {
	src := interrupt.New()
	sh := start(t, &shell.Options{Interrupts: src})
	first := begin(t, sh, testenv.Context(t), "sleep 60")
	second := make(chan answer, 1)
	go func() {
		res, err := sh.Run(testenv.Context(t), "echo ran")
		second <- answer{res, err}
	}()
	src.Stop(errWhy)
	assert.Equal(t, command.CodeInterrupted, await(t, first).res.ExitCode)
	got := await(t, second)
	assert.Equal(t, command.CodeUnknown, got.res.ExitCode)
	stopped, ok := errors.AsType[*shell.InterruptError](got.err)
	require.True(t, ok, "%v", got.err)
	assert.True(t, stopped.NothingRan)
	assert.ErrorIs(t, got.err, errWhy)
	assert.ErrorIs(t, got.err, shell.ErrInterrupted)
}
