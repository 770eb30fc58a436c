package pipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// pair returns both ends of a pair of pipes.
func pair(t *testing.T, times pipe.Times) (near, far *pipe.Conn) { return pairOf(t, times, times) }

func pairOf(t *testing.T, ofNear, ofFar pipe.Times) (near, far *pipe.Conn) {
	t.Helper()
	r1, w1, err := os.Pipe()
	require.NoError(t, err)
	r2, w2, err := os.Pipe()
	require.NoError(t, err)
	near, far = pipe.New(nil, r2, w1, ofNear), pipe.New(nil, r1, w2, ofFar)
	t.Cleanup(func() {
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
	})
	return near, far
}

// serve serves on one end, and returns a client at the other, and what Serve returns.
func serve(t *testing.T, near, far *pipe.Conn, handler http.HandlerFunc) (*http.ClientConn, <-chan error) {
	t.Helper()
	over := make(chan error, 1)
	go func() { over <- pipe.Serve(context.Background(), far, handler) }()
	c, err := pipe.Client(testenv.Context(t), near)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close() // It may be closed.
		<-near.Done()
	})
	return c, over
}

// post sends a body, and returns the answer's.
func post(ctx context.Context, c *http.ClientConn, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://limpet"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // It is read.
	return io.ReadAll(resp.Body)
}

func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err == nil {
		_, _ = w.Write(b) // Whoever is gone misses nothing.
	}
}

func TestManyRequestsShareThePipe(t *testing.T) {
	near, far := pair(t, pipe.Times{})
	c, over := serve(t, near, far, echo)
	large := bytes.Repeat([]byte("x"), 8<<20)
	var all sync.WaitGroup
	for i := range 1200 { // More than there may be at once.
		all.Go(func() {
			want := fmt.Appendf(nil, "%d", i)
			if i%300 == 0 {
				want = large
			}
			got, err := post(testenv.Context(t), c, "/", want)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), i)
		})
	}
	all.Wait()
	require.NoError(t, near.Close())
	require.ErrorIs(t, <-over, io.EOF)
	_, err := post(testenv.Context(t), c, "/", nil)
	require.Error(t, err)
	require.ErrorIs(t, near.Err(), net.ErrClosed)
}

// An answer that nobody reads holds up no other one.
func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	near, far := pair(t, pipe.Times{})
	c, _ := serve(t, near, far, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/endless" {
			echo(w, r)
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	for range 3 {
		ctx, cancel := context.WithCancel(testenv.Context(t))
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://limpet/endless", nil)
		require.NoError(t, err)
		resp, err := c.RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close() // Nobody reads it.
	}
	for range 20 {
		got, err := post(testenv.Context(t), c, "/", []byte("hi"))
		require.NoError(t, err)
		require.Equal(t, "hi", string(got))
	}
}

var short = pipe.Times{Ping: 100 * time.Millisecond, Silence: 2 * time.Second}

func TestAPipeThatIsIdleStays(t *testing.T) {
	testenv.Slow(t)
	near, far := pair(t, short)
	c, _ := serve(t, near, far, echo)
	select {
	case <-near.Done():
		require.NoError(t, near.Err())
	case <-far.Done():
		require.NoError(t, far.Err())
	case <-time.After(2 * short.Silence):
	}
	_, err := post(testenv.Context(t), c, "/", nil)
	require.NoError(t, err)
}

func TestASilentSideIsGivenUp(t *testing.T) {
	testenv.Slow(t)
	near, _ := pairOf(t, short, pipe.Times{})
	c, err := pipe.Client(testenv.Context(t), near)
	require.NoError(t, err)
	defer c.Close() // It is closed.
	_, err = post(testenv.Context(t), c, "/", nil)
	require.Error(t, err)
	require.ErrorIs(t, near.Err(), pipe.ErrSilent)
}

func TestTheEndOfServeIsThatOfTheHandlers(t *testing.T) {
	near, far := pair(t, pipe.Times{})
	ctx, cancel := context.WithCancelCause(context.Background())
	begun, ended := make(chan struct{}), make(chan error, 1)
	over := make(chan error, 1)
	go func() {
		over <- pipe.Serve(ctx, far, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			time.Sleep(50 * time.Millisecond) // Serve waits.
			ended <- r.Context().Err()
		}))
	}()
	c, err := pipe.Client(testenv.Context(t), near)
	require.NoError(t, err)
	defer c.Close() // As above.
	asked := make(chan error, 1)
	go func() {
		_, err := post(context.Background(), c, "/", nil)
		asked <- err
	}()
	<-begun
	why := errors.New("it is over")
	cancel(why)
	require.ErrorIs(t, <-over, why)
	require.Len(t, ended, 1)
	require.Error(t, <-asked)
	<-near.Done()
	require.Error(t, near.ErrOf(c)) // Its end, or that it cannot be written to any more.
}

// Net/http tells of a connection that it gives up before it closes it.
func TestAConnectionThatIsGivenUpIsKnownToBeLost(t *testing.T) {
	for range testenv.Repeats(5, 10, 500) {
		near, far := pair(t, pipe.Times{})
		_, err := far.Write(make([]byte, 100)) // No HTTP/2.
		require.NoError(t, err)
		c, err := pipe.Client(testenv.Context(t), near)
		require.NoError(t, err)
		_, err = post(testenv.Context(t), c, "/", nil)
		require.Error(t, err)
		require.Error(t, near.ErrOf(c))
		require.NoError(t, far.Close())
		require.NoError(t, near.Close())
	}
}

func TestAnErrorOfOneRequestDoesNotWaitForTheConnection(t *testing.T) {
	near, far := pair(t, pipe.Times{})
	begun := make(chan struct{})
	c, _ := serve(t, near, far, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/wait":
			close(begun)
			<-r.Context().Done()
		default:
			echo(w, r)
		}
	})
	_, err := post(testenv.Context(t), c, "/abort", nil)
	require.Error(t, err)
	require.NoError(t, near.ErrOf(c))
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	go func() {
		<-begun
		cancel(errors.New("no patience"))
	}()
	_, err = post(ctx, c, "/wait", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, near.ErrOf(c))
	b, err := post(testenv.Context(t), c, "/", []byte("hi"))
	require.NoError(t, err)
	assert.Equal(t, "hi", string(b))
}
