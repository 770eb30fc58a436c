package command_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

func TestCollapseLeavesWhatATerminalWouldShow(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"no carriage return", "a\nb\n", "a\nb\n"},
		{"progress", "10%\r20%\r30%\n", "30%\n"},
		{"line ends of DOS", "a\r\nb\r\n", "a\nb\n"},
		{"two before the newline", "a\r\r\nb", "a\nb"},
		{"a shorter frame", "abcdef\rXY\n", "XYcdef\n"},
		{"a longer frame", "ab\rwxyz\n", "wxyz\n"},
		{"an empty frame", "abc\r\rX\n", "Xbc\n"},
		{"at the end without a newline", "50%\r100%\r", "100%"},
		{"runes, not bytes", "äöü\rx\n", "xöü\n"},
		{"only returns", "\r\r\r", ""},
		{"several lines", "1\r2\nplain\n3\r4", "2\nplain\n4"},
		{"bytes that are no UTF-8", "\xff\xfe1\r\xff\xfe2\n", "\xff\xfe2\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, string(command.Collapse([]byte(test.in))))
		})
	}
}

func TestCollapseDoesNotChangeItsArgument(t *testing.T) {
	in := []byte("abc\rX\nabc\rY\n")
	command.Collapse(in)
	assert.Equal(t, "abc\rX\nabc\rY\n", string(in))
}

func TestValidateSaysWhatCannotRun(t *testing.T) {
	for _, test := range []struct {
		name string
		req  command.Request
		is   error
		env  string // the Entry of an EnvError
	}{
		{"fine", command.Request{Script: "true", Env: []string{"A=", "_b1=x=y", "A=2", "UID=7"}, Unset: []string{"B", "A"}}, nil, ""},
		{"any other byte", command.Request{Script: "echo \x01\xff"}, nil, ""},
		{"the zero value", command.Request{}, command.ErrEmptyScript, ""},
		{"white space", command.Request{Script: " \n\t"}, command.ErrEmptyScript, ""},
		{"NUL in the script", command.Request{Script: "echo a\x00b"}, command.ErrNUL, ""},
		{"NUL in the directory", command.Request{Script: "true", Dir: "/\x00"}, command.ErrNUL, ""},
		{"no =", command.Request{Script: "true", Env: []string{"A=1", "NAME"}}, nil, "NAME"},
		{"no name", command.Request{Script: "true", Env: []string{"=x"}}, nil, ""},
		{"digit first", command.Request{Script: "true", Env: []string{"1A=x"}}, nil, "1A"},
		{"a dash", command.Request{Script: "true", Env: []string{"a-b=x"}}, nil, "a-b"},
		{"an injection", command.Request{Script: "true", Env: []string{"a;reboot;b=x"}}, nil, "a;reboot;b"},
		{"an array", command.Request{Script: "true", Env: []string{"a[$(reboot)]=x"}}, nil, "a[$(reboot)]"},
		{"a newline", command.Request{Script: "true", Env: []string{"A\n=x"}}, nil, "A\n"},
		{"a letter of another alphabet", command.Request{Script: "true", Env: []string{"Ä=x"}}, nil, "Ä"},
		{"never set", command.Request{Script: "true", Env: []string{"A=1", "PPID=1"}}, nil, "PPID"},
		{"nothing to unset", command.Request{Script: "true", Unset: []string{"A", ""}}, nil, ""},
		{"an array to unset", command.Request{Script: "true", Unset: []string{"A[0]"}}, nil, "A[0]"},
		{"an assignment to unset", command.Request{Script: "true", Unset: []string{"A=1"}}, nil, "A=1"},
		{"readonly to unset", command.Request{Script: "true", Unset: []string{"UID"}}, nil, "UID"},
		{"NUL in a value", command.Request{Script: "true", Env: []string{"A=secret\x00x"}}, nil, "A"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.req.Validate()
			fine := test.name == "fine" || test.name == "any other byte"
			if fine {
				require.NoError(t, err)
				return
			}
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
				return
			}
			var env *command.EnvError
			require.ErrorAs(t, err, &env)
			assert.Equal(t, test.env, env.Name)
			assert.Error(t, env.Err)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestExitErrorEndsWithTheLastLineOfStderr(t *testing.T) {
	stderr := func(s string) command.Output { return command.Output{Head: []byte(s), Total: int64(len(s))} }
	for _, test := range []struct {
		name string
		res  command.Result
		want string
	}{
		{"silent", command.Result{ExitCode: 1}, "command: exit status 1"},
		{"one line", command.Result{ExitCode: 2, Stderr: stderr("no such file\n")}, "command: exit status 2: no such file"},
		{"the last of many", command.Result{ExitCode: 127, Stderr: stderr("a\nb\nc\n\n")}, "command: exit status 127: c"},
		{"only white space", command.Result{ExitCode: 3, Stderr: stderr("\n \n")}, "command: exit status 3"},
		{"unknown", command.Result{ExitCode: command.CodeUnknown}, "command: exit status -1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.res.Err()
			require.EqualError(t, err, test.want)
			exit, ok := errors.AsType[*command.ExitError](err)
			require.True(t, ok)
			assert.Equal(t, test.res.ExitCode, exit.Result.ExitCode)
		})
	}
}

func TestExitCodeZeroIsNoError(t *testing.T) {
	res := command.Result{Stderr: command.Output{Head: []byte("warning\n"), Total: 8}}
	assert.NoError(t, res.Err())
}

func TestRestartSaysWhatWasRestoredAndWhatWasLost(t *testing.T) {
	var none *command.Restart
	for _, test := range []struct {
		name string
		r    *command.Restart
		want string
	}{
		{"nil", none, "no restart"},
		{"reason alone", &command.Restart{Reason: "why"}, "why"},
		{"nothing lost", &command.Restart{Reason: "why", Restored: []string{"a", "b"}}, "why"},
		{"nothing restored", &command.Restart{Reason: "why", Lost: []string{"c"}}, "why; lost: c"},
		{"both", &command.Restart{Reason: "why", Restored: []string{"a", "b"}, Lost: []string{"c"}}, "why; restored: a, b; lost: c"},
		{"failed", &command.Restart{Reason: "why", Restored: []string{"a"}, Err: errors.New("no bash")},
			"why; starting a new bash failed: no bash"},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, test.r.String()) })
	}
}

func TestProcessIsShownByPIDAndCommand(t *testing.T) {
	assert.Equal(t, "12 (sleep 5)", command.Process{PID: 12, Start: 99, Command: "sleep 5"}.String())
}

func TestErrorsNameTheRemedy(t *testing.T) {
	assert.ErrorContains(t, command.ErrNUL, "Stdin")
	assert.ErrorContains(t, command.ErrOmitted, "raise the output limit")
	assert.True(t, strings.HasPrefix((&command.EnvError{Name: "x", Err: command.ErrReadonly}).Error(), "command: "))
}
