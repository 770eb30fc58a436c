package rolling_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/limpet-sh/limpet/internal/rolling"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func look(t require.TestingT, dir string) rolling.View {
	v, err := rolling.Look(dir)
	require.NoError(t, err)
	return v
}

// The log is compared with a plain slice of all that was ever written.
func TestALogHoldsTheLastBytesInTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent, err := os.MkdirTemp("", "rolling")
		require.NoError(t, err)
		defer os.RemoveAll(parent)
		dir := filepath.Join(parent, "log")
		keep := rapid.Int64Range(1, 64<<10).Draw(t, "keep")
		w, err := rolling.NewWriter(dir, keep)
		require.NoError(t, err)
		defer w.Close()
		var all []byte
		for range rapid.IntRange(0, 40).Draw(t, "writes") {
			size := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 20<<10)).Draw(t, "size")
			p := bytes.Repeat([]byte{byte(rapid.IntRange('a', 'z').Draw(t, "byte"))}, size)
			for i := rapid.IntRange(1, 200).Draw(t, "line"); i < len(p); i += 97 {
				p[i] = '\n'
			}
			all = append(all, p...)
			n, err := w.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)

			v := look(t, dir)
			require.EqualValues(t, len(all), v.End)
			require.EqualValues(t, len(all), w.End())
			require.LessOrEqual(t, v.First, max(v.End-keep, 0), "at least keep bytes are there")
			require.LessOrEqual(t, v.End-v.First, keep+max(keep/2, 4<<10), "and not many more")
			require.EqualValues(t, bytes.Count(all[:v.First], []byte("\n")), v.FirstLine)

			off := rapid.Int64Range(0, v.End+10).Draw(t, "off")
			most := rapid.IntRange(0, 32<<10).Draw(t, "most")
			b, at, err := v.Read(off, most)
			require.NoError(t, err)
			require.Equal(t, max(v.First, min(off, v.End)), at)
			require.Equal(t, string(all[at:min(at+int64(most), v.End)]), string(b))
		}
	})
}

func TestWhatIsOnDiskReadsInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := rolling.NewWriter(dir, 8<<10)
	require.NoError(t, err)
	for i := range 5000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	require.NoError(t, w.Close())
	v := look(t, dir)
	var all []byte
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Greater(t, len(entries), 1)
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm())
		b, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		all = append(all, b...)
	}
	b, at, err := v.Read(0, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, v.First, at)
	assert.Equal(t, string(b), string(all))
	assert.False(t, v.Changed.IsZero())
}

func TestALogThatWasNeverWrittenToIsEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	for _, v := range []rolling.View{look(t, dir), func() rolling.View {
		w, err := rolling.NewWriter(dir, 100)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return look(t, dir)
	}()} {
		assert.Zero(t, v.End)
		b, at, err := v.Read(5, 10)
		require.NoError(t, err)
		assert.Empty(t, b)
		assert.Zero(t, at)
	}
}

func TestAnotherFileInTheDirectoryIsNoSegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := rolling.NewWriter(dir, 100)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Write([]byte("hello"))
	require.NoError(t, err)
	for _, name := range []string{"x", "-", "0-0", "0000000000000000009-x", "000000000000000000x-1", "-000000000000000009-1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("nonsense"), 0o600))
	}
	b, at, err := look(t, dir).Read(0, 100)
	require.NoError(t, err)
	assert.Zero(t, at)
	assert.Equal(t, "hello", string(b))
}

// A reader that looks again and again, beside a writer that drops what it has not
// read yet, gets each byte once, in its place, or is told that it missed it.
func TestAReaderMissesNothingUnnoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := rolling.NewWriter(dir, 16<<10)
	require.NoError(t, err)
	defer w.Close()
	const total = 8 << 20
	pattern := func(off int64) byte { return byte(off*7 + off>>8) }
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		var off int64
		for off < total {
			p := make([]byte, 1+off%3000)
			for i := range p {
				p[i] = pattern(off + int64(i))
			}
			_, _ = w.Write(p) // What is missing is noticed.
			off += int64(len(p))
		}
	}()
	var next, missed int64
	for {
		last := done.Load()
		v := look(t, dir)
		b, at, err := v.Read(next, 10_000)
		require.NoError(t, err)
		require.GreaterOrEqual(t, at, next)
		missed += at - next
		for i, c := range b {
			if c != pattern(at+int64(i)) {
				t.Fatalf("byte %d is %x", at+int64(i), c)
			}
		}
		if next = at + int64(len(b)); last && next == v.End {
			break
		}
	}
	assert.Equal(t, w.End(), next)
	t.Logf("missed %d of %d", missed, next)
}

func TestAFullDiskLosesOutputAndSaysHowMuch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := rolling.NewWriter(dir, 100)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Write([]byte("one\n"))
	require.NoError(t, err)
	before := testenv.FDs(t)
	// A directory that cannot be written to stands for the disk.
	big := bytes.Repeat([]byte("x"), 4<<10)
	require.NoError(t, os.Rename(dir, dir+".gone"))
	n, err := w.Write(append([]byte("two\n"), big...))
	assert.Error(t, err)
	assert.EqualValues(t, 4<<10+4-n, w.Lost())
	require.NoError(t, os.Rename(dir+".gone", dir))
	_, err = w.Write([]byte("three\n"))
	require.NoError(t, err)
	assert.Equal(t, before, testenv.FDs(t))

	v := look(t, dir)
	assert.Equal(t, w.End(), v.End)
	b, at, err := v.Read(0, 1<<20)
	require.NoError(t, err)
	assert.Zero(t, at)
	assert.Len(t, b, 4+n, "up to where some is missing")
	b, at, err = v.Read(int64(len(b)), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, v.End-6, at, "and from behind it")
	assert.Equal(t, "three\n", string(b))
	assert.EqualValues(t, 0, v.FirstLine)
}

func TestALogMustBeNew(t *testing.T) {
	_, err := rolling.NewWriter(t.TempDir(), 100)
	assert.ErrorIs(t, err, os.ErrExist)
	_, err = rolling.NewWriter(filepath.Join(t.TempDir(), "no", "where"), 100)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
