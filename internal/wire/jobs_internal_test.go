package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

// At the socket of a program that is stopped (SIGSTOP) the kernel takes connections, and nobody answers.
func TestCallsAboutJobsEndWhereNobodyAnswers(t *testing.T) {
	testenv.Slow(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close() // Nobody is let in.
	c := NewClient(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) })
	defer c.Disconnect()
	c.patience = 50 * time.Millisecond
	h, err := c.Session("s").Jobs()
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"get":            func() error { _, err := h.Get("a"); return err },
		"list":           func() error { _, err := h.List(jobs.Filter{}); return err },
		"poll":           func() error { _, err := h.Poll("a", nil); return err },
		"log":            func() error { _, err := h.Log("a", jobs.LogOptions{}); return err },
		"search":         func() error { _, err := h.Search("a", "x", jobs.SearchOptions{}); return err },
		"history":        func() error { _, err := h.History("a"); return err },
		"write":          func() error { _, err := h.Write("a", []byte("x")); return err },
		"submit":         func() error { return h.Submit("a", "x") },
		"close stdin of": func() error { return h.CloseStdin("a") },
		"resize":         func() error { return h.Resize("a", jobs.Size{}) },
		"forget":         func() error { return h.Forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() { ended <- call() }()
			select {
			case err := <-ended:
				require.ErrorIs(t, err, ErrUnreachable)
				assert.Contains(t, err.Error(), name)
				assert.Contains(t, err.Error(), "it has not answered within 50ms")
			case <-time.After(10 * time.Second):
				t.Fatal("it waits for an answer")
			}
		})
	}

	// What waits by its nature has a context.
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Wait(ctx, jobs.WaitOptions{})
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("it has not waited: %v", err)
	case <-time.After(3 * c.patience):
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// breaking answers with the beginning of an answer, or not at all, when it has read the request.
type breaking struct{ answers bool }

func (b breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.WroteHeaders()
	if !b.answers {
		return nil, syscall.EPIPE
	}
	trace.GotFirstResponseByte()
	body := io.MultiReader(strings.NewReader(`{"id": "job-`), iotest.ErrReader(io.ErrUnexpectedEOF))
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(body)}, nil
}

func TestAStartWhoseAnswerBreaksOffMayHaveStarted(t *testing.T) {
	for _, answers := range []bool{false, true} {
		c := NewClientOver(breaking{answers}, nil)
		defer c.Disconnect()
		_, err := c.Session("s").StartJob(t.Context(), jobs.Spec{})
		require.ErrorIs(t, err, ErrMayHaveStarted, "answers: %v", answers)
		require.True(t, isOneOf(err, ErrGone, ErrUnreachable), "answers: %v", answers)
		_, err = c.Session("s").StartTerminal(t.Context(), terminal.Spec{})
		require.ErrorIs(t, err, ErrMayHaveStarted, "answers: %v", answers)
		var said *session.Error
		require.ErrorAs(t, err, &said)
		assert.Equal(t, "start a terminal in", said.Op)
	}
}
