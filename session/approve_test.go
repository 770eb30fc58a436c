package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// approver lets scripts run where they were approved, refuses those that say no, and remembers what it was asked.
type approver struct {
	mu             sync.Mutex
	name           string
	used           bool
	asked          []session.Action
	heard          chan session.Action // each of them
	forks, changes int
}

var errNo = errors.New("no")

func (a *approver) Approve(_ context.Context, act session.Action) (func(string) bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, act)
	a.heard <- act
	if act.Script == "no" {
		return nil, errNo
	}
	return func(dir string) bool { return dir == act.Dir }, nil
}

func (a *approver) Changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes++
}

func (a *approver) Fork() session.Approver {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forks++
	return a
}

func approving(t *testing.T) (*session.Registry, *approver) {
	a := &approver{heard: make(chan session.Action, 100)}
	return registry(t, &session.Options{Approve: func(s session.Approved) session.Approver {
		a.name, a.used = s.Name, s.Used
		return a
	}}), a
}

func TestAllThatRunsIsApproved(t *testing.T) {
	r, a := approving(t)
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	dir := testenv.TempDir(t)
	_, err := s.Run(ctx, "cd "+dir)
	require.NoError(t, err)
	assert.Equal(t, "s", a.name)
	assert.False(t, a.used)
	for name, do := range map[string]func(script string) error{
		"a command": func(script string) error {
			_, err := s.Do(ctx, command.Request{Script: script, Dir: "sub", Env: []string{"A=b"}, Unset: []string{"C"}})
			return err
		},
		"a job": func(script string) error {
			_, err := s.StartJob(ctx, jobs.Spec{Command: script, Dir: "sub"})
			return err
		},
		"a terminal": func(script string) error { _, err := s.StartTerminal(ctx, terminal.Spec{Line: script}); return err },
		"a program": func(script string) error {
			_, err := s.StartTerminal(ctx, terminal.Spec{Argv: []string{script}})
			return err
		},
		"input": func(script string) error { return s.Approve(ctx, "job-1", script) },
	} {
		err := do("no")
		require.ErrorIs(t, err, errNo, name)
		_, refused := errors.AsType[*shell.RefusedError](err)
		assert.True(t, refused, name)
		last := a.asked[len(a.asked)-1]
		assert.Equal(t, name != "input", last.Live != nil, name)
		last.Live = nil
		assert.Equal(t, "s", last.Session, name)
		switch name {
		case "a command":
			assert.Equal(t, session.Action{
				Session: "s", Kind: session.RunAction, Script: "no", Dir: filepath.Join(dir, "sub"), Env: []string{"A=b"}, Unset: []string{"C"},
			}, last)
		case "a job":
			assert.Equal(t, filepath.Join(dir, "sub"), last.Dir)
		case "input":
			assert.Equal(t, session.Action{Session: "s", Kind: session.InputAction, Script: "no", Input: "job-1"}, last)
		default:
			assert.Equal(t, dir, last.Dir, name)
		}
	}
}

// What waited behind another command is in another directory than the one for which it was approved.
func TestWhatWaitedForItsTurnIsApprovedAnewIfThingsAreOtherwise(t *testing.T) {
	r, a := approving(t)
	s := open(t, r, "s")
	ctx := testenv.Context(t)
	dir := testenv.TempDir(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	_, err := s.Run(ctx, "cd "+dir)
	require.NoError(t, err)
	<-a.heard
	var both sync.WaitGroup
	both.Go(func() {
		_, err := s.Run(ctx, "cd sub; cat ../fifo")
		assert.NoError(t, err)
	})
	<-a.heard
	fifo, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_WRONLY, 0) // It runs then.
	require.NoError(t, err)
	both.Go(func() {
		res, err := s.Run(ctx, "pwd")
		assert.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, "sub")+"\n", string(res.Stdout.Bytes()))
	})
	assert.Equal(t, dir, (<-a.heard).Dir)
	require.NoError(t, fifo.Close())
	assert.Equal(t, filepath.Join(dir, "sub"), (<-a.heard).Dir, "it is asked about anew")
	both.Wait()
}

func TestAForkIsDecidedAboutAsItsOrigin(t *testing.T) {
	r, a := approving(t)
	s := open(t, r, "s")
	_, err := s.Fork(testenv.Context(t), "fork")
	require.NoError(t, err)
	assert.Equal(t, 1, a.forks)
	assert.Equal(t, "s", a.name, "nobody else was asked for")
	state, err := s.State(testenv.Context(t))
	require.NoError(t, err)
	_, err = r.Open(testenv.Context(t), "other", &session.Spec{State: &state})
	require.NoError(t, err)
	assert.Equal(t, "other", a.name)
	assert.True(t, a.used, "it begins with the state of another")
}
