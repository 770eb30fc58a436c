package session_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// looks is a session in a directory of its own.
func looks(t *testing.T) (*session.Session, string) {
	t.Helper()
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r, err := session.New(&session.Options{Shell: &shell.Options{Dir: dir, RuntimeDir: testenv.TempDir(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	s, err := r.Open(testenv.Context(t), "s", nil)
	require.NoError(t, err)
	return s, dir
}

func TestACommandThatReliesOnALookRunsInThatStateAlone(t *testing.T) {
	ctx := testenv.Context(t)
	s, dir := looks(t)
	require.NoError(t, s.Checkpoint(ctx, "before"))
	for name, between := range map[string]func() error{
		"a command":  func() error { _, err := s.Run(ctx, "ls() { :; }"); return err },
		"a reset":    func() error { return s.Reset(ctx) },
		"a rollback": func() error { _, err := s.Rollback(ctx, "before"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			seen, err := s.Look(ctx)
			require.NoError(t, err)
			require.Equal(t, dir, seen.Dir)
			require.NoError(t, between())
			res, err := s.DoAt(ctx, seen.Mark, command.Request{Script: "touch made"})
			require.ErrorIs(t, err, session.ErrStateChanged)
			require.Equal(t, command.CodeUnknown, res.ExitCode)
			require.NoFileExists(t, filepath.Join(dir, "made"))
		})
	}
	seen, err := s.Look(ctx)
	require.NoError(t, err)
	again, err := s.Look(ctx)
	require.NoError(t, err)
	require.Equal(t, seen.Mark, again.Mark, "a look changes nothing")
	_, err = s.DoAt(ctx, seen.Mark, command.Request{Script: "touch made"})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "made"))
	_, err = s.DoAt(ctx, seen.Mark, command.Request{Script: "touch twice"})
	require.ErrorIs(t, err, session.ErrStateChanged)
	require.NoFileExists(t, filepath.Join(dir, "twice"))
}

// The mark counts when the command has its turn, and not when it is asked for.
func TestACommandThatWaitsBehindAnotherOneDoesNotRelyOnTheLookBefore(t *testing.T) {
	ctx := testenv.Context(t)
	s, dir := looks(t)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	seen, err := s.Look(ctx)
	require.NoError(t, err)
	first := make(chan error, 1)
	go func() { _, err := s.Run(ctx, "read x <fifo; ls() { touch made; }"); first <- err }()
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // It waits until the command reads, and so has the turn.
	require.NoError(t, err)
	second := make(chan error, 1)
	go func() {
		_, err := s.DoAt(ctx, seen.Mark, command.Request{Script: "ls"})
		second <- err
	}()
	require.NoError(t, f.Close())
	require.NoError(t, <-first)
	require.ErrorIs(t, <-second, session.ErrStateChanged)
	require.NoFileExists(t, filepath.Join(dir, "made"))
}
