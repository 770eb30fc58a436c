package wire_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

func TestACommandThatReliesOnALookIsRefusedBehindOneOfAnotherClient(t *testing.T) {
	testenv.NeedProc(t)
	ctx := testenv.Context(t)
	served := serve(t, "socket")
	one, other := served.client(t).Session("s"), served.client(t).Session("s")
	seen, err := one.Look(ctx)
	require.NoError(t, err)
	require.NotContains(t, seen.State.Functions, "ls")
	_, err = other.Run(ctx, "ls() { touch made; }")
	require.NoError(t, err)
	req := command.Request{Script: "echo ran >>runs"}
	_, err = one.DoAt(ctx, seen.Mark, req)
	require.ErrorIs(t, err, session.ErrStateChanged)

	seen, err = one.Look(ctx)
	require.NoError(t, err)
	require.Contains(t, seen.State.Functions, "ls")
	res, err := one.DoAt(ctx, seen.Mark, req)
	require.NoError(t, err)
	require.Zero(t, res.ExitCode)
	runs, err := os.ReadFile(filepath.Join(seen.Dir, "runs"))
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(runs))
}

// A program that knows no marks would run the command in whatever state.
func TestAnOlderProgramIsNotLookedAtAndRunsNothingThatReliesOnALook(t *testing.T) {
	ctx := testenv.Context(t)
	served := serve(t, "pipe")
	handler := wire.NewHandler(served.sessions, wire.Hello{Version: "test", PID: os.Getpid()})
	older := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/at/") || strings.HasSuffix(r.URL.Path, "/look") {
			wire.Answer(w, nil, errors.New("there is no such path here"))
			return
		}
		handler.ServeHTTP(w, r)
	})
	l := listenPipes()
	server := socket.NewServer(older, wire.Refuse)
	server.Serve(l)
	t.Cleanup(func() {
		handler.Close()
		server.Close(session.ErrClosed)
	})
	c := wire.NewClient(l.dial)
	t.Cleanup(c.Disconnect)
	s := c.Session("s")
	_, err := s.Look(ctx)
	require.ErrorContains(t, err, "there is no such path here")
	_, err = s.DoAt(ctx, "mark", command.Request{Script: "touch made"})
	require.ErrorContains(t, err, "there is no such path here")
	info, err := s.Info(ctx)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(info.Dir, "made"))
	require.Zero(t, info.Commands)
}

// JSON makes another text of bytes that are no UTF-8: names would be looked for in another directory than by bash.
func TestAStateThatJSONCannotHaveIsNotLookedAt(t *testing.T) {
	testenv.NeedProc(t)
	ctx := testenv.Context(t)
	s := serve(t, "socket").client(t).Session("s")
	_, err := s.Look(ctx)
	require.NoError(t, err)
	_, err = s.Run(ctx, `PATH=$'/tmp/a\xff:'$PATH`)
	require.NoError(t, err)
	_, err = s.Look(ctx)
	require.ErrorContains(t, err, "cannot be looked at")
}
