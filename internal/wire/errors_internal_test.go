package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/transport"
)

// travel sends an error there.
func travel(t *testing.T, err error) error {
	t.Helper()
	b, failed := json.Marshal(pack(err))
	require.NoError(t, failed)
	var n *node
	require.NoError(t, json.Unmarshal(b, &n))
	return n.unpack()
}

func TestErrorsAreTheSameElsewhere(t *testing.T) {
	_, noFile := os.Open("/no/such/file")
	stopped, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-stopped.Done()
	outcome := interrupt.Outcome{Signalled: []command.Process{{PID: 7, Start: 99, Command: "sleep 5"}}, ShellSurvived: true}
	inner := fmt.Errorf("as the disk is full: %w", syscall.ENOSPC)
	for _, err := range []error{
		errors.New("plain"),
		fmt.Errorf("one: %w", errors.New("two")),
		fmt.Errorf("%w and %w", shell.ErrTimeout, session.ErrExists),
		errors.Join(shell.ErrBusy, errors.New("two\nlines")),
		noFile,
		syscall.ENOENT,
		&session.Error{Op: "open", Session: "a b", Err: session.ErrTooMany, Remedy: "close one"},
		&session.BackgroundError{Cause: shell.ErrHandedOver, Job: jobs.Job{ID: "job-a", Command: "a", State: jobs.Running, Started: time.Unix(5, 0).UTC()}},
		&jobs.Error{Op: "poll", ID: "a", Err: jobs.ErrNotFound},
		&jobs.OwnedError{PID: 5},
		&terminal.Error{Op: "start", Err: errors.New("x"), Remedy: "y"},
		interrupt.NewError(stopped, context.Cause(stopped), outcome),
		interrupt.NewError(t.Context(), fmt.Errorf("%w after 3 s", shell.ErrIdle), outcome),
		interrupt.NewRefusal(shell.ErrInterrupted),
		&shell.DeadError{Argv: []string{"bash", "-i"}, Code: -1, Signal: syscall.SIGKILL, Said: "it said", Reason: ""},
		&EndedError{Code: 7},
		fmt.Errorf("%w: %w", ErrGone, ErrMayHaveRun),
		command.ErrID,
		&shell.RefusedError{Err: errors.New("no")},
		&transport.StartError{Argv: []string{"bash"}, Code: -1, Err: &transport.NoBashError{Err: fs.ErrNotExist}, Remedy: "install it"},
		&transport.DirError{Dir: "/x", Err: syscall.ENOTDIR},
		&ipc.DiskError{Dir: "/x", Err: inner},
		&command.EnvError{Name: "A", Err: command.ErrReadonly},
		&command.LadderError{Step: 3, Reason: "why"},
		command.Request{Script: "a", Dir: "\x00"}.Validate(),
		&sandbox.Error{Code: sandbox.ErrNoBackend, Detail: "none", Hint: "install it", Said: "x"},
		errors.Join(&shell.DirError{Dir: "/", Err: fs.ErrPermission}, &session.Error{Op: "x", Err: shell.ErrClosed}),
	} {
		got := travel(t, err)
		assert.Equal(t, err.Error(), got.Error(), "%T", err)
		for _, s := range sentinels {
			assert.Equal(t, errors.Is(err, s.err), errors.Is(got, s.err), "%T is %s", err, s.name)
		}
		assert.Equal(t, err.Error(), travel(t, got).Error(), "%T: twice", err)
		if pack(err).Kind != "" {
			assert.IsType(t, err, got)
		}
	}
	require.NoError(t, travel(t, nil))
	kept := travel(t, fmt.Errorf("outside: %w", &shell.DeadError{Argv: []string{"bash"}, Code: 3}))
	dead, ok := errors.AsType[*shell.DeadError](kept)
	require.True(t, ok)
	assert.Equal(t, &shell.DeadError{Argv: []string{"bash"}, Code: 3}, dead)
}

// deep wraps an error in itself, as it were.
func deep(n int) (err error) {
	err = errors.New("end")
	for range n {
		err = fmt.Errorf("x %w", err)
	}
	return err
}

func TestAnErrorOfAnySizeTravels(t *testing.T) {
	err := deep(1000)
	assert.Equal(t, err.Error(), travel(t, err).Error())
	var many []error
	for range 1000 {
		many = append(many, shell.ErrTimeout)
	}
	assert.Equal(t, errors.Join(many...).Error(), travel(t, errors.Join(many...)).Error())
}

// A peer of another version, or a hostile one, makes errors that nobody here has made.
func TestErrorsThatNobodyMadeAreTexts(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"text":"a"}`, `{"text":"a","is":["closed","no such"]}`, `{"text":"a","kind":"session"}`, `{"text":"a","kind":"session","of":{}}`,
		`{"text":"a","kind":"session","of":[1]}`, `{"text":"a","kind":"no such","of":{},"wraps":[{"text":"b"}]}`, `{"text":"a","join":true}`,
		`{"text":"a","join":true,"wraps":[{"text":"b"}]}`, `{"text":"a","kind":"disk","of":{}}`, `{"text":"a","wraps":[null,{"text":"b"}]}`,
		`{"text":"a","kind":"stopped","of":{},"wraps":[]}`, `{"text":"a","kind":"background","of":{},"wraps":[]}`,
	} {
		var n *node
		require.NoError(t, json.Unmarshal([]byte(text), &n), text)
		err := n.unpack()
		require.Error(t, err, text)
		assert.Equal(t, n.Text, err.Error(), text)
		_ = errors.Is(err, session.ErrClosed)
		_ = fmt.Sprintf("%+v", err)
	}
}

func TestAResultIsTheSameElsewhere(t *testing.T) {
	res := command.Result{
		ExitCode: 3, Stdout: command.Output{Head: []byte("a\xff"), Tail: []byte("b"), Total: 99, Path: "/x"}, Stderr: command.Output{Total: 0}, Dir: "/d",
		Started: time.Unix(5, 7).UTC(), Elapsed: time.Second, Denied: "no network",
		Receipt: command.Receipt{
			Pipeline: []int{0, 3}, Signal: syscall.SIGTERM, User: 1, System: 2, Leftover: []command.Process{{PID: 1, Start: 1 << 63, Command: "x"}}, NotKept: []string{"y"},
		},
		Restart: &command.Restart{Reason: "why", Restored: []string{"a"}, Lost: []string{"b"}, Err: shell.ErrTimeout},
	}
	b, err := json.Marshal(last{Result: resultOf(res)})
	require.NoError(t, err)
	var got last
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Equal(t, res, got.Result.value())
}

func TestARequestIsTheSameElsewhere(t *testing.T) {
	req := command.Request{
		Script: "a", Dir: "b", Env: []string{"C=d"}, Unset: []string{"E"}, Timeout: 1, IdleTimeout: -1, Ladder: command.Ladder{{Signal: syscall.SIGTERM, Grace: 5}},
		HandOver: true, HandOverAfter: 6, TurnTimeout: 7, MergeStderr: true,
	}
	b, err := json.Marshal(requestOf("id", req))
	require.NoError(t, err)
	var got request
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Equal(t, req, got.value())
}
