package wire

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/jobs"
)

// At the socket of a program that is stopped (SIGSTOP) the kernel takes connections, and nobody answers.
func TestCallsAboutJobsEndWhereNobodyAnswers(t *testing.T) {
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
