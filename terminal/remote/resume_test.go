package remote_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// roundTripper is a transport.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// breaking is a way to a registry's terminals on which each stream breaks off behind so many bytes, by an error.
func breaking(t *testing.T, r *terminal.Registry, after int64, by error) (w remote.Way, broke *atomic.Int64) {
	t.Helper()
	server := httptest.NewServer(remote.Handler(r))
	t.Cleanup(server.Close)
	broke = &atomic.Int64{}
	return remote.Way{Resumes: true, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Host = strings.TrimPrefix(server.URL, "http://")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && (strings.HasSuffix(r.URL.Path, "/attach") || strings.HasSuffix(r.URL.Path, "/record")) {
			resp.Body = &cutBody{resp.Body, after, by, broke}
		}
		return resp, err
	})}, broke
}

type cutBody struct {
	io.ReadCloser
	left  int64
	by    error
	broke *atomic.Int64
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.broke.Add(1)
		return 0, b.by
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// A viewer goes on where it was, whether a connection breaks, or what is between ends the stream as if all were well.
func TestAViewerOutlivesItsConnection(t *testing.T) {
	testenv.Slow(t)
	for _, by := range []error{fmt.Errorf("%w: it is cut", remote.ErrUnreachable), io.EOF} {
		s := serve(t, t.TempDir(), nil)
		const cut = 300 << 10 // More than a piece.
		way, broke := breaking(t, s.r, cut, by)
		client := way.Client()
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		prints, err := s.r.Start(testenv.Context(t), terminal.Spec{Line: "seq 300000", BufferLimit: 8 << 20})
		require.NoError(t, err)
		v, err := client.Terminal(prints.ID()).Attach(0)
		require.NoError(t, err)
		var got bytes.Buffer
		for {
			c, err := v.Next(testenv.Context(t))
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.Zero(t, c.Missed)
			require.EqualValues(t, got.Len(), c.Offset)
			got.Write(c.Data)
		}
		require.NoError(t, v.Close())
		assert.Positive(t, broke.Load())
		var want bytes.Buffer
		for i := range 300000 {
			fmt.Fprintf(&want, "%d\r\n", i+1)
		}
		assert.True(t, bytes.Equal(want.Bytes(), got.Bytes()), "%d bytes, and not %d", got.Len(), want.Len())
	}
}

// A recording goes on with a marker, and the screen as it is by then.
func TestARecordingOutlivesItsConnection(t *testing.T) {
	for _, by := range []error{fmt.Errorf("%w: it is cut", remote.ErrUnreachable), io.EOF, io.ErrUnexpectedEOF} {
		s := serve(t, t.TempDir(), nil)
		const cut = 20 << 10
		way, broke := breaking(t, s.r, cut, by)
		client := way.Client()
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		dir := t.TempDir()
		prints, err := s.r.Start(testenv.Context(t), terminal.Spec{Line: "seq 10000; until [[ -e " + dir + "/go ]]; do sleep .01; done; echo the end"})
		require.NoError(t, err)
		testenv.Await(t, "the numbers", func() bool {
			shot, err := prints.Screen()
			return err == nil && strings.Contains(string(shot.ANSI()), "10000")
		})
		var cast bytes.Buffer
		went := false
		done, err := client.Terminal(prints.ID()).Record(testenv.Context(t), writer(func(p []byte) (int, error) {
			if !went && bytes.Contains(p, []byte("is missing")) {
				went = true
				require.NoError(t, prints.Resize(terminal.Size{Cols: 70, Rows: 20}))
				require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
			}
			return cast.Write(p)
		}), terminal.RecordOptions{FromStart: true})
		require.NoError(t, err)
		assert.True(t, went)
		assert.Positive(t, broke.Load())
		assert.Positive(t, done.Gaps)
		lines := strings.Split(strings.TrimSuffix(cast.String(), "\n"), "\n")
		last, gaps := 0.0, 0
		for i, line := range lines[1:] {
			var event []any
			require.NoError(t, json.Unmarshal([]byte(line), &event), line)
			require.Len(t, event, 3)
			at, ok := event[0].(float64)
			require.True(t, ok, line)
			require.GreaterOrEqual(t, at, last, "line %d", i)
			last = at
			if event[1] == "m" && strings.Contains(fmt.Sprint(event[2]), "the connection was lost here") {
				gaps++
			}
		}
		assert.Equal(t, done.Gaps, gaps)
		_, behind, _ := strings.Cut(cast.String(), "the connection was lost here")
		assert.Contains(t, behind, `\u001b[2J`)
		assert.Contains(t, behind, `"r","70x20"]`)
		assert.Contains(t, behind, "the end")
	}
}

type writer func([]byte) (int, error)

func (f writer) Write(p []byte) (int, error) { return f(p) }

// One that can do so in vain alone fails, and says why.
func TestAViewerGivesUp(t *testing.T) {
	testenv.Slow(t)
	s := serve(t, t.TempDir(), nil)
	way, _ := breaking(t, s.r, 0, fmt.Errorf("%w: it is cut", remote.ErrUnreachable))
	client := way.Client()
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	v, err := client.Terminal(s.local(t, "exec tail -f /dev/null").ID()).Attach(0)
	require.NoError(t, err)
	_, err = v.Next(testenv.Context(t))
	require.ErrorIs(t, err, remote.ErrUnreachable)
	require.ErrorContains(t, err, "it is cut")
	require.NoError(t, v.Close())
}

func TestWhatIsWrittenDownIsListedAndForgotten(t *testing.T) {
	dir := t.TempDir()
	before, err := terminal.Open(dir, nil)
	require.NoError(t, err)
	past, err := before.Start(testenv.Context(t), terminal.Spec{Line: "echo past"})
	require.NoError(t, err)
	<-past.Done()
	require.NoError(t, before.Close())
	s := serve(t, dir, nil)
	live := s.local(t, bash)
	ctx := testenv.Context(t)
	own, err := s.client.List(ctx)
	require.NoError(t, err)
	require.Len(t, own, 1)
	all, err := s.client.ListAll(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, past.ID(), all[0].ID)
	require.ErrorIs(t, s.client.Forget(ctx, live.ID()), terminal.ErrRunning)
	require.NoError(t, s.client.Forget(ctx, past.ID()))
	require.ErrorIs(t, s.client.Forget(ctx, past.ID()), terminal.ErrNotFound)
}

// A program of an older version says by its text alone that it does not know what it was asked for.
func TestAnOlderProgramIsToldFromOthers(t *testing.T) {
	client := remote.Below(roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":"there is no %s %s here; this is version 1 of the protocol"}`, r.Method, r.URL.Path)
		return w.Result(), nil
	}), "")
	defer client.Close() // It cannot fail.
	require.ErrorIs(t, client.Forget(testenv.Context(t), "term-x"), remote.ErrOlder)
	require.NotErrorIs(t, client.Terminal("term-x").Send(keys.Text("x")), terminal.ErrNotFound)
}
