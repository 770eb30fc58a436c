package transfer

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Of several chunks that are under way one finds the disk full: then none of the others makes the file anew, nor hides why.
func TestChunksBehindTheOneThatFillsTheDiskBeginNothing(t *testing.T) {
	const chunk, chunks = 64 << 10, 8
	dir := testenv.MountTmpfs(t, "size=256k", 0)
	for i := range testenv.Repeats(5, 20, 200) {
		h := NewHandler(&Local{}, nil)
		in := request{Root: Bytes(dir), Path: Bytes(fmt.Sprint(i)), Entry: Entry{Kind: File, Size: chunk}, ID: fmt.Sprint(i)}
		first := in
		first.Restart = true
		_, err := h.held.write(testenv.Context(t), first)
		require.NoError(t, err)
		h.held.parts[in.key()].part.entry.Size = chunk * chunks // It had room when it began.

		var sent sync.WaitGroup
		errs := make([]error, chunks)
		for n := range chunks {
			one := in
			one.Offset, one.came = int64(n*chunk), make([]byte, chunk)
			sent.Go(func() { _, errs[n] = h.held.write(testenv.Context(t), one) })
		}
		sent.Wait()
		failed := 0
		for n, err := range errs {
			if err != nil {
				failed++
				assert.ErrorIs(t, err, syscall.ENOSPC, "chunk %d", n)
			}
		}
		assert.Positive(t, failed)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, left)
		h.Close()
	}
}

// The answer that a file could not be made is lost, and its last chunk is sent again: it is told the same, and makes nothing.
func TestTheEndOfACopyThatFailedIsToldAgain(t *testing.T) {
	dir := t.TempDir()
	h := NewHandler(&Local{}, nil)
	defer h.Close()
	in := request{Root: Bytes(dir), Path: "f", Entry: Entry{Kind: File, Size: 2}, ID: "id", Restart: true, came: []byte("a")}
	_, err := h.held.write(testenv.Context(t), in)
	require.NoError(t, err)
	in.Restart, in.Offset, in.came, in.End = false, 1, []byte("b"), &End{Size: 2, Sum: []byte("another")}
	for range 2 {
		_, err = h.held.write(testenv.Context(t), in)
		require.ErrorIs(t, err, errSpoiled)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
