package transfer_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/transfer"
)

// changer is a source of which something changes behind the first chunk, or that cannot read all.
type changer struct {
	transfer.Source
	change func()
	fail   func(path string) error
}

func (c *changer) Read(ctx context.Context, root, path string, e transfer.Entry, from transfer.State, to func(offset int64, b []byte) error) (transfer.End, error) {
	if c.fail != nil {
		if err := c.fail(path); err != nil {
			return transfer.End{}, err
		}
	}
	change := sync.OnceFunc(func() {
		if c.change != nil {
			c.change()
		}
	})
	return c.Source.Read(ctx, root, path, e, from, func(offset int64, b []byte) error {
		change()
		return to(offset, b)
	})
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close() // As far as it goes.
	_, err = f.WriteString(text)
	require.NoError(t, err)
}

// overwrite writes over the end of a file, a moment later than it was written.
func overwrite(t *testing.T, path, text string) {
	t.Helper()
	const tick = 20 * time.Millisecond
	time.Sleep(tick) // Times of files have a resolution of a few milliseconds.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close() // As far as it goes.
	st, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), st.Size()-int64(len(text)))
	require.NoError(t, err)
}

// socket makes one, for its name.
func socket(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // As said.
}
