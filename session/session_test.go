package session_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

func TestASessionKeepsItsStateAndNoOtherSeesIt(t *testing.T) {
	r := registry(t, nil)
	a, b := open(t, r, "a"), open(t, r, "b")
	run(t, a, "cd /tmp; x=1; f() { echo f; }; export E=e; set -f")
	assert.Equal(t, "/tmp 1 f e", says(t, a, "echo $PWD $x $(f) $E"))
	assert.Equal(t, "none none none", says(t, b, "echo ${x-none} $(type -t f || echo none) ${E-none}"))
	assert.NotEqual(t, "/tmp", says(t, b, "pwd"))
	assert.Same(t, a, open(t, r, "a"))
}

func TestASessionStartsNothingUntilItIsUsed(t *testing.T) {
	testenv.NeedProc(t)
	r := registry(t, nil)
	before := len(testenv.Children())
	s := open(t, r, "new")
	assert.Equal(t, session.Unused, info(t, s).State)
	assert.Equal(t, s.Dir(), info(t, s).Dir)
	assert.NotEmpty(t, s.Dir())
	assert.Len(t, testenv.Children(), before)
	ran, err := s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	assert.False(t, ran)
	require.NoError(t, s.Close())
	assert.Len(t, testenv.Children(), before)
}

func TestFirstUsesAtTheSameTimeShareOneShell(t *testing.T) {
	s := open(t, registry(t, nil), "s")
	pids := make([]string, 8)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			res, err := s.Run(testenv.Context(t), "echo $$")
			assert.NoError(t, err)
			pids[i] = res.Stdout.String()
		})
	}
	all.Wait()
	for _, pid := range pids {
		assert.Equal(t, pids[0], pid)
	}
}

func TestManyCallersOfManySessionsNeverMix(t *testing.T) {
	r := registry(t, nil)
	var all sync.WaitGroup
	for i := range 5 {
		for j := range 10 {
			all.Go(func() {
				s, err := r.Open(testenv.Context(t), fmt.Sprintf("s%d", i), nil)
				if !assert.NoError(t, err) {
					return
				}
				res, err := s.Run(testenv.Context(t), fmt.Sprintf("own=${own-%d}; n=$((n+1)); echo $own %d", i, j))
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%d %d\n", i, j), res.Stdout.String())
			})
		}
	}
	all.Wait()
	for _, info := range r.List() {
		assert.Equal(t, 10, info.Commands)
		assert.Equal(t, session.Idle, info.State)
		assert.Equal(t, "10", says(t, open(t, r, info.Name), "echo $n"))
	}
	assert.Len(t, r.List(), 5)
}

func TestTheLimitNamesTheSessionsThatThereAre(t *testing.T) {
	r := registry(t, &session.Options{MaxSessions: 2})
	open(t, r, "one")
	two := open(t, r, "two")
	_, err := r.Open(testenv.Context(t), "three", nil)
	require.ErrorIs(t, err, session.ErrTooMany)
	assert.ErrorContains(t, err, "close one: there are one, two")
	_, err = two.Fork(testenv.Context(t), "three")
	require.ErrorIs(t, err, session.ErrTooMany)
	open(t, r, "two")
	require.NoError(t, two.Close())
	open(t, r, "three")
}

func TestNamesThatCannotBe(t *testing.T) {
	r := registry(t, nil)
	for _, name := range []string{"", ".", "../x", "a b", "a/b", "-x", "ü", "a\n", string(make([]byte, 65))} {
		_, err := r.Open(testenv.Context(t), name, nil)
		assert.ErrorIs(t, err, session.ErrName, "%q", name)
	}
	_, err := r.Get("nobody")
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestInterruptStopsWhatRunsAndKeepsTheState(t *testing.T) {
	s := open(t, registry(t, nil), "s")
	run(t, s, "x=1")
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(testenv.Context(t), "echo >"+begun+"; while :; do :; done")
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	now := info(t, s)
	assert.Equal(t, session.Busy, now.State)
	assert.Contains(t, now.Running, "while")
	ran, err := s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	assert.True(t, ran)
	require.ErrorIs(t, <-done, shell.ErrInterrupted)
	assert.Equal(t, "1", says(t, s, "echo $x"))
}

func TestCloseEndsWhatRunsAndTheNameIsFreeAtOnce(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	run(t, s, "x=1")
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(testenv.Context(t), "echo >"+begun+"; sleep 1000")
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() { assert.NoError(t, s.Close()) })
	}
	next, err := r.Open(testenv.Context(t), "s", nil) // It waits for the old one.
	require.NoError(t, err)
	closing.Wait()
	require.ErrorIs(t, <-done, session.ErrClosed)
	_, err = s.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, session.ErrClosed)
	if next == s { // It was found before it began to close.
		next = open(t, r, "s")
	}
	assert.Equal(t, "gone", says(t, next, "echo ${x-gone}"))
}

func TestCloseEndsAStartThatHangs(t *testing.T) {
	dir := testenv.TempDir(t)
	hang := filepath.Join(dir, "hang")
	begun := filepath.Join(dir, "begun")
	write(t, hang, "echo >"+begun+"; sleep 1000\n")
	r := registry(t, &session.Options{Shell: &shell.Options{Dir: dir, InitFiles: []string{hang}, StartTimeout: time.Hour}})
	s := open(t, r, "s")
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), "true")
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, session.ErrClosed)
}

func TestAStartThatFailsIsTriedAgain(t *testing.T) {
	dir := testenv.TempDir(t)
	init := filepath.Join(dir, "init")
	r := registry(t, &session.Options{Shell: &shell.Options{Dir: dir, InitFiles: []string{init}}})
	s := open(t, r, "s")
	_, err := s.Run(testenv.Context(t), "true")
	_, ok := errors.AsType[*shell.StartError](err)
	require.True(t, ok, "%v", err)
	write(t, init, "x=1\n")
	assert.Equal(t, "1", says(t, s, "echo $x"))
}

func TestTheRegistryIsClosedOnce(t *testing.T) {
	r := registry(t, nil)
	s := open(t, r, "s")
	run(t, s, "sleep 1000 &")
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() { assert.NoError(t, r.Close()) })
	}
	closing.Wait()
	_, err := r.Open(testenv.Context(t), "s", nil)
	require.ErrorIs(t, err, session.ErrClosed)
	_, err = r.Jobs()
	require.ErrorIs(t, err, session.ErrClosed)
	_, err = r.Terminals()
	require.ErrorIs(t, err, session.ErrClosed)
	assert.Empty(t, r.List())
}

func TestAWaitForTheTurnEndsWithItsContext(t *testing.T) {
	s := open(t, registry(t, nil), "s")
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	res, err := s.Run(ctx, "echo no")
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
}
