package oneshot_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
)

func TestAnErrorOfTheReaderComesBesideTheResult(t *testing.T) {
	r := runner(t, nil)
	in := io.MultiReader(strings.NewReader("some\n"), iotest.ErrReader(errWhy))
	res, err := r.Do(testenv.Context(t), command.Request{Script: "cat; exit 3", Stdin: in})
	require.ErrorIs(t, err, errWhy)
	assert.ErrorContains(t, err, "stdin")
	assert.Equal(t, "some\n", res.Stdout.String())
	assert.Equal(t, 3, res.ExitCode)

	both := errors.New("both")
	in = io.MultiReader(strings.NewReader("some\n"), iotest.ErrReader(errWhy))
	_, err = r.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: in, Stdout: failingWriter{both}})
	require.ErrorIs(t, err, errWhy)
	require.ErrorIs(t, err, both)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestACommandThatDoesNotReadItsInputIsNoError(t *testing.T) {
	r := runner(t, nil)
	res, err := r.Do(testenv.Context(t), command.Request{Script: "exit 4", Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
	require.NoError(t, err)
	assert.Equal(t, 4, res.ExitCode)
}

// No script is an option of bash.
func TestAnyScriptRunsAsItIs(t *testing.T) {
	r := runner(t, nil)
	for _, script := range []string{
		"-e", "-x", "+x", "--", "-", "--version", "--help", "-c", "-c 'echo hi'", "+o posix", "-o\necho hi", "--login; echo hi", "-- ; echo hi",
		"-euo pipefail; echo hi", "# -e\necho hi", " -e", "'-e'; echo $-", "echo $0 $# $-",
	} {
		t.Run(script, func(t *testing.T) {
			res, err := r.Run(testenv.Context(t), script)
			require.NoError(t, err)
			var stdout, stderr strings.Builder
			bash := exec.CommandContext(testenv.Context(t), "bash", "--noprofile", "--norc", "-c", "--", script)
			bash.Args[0] = "bash"
			bash.Stdout, bash.Stderr = &stdout, &stderr
			_ = bash.Run() // Its exit code tells.
			assert.Equal(t, bash.ProcessState.ExitCode(), res.ExitCode)
			assert.Equal(t, stdout.String(), res.Stdout.String())
			assert.Equal(t, stderr.String(), res.Stderr.String())
		})
	}
}

func TestVariablesCanBeUnsetForOneCommand(t *testing.T) {
	r := runner(t, &oneshot.Options{Env: []string{"A=1", "B=2", "AB=3", "PATH=/usr/bin:/bin"}})
	script := `echo ${A-no} ${B-no} ${AB-no} ${IFS-no}; /usr/bin/env | /usr/bin/grep -c '^[AB]='; exit 6`
	for _, long := range []string{"", "\n: " + strings.Repeat("x", 1<<18), "\n: " + strings.Repeat("'x'", 30<<10)} {
		res, err := r.Do(testenv.Context(t), command.Request{Script: script + long, Unset: []string{"A", "IFS"}})
		require.NoError(t, err)
		assert.Equal(t, "no 2 3 no\n1\n", res.Stdout.String())
		assert.Equal(t, 6, res.ExitCode)
	}
	res, err := r.Do(testenv.Context(t), command.Request{Script: script, Unset: []string{"A", "B"}, Env: []string{"B=new"}})
	require.NoError(t, err)
	assert.Equal(t, "no new 3", strings.TrimSpace(strings.Split(res.Stdout.String(), "\n")[0]))
	res, err = r.Run(testenv.Context(t), "echo $A")
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())
	res, err = r.Do(testenv.Context(t), command.Request{Script: "echo 'open", Unset: []string{"A"}})
	require.NoError(t, err)
	assert.NotZero(t, res.ExitCode)
	assert.Contains(t, res.Stderr.String(), "unexpected EOF")
}

func TestAVariableThatBashSetsItselfCannotBeGiven(t *testing.T) {
	r := runner(t, nil)
	for _, req := range []command.Request{
		{Script: "echo ran", Env: []string{"A=1", "PPID=1"}},
		{Script: "echo ran", Env: []string{"BASH_VERSINFO=1"}},
		{Script: "echo ran", Unset: []string{"UID"}},
	} {
		res, err := r.Do(testenv.Context(t), req)
		env, ok := errors.AsType[*command.EnvError](err)
		require.True(t, ok, "%v", err)
		assert.NotEqual(t, "A", env.Name)
		assert.ErrorIs(t, err, command.ErrReadonly)
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
		assert.Empty(t, res.Stdout.String())
	}
}
