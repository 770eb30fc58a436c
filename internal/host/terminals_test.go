package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// startTerminal starts a line on a terminal of a session, and returns it as it is seen from here.
func startTerminal(t *testing.T, s *keeper.Kept, spec terminal.Spec) *remote.Terminal {
	t.Helper()
	info, err := s.StartTerminal(testenv.Context(t), spec)
	require.NoError(t, err)
	client := s.Terminals()
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client.Terminal(info.ID)
}

// The connection is cut at random moments, while a program prints. Who follows it has all of that, once, and its end; who waits for it, and looks, is
// answered.
func TestCutsWhileATerminalIsFollowed(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sharing(t)
	everyWay(t, followATerminal)
}

func followATerminal(t *testing.T, m machine) {
	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 4))
	for _, share := range []bool{false, true} {
		var cuts atomic.Int64
		h := dial(t, m.target, &host.Options{Share: share, Times: short, Lost: func(error) { cuts.Add(1) }})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		for round := range testenv.Repeats(2, 3, 50) {
			what := fmt.Sprintf("shared: %v, round %d", share, round)
			one := startTerminal(t, s, terminal.Spec{Line: "for i in {1..100}; do seq 1000; sleep 0.003; done; exit 3", BufferLimit: 8 << 20})
			v, err := one.Attach(0)
			require.NoError(t, err, what)
			var beside sync.WaitGroup
			beside.Go(func() {
				for range 1 + random.IntN(3) {
					time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
					m.kill(connectOf(h))
				}
			})
			beside.Go(func() {
				got, err := one.Wait(testenv.Context(t), terminal.WaitOptions{Timeout: testenv.Patience})
				assert.NoError(t, err, what)
				assert.Equal(t, terminal.WaitExited, got.Reason, what)
			})
			var out bytes.Buffer
			for {
				c, err := v.Next(testenv.Context(t))
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err, what)
				require.Zero(t, c.Missed, what)
				require.EqualValues(t, out.Len(), c.Offset, what)
				out.Write(c.Data)
			}
			beside.Wait()
			require.NoError(t, v.Close())
			info, err := one.Info()
			require.NoError(t, err, what)
			assert.Equal(t, 3, info.Exit.Code, what)
			lines := strings.Count(out.String(), "\r\n1000\r\n")
			assert.Equal(t, 100, lines, what)
			assert.EqualValues(t, info.Bytes, out.Len(), what)
		}
		t.Logf("shared: %v, %d cuts", share, cuts.Load())
		assert.Positive(t, cuts.Load())
		require.NoError(t, h.Disconnect())
	}
}

// What is asked while nobody can be reached waits, and goes on; what is not kept of what was printed meanwhile is said to be missed.
func TestATerminalIsAskedWhenTheConnectionIsBack(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	target, to := switched(t)
	there := "exec " + strings.TrimPrefix(m.target, "exec:")
	to(there)
	h := dial(t, target, nil)
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	dir := testenv.TempDir(t)
	one := startTerminal(t, s, terminal.Spec{Line: "echo ready; until [[ -e " + dir + "/go ]]; do sleep 0.01; done; seq 100000; read -r x; echo got $x", BufferLimit: 1})
	ctx := testenv.Context(t)
	_, err = one.Wait(ctx, terminal.WaitOptions{Text: "ready"})
	require.NoError(t, err)
	v, err := one.Attach(0)
	require.NoError(t, err)
	c, err := v.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "ready\r\n", string(c.Data))

	to("exit 1")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	read := make(chan terminal.Chunk, 1)
	go func() {
		c, err := v.Next(ctx)
		assert.NoError(t, err)
		read <- c
	}()
	asked := make(chan error, 1)
	go func() {
		_, err := one.Wait(ctx, terminal.WaitOptions{Pattern: `(?m)^100000$`})
		asked <- err
	}()
	require.NoError(t, syscall.Mknod(dir+"/go", syscall.S_IFREG|0o600, 0))
	time.Sleep(time.Second) // Nobody is there to say that all is printed.
	to(there)
	require.NoError(t, <-asked)
	c = <-read
	assert.Positive(t, c.Missed)
	assert.Equal(t, c.Offset, c.Missed+int64(len("ready\r\n")))
	require.NoError(t, v.Close())
	_, err = one.Write([]byte("typed\r"))
	require.NoError(t, err)
	got, err := one.Wait(ctx, terminal.WaitOptions{})
	require.NoError(t, err)
	assert.Equal(t, "got typed", got.Info.LastLine)
}

// Who gives up does not wait until the connection is back.
func TestWhoWaitsForATerminalCanGiveUp(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	target, to := switched(t)
	to("exec " + strings.TrimPrefix(m.target, "exec:"))
	h := dial(t, target, nil)
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	one := startTerminal(t, s, terminal.Spec{Line: "exec tail -f /dev/null"})
	client := s.Terminals()
	v, err := one.Attach(0)
	require.NoError(t, err)
	to("exec sleep 1000")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	began := time.Now()
	ctx, cancel := context.WithTimeout(testenv.Context(t), 300*time.Millisecond)
	defer cancel()
	_, err = one.Wait(ctx, terminal.WaitOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = v.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, v.Close())
	called := make(chan error, 1)
	go func() {
		_, err := client.Terminal(one.ID()).Screen() // It has no context.
		called <- err
	}()
	time.Sleep(50 * time.Millisecond) // It waits, or is about to.
	require.NoError(t, client.Close())
	require.ErrorIs(t, <-called, terminal.ErrClosed)
	require.NoError(t, h.Disconnect())
	assert.Less(t, time.Since(began), 15*time.Second)
}

// A keeper that is gone is no connection that is lost; and what it has left can be read, without another one.
func TestTheTerminalsOfASessionThatHasEnded(t *testing.T) {
	m := machineOf(t, "sh")
	h := dial(t, m.target, nil)
	ctx := testenv.Context(t)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	one := startTerminal(t, s, terminal.Spec{Line: "echo $((6 * 7)); exec tail -f /dev/null"})
	_, err = one.Wait(ctx, terminal.WaitOptions{Text: "42"})
	require.NoError(t, err)
	v, err := one.Attach(0)
	require.NoError(t, err)
	require.NoError(t, h.Close(ctx, s))
	for err == nil {
		_, err = v.Next(ctx)
	}
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, terminal.ErrClosed) || errors.Is(err, remote.ErrGone), "%v", err) // As it was seen.
	require.NoError(t, v.Close())
	_, err = one.Info()
	require.ErrorIs(t, err, remote.ErrGone)
	require.NotErrorIs(t, err, remote.ErrUnreachable)

	left := h.Terminals("s")
	defer left.Close() // It cannot fail.
	list, err := left.ListAll(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, terminal.Cancelled, list[0].State)
	screen, err := left.Terminal(one.ID()).Screen()
	require.NoError(t, err)
	assert.Contains(t, screen.Text(), "42")
	require.NoError(t, left.Forget(ctx, one.ID()))
	_, err = h.Session(ctx, "s", nil)
	require.ErrorIs(t, err, session.ErrNotFound)

	none := h.Terminals("none")
	defer none.Close() // As above.
	_, err = none.ListAll(ctx)
	require.ErrorIs(t, err, session.ErrNotFound)
	odd := h.Terminals("../s")
	defer odd.Close() // As above.
	_, err = odd.ListAll(ctx)
	require.ErrorIs(t, err, session.ErrName)
}
