package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a keeper sleeps for a second when it exits.
	if len(os.Args) == 3 && os.Args[1] == "keeper" {
		if err := keeper.Serve(os.Args[2], keeper.Program{Version: "test", Record: hangsAtTheEnd}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

// hangsAtTheEnd is a record whose disk stands still when a session is closed.
func hangsAtTheEnd(keeper.Spec) (func(context.Context, session.Record) error, error) {
	return func(_ context.Context, one session.Record) error {
		if one.Kind == session.CloseRecord {
			select {}
		}
		return nil
	}, nil
}

// A keeper that was told to end, and hangs, still says what its session is, and lets nobody have that.
func TestForceEndsAKeeperThatHangsWhileItCloses(t *testing.T) {
	ctx := testenv.Context(t)
	r, err := keeper.Open(testenv.TempDir(t))
	require.NoError(t, err)
	r.Version, r.Execute = "test", func(dir string) *exec.Cmd { return exec.Command(os.Args[0], "keeper", dir) }
	t.Cleanup(func() {
		if err := r.Kill(testenv.Context(t), "s"); !errors.Is(err, session.ErrNotFound) {
			require.NoError(t, err)
		}
	})
	k, err := r.Session(ctx, "s", &keeper.Spec{Dir: "/tmp", Audit: "hangs"})
	require.NoError(t, err)
	k.Disconnect()
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGTERM))
	testenv.Await(t, "it to be about to end", func() bool {
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		k, err := r.Session(soon, "s", nil)
		if err == nil {
			k.Disconnect()
		}
		return err != nil
	})
	list, err := r.List(ctx, false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NotNil(t, list[0].Info, "it answers")

	require.NoError(t, endByForce(ctx, r, list[0], 100*time.Millisecond))
	list, err = r.List(ctx, false)
	require.NoError(t, err)
	assert.Empty(t, list)
	k, err = r.Session(ctx, "s", &keeper.Spec{Dir: "/tmp"})
	require.NoError(t, err, "the name is free")
	k.Disconnect()
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGTERM))
	require.NoError(t, endByForce(ctx, r, keeper.Listed{Record: k.Record, Info: &session.Info{}}, testenv.Patience), "one that ends by itself meanwhile has ended")
}
