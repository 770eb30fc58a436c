package transfer_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// pipes is a pair of connections that lead to each other.
func pipes(t testing.TB) (near, far *pipe.Conn) {
	t.Helper()
	nearIn, farOut, err := os.Pipe()
	require.NoError(t, err)
	farIn, nearOut, err := os.Pipe()
	require.NoError(t, err)
	return pipe.New(nil, nearIn, nearOut, pipe.Times{}), pipe.New(nil, farIn, farOut, pipe.Times{})
}

// remote is another machine, as a handler answers for it.
func remote(t testing.TB, handler http.Handler) *transfer.Remote {
	t.Helper()
	near, far := pipes(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = pipe.Serve(context.Background(), far, handler) // It ends with the test.
	}()
	c, err := pipe.Client(testenv.Context(t), near)
	require.NoError(t, err)
	asks := jsonhttp.NewClient(c, jsonhttp.Errors{Gone: wire.ErrGone, Unreachable: wire.ErrUnreachable, Closed: session.ErrClosed, Said: wire.Said})
	t.Cleanup(func() {
		asks.Close()
		_ = c.Close() // It has nothing to say.
		_ = near.Close()
		<-ended
	})
	return &transfer.Remote{Asks: asks, Lost: host.LostFiles}
}

// there is another machine whose home is a directory.
func there(t testing.TB, home string) *transfer.Remote {
	t.Helper()
	h := transfer.NewHandler(&transfer.Local{Dir: home, Home: home, Mark: ":"}, wire.Answer)
	t.Cleanup(h.Close)
	return remote(t, h)
}

func BenchmarkCopy(b *testing.B) {
	here, home := b.TempDir(), b.TempDir()
	far := there(b, home)
	const size = 64 << 20
	require.NoError(b, os.WriteFile(filepath.Join(here, "f"), make([]byte, size), 0o600))
	for _, one := range []struct {
		name     string
		from     transfer.Source
		to       transfer.Sink
		path, as string
	}{{"out", &transfer.Local{}, far, here + "/f", "g"}, {"in", far, &transfer.Local{}, here + "/f", home + "/h"}} {
		b.Run(one.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, transfer.New(one.from, one.to, nil).Copy(b.Context(), one.path, one.as))
				_ = os.Remove(filepath.Join(home, "g")) // Else it is there already.
				_ = os.Remove(filepath.Join(home, "h")) // As above.
			}
		})
	}
}
