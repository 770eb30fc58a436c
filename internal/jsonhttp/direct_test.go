package jsonhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var (
	errGone        = errors.New("gone")
	errUnreachable = errors.New("unreachable")
	errClosed      = errors.New("closed")
)

// program answers at a socket, and counts connections.
type program struct {
	path  string
	dials atomic.Int32
	conns chan net.Conn // of the server; nil: nobody wants them
	c     *jsonhttp.Client
}

// serve has a handler answer a client with a Direct.
func serve(t *testing.T, handler http.HandlerFunc) *program {
	t.Helper()
	p := &program{path: filepath.Join(testenv.TempDir(t), "s"), conns: make(chan net.Conn, 100)}
	l, err := net.Listen("unix", p.path)
	require.NoError(t, err)
	s := &http.Server{Handler: handler, ConnState: func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.conns <- c
		}
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		<-served
	})
	p.c = p.client(t)
	return p
}

// client is one of its own.
func (p *program) client(t *testing.T) *jsonhttp.Client {
	t.Helper()
	direct := jsonhttp.NewDirect(func(ctx context.Context) (net.Conn, error) {
		p.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "unix", p.path)
	})
	c := jsonhttp.NewClient(direct, jsonhttp.Errors{
		Gone: errGone, Unreachable: errUnreachable, Closed: errClosed, Said: func(b []byte) error { return errors.New(string(b)) },
	})
	t.Cleanup(c.Close)
	return c
}

// echo answers with what comes.
func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body) // Else the answer is not what is expected.
	jsonhttp.Write(w, http.StatusOK, string(b))
}

// ask sends a text, and reads the answer.
func (p *program) ask(t *testing.T, text string, again bool) (answer string, err error) {
	t.Helper()
	err = p.c.Call(testenv.Context(t), jsonhttp.Request{Method: http.MethodPost, Content: []byte(text), Again: again}, &answer)
	return answer, err
}

func TestRequestsTakeTheSameConnection(t *testing.T) {
	p := serve(t, echo)
	for _, text := range []string{"a", strings.Repeat("b", 1<<20), "", "c"} {
		answer, err := p.ask(t, text, true)
		require.NoError(t, err)
		assert.Equal(t, text, answer)
	}
	assert.EqualValues(t, 1, p.dials.Load())
}

func TestWhatMayNotBeSentTwiceHasAConnectionOfItsOwn(t *testing.T) {
	p := serve(t, echo)
	_, err := p.ask(t, "a", true)
	require.NoError(t, err)
	require.NoError(t, (<-p.conns).Close())
	answer, err := p.ask(t, "b", false)
	require.NoError(t, err)
	assert.Equal(t, "b", answer)
	assert.EqualValues(t, 2, p.dials.Load())
}

func TestAnIdleConnectionThatWasClosedCostsNothing(t *testing.T) {
	p := serve(t, echo)
	_, err := p.ask(t, "a", true)
	require.NoError(t, err)
	require.NoError(t, (<-p.conns).Close())
	answer, err := p.ask(t, "b", true)
	require.NoError(t, err)
	assert.Equal(t, "b", answer)
	assert.EqualValues(t, 2, p.dials.Load())
}

func TestAProgramThatIsGoneIsSaidToBe(t *testing.T) {
	p := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := p.ask(t, "a", true)
	require.ErrorIs(t, err, errGone)
	assert.True(t, jsonhttp.Sent(err))
	assert.EqualValues(t, 1, p.dials.Load(), "a new connection that breaks is not tried again")
	require.NoError(t, os.Remove(p.path))
	_, err = p.ask(t, "a", true)
	require.ErrorIs(t, err, errGone)
	assert.False(t, jsonhttp.Sent(err))
}

func TestTheEndOfAContextEndsAnExchange(t *testing.T) {
	asked, cause := make(chan struct{}, 2), errors.New("enough")
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/body" {
			assert.NoError(t, http.NewResponseController(w).Flush())
		}
		asked <- struct{}{}
		<-r.Context().Done()
	})
	for _, path := range []string{"/header", "/body"} {
		ctx, cancel := context.WithCancelCause(testenv.Context(t))
		go func() {
			<-asked
			cancel(cause)
		}()
		a, err := p.c.Open(ctx, jsonhttp.Request{Method: http.MethodGet, Path: path, Again: true})
		if err == nil {
			err = a.Decode(new(string))
		}
		require.ErrorIs(t, err, cause, path)
	}
	assert.EqualValues(t, 2, p.dials.Load(), "a connection whose exchange was given up is not used again")
}

func TestCloseEndsAReadOfABody(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, http.NewResponseController(w).Flush())
		<-r.Context().Done()
	})
	a, err := p.c.Open(testenv.Context(t), jsonhttp.Request{Method: http.MethodGet})
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(a.Body)
		over <- err
	}()
	a.Close()
	require.Error(t, <-over)
	a.Close()
}

func TestAnAnswerThatComesBeforeAllWasSentIsRead(t *testing.T) {
	testenv.Slow(t)
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := jsonhttp.Body(w, r, 10)
		assert.ErrorIs(t, err, jsonhttp.ErrTooLarge)
		http.Error(w, "too much", http.StatusBadRequest)
	})
	_, err := p.ask(t, strings.Repeat("a", 8<<20), true)
	require.ErrorContains(t, err, "too much")
}

func TestAHeaderOfAnySizeIsNotRead(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2<<20))
	})
	_, err := p.ask(t, "a", true)
	require.ErrorIs(t, err, errUnreachable)
	require.ErrorContains(t, err, "header")
}

func TestIdleConnectionsAreClosedWithTheClient(t *testing.T) {
	p := serve(t, echo)
	_, err := p.ask(t, "a", true)
	require.NoError(t, err)
	p.c.Close()
	_, err = (<-p.conns).Read(make([]byte, 1)) // The server, which reads as well, closes it then.
	require.Error(t, err)
	_, err = p.ask(t, "a", true)
	require.ErrorIs(t, err, errClosed)
}

func TestManyAskAtOnce(t *testing.T) {
	p := serve(t, echo)
	over := make(chan error, 20)
	for range cap(over) {
		go func() {
			var err error
			for i := 0; i < 20 && err == nil; i++ {
				text, answer := strings.Repeat("x", i), ""
				err = p.c.Call(context.Background(), jsonhttp.Request{Method: http.MethodPost, Content: []byte(text), Again: true}, &answer)
				if err == nil && answer != text {
					err = errors.New(answer)
				}
			}
			over <- err
		}()
	}
	for range cap(over) {
		require.NoError(t, <-over)
	}
}
