package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listing is a source that has one page for all directories.
type listing struct {
	Local
	page Page
}

func (l *listing) Stat(context.Context, string) (Named, error) {
	return Named{There: true, Entry: Entry{Kind: Dir}, Root: "/"}, nil
}

func (l *listing) List(_ context.Context, _, dir, _ string) (Page, error) {
	if strings.Count(dir, "/") > 1 {
		return Page{}, nil
	}
	return l.page, nil
}

func (l *listing) Read(_ context.Context, _, _ string, _ Entry, _ State, to func(int64, []byte) error) (End, error) {
	return End{}, to(0, []byte("x"))
}

// What passes the check of a page makes nothing outside of the destination.
func FuzzPage(f *testing.F) {
	for _, p := range []Page{
		{Entries: []Entry{{Name: "a", Kind: File, Size: 1}, {Name: "b", Kind: Dir}, {Name: "c", Kind: Link, Target: "../.."}}},
		{Entries: []Entry{{Name: "..", Kind: Dir}}}, {Entries: []Entry{{Name: "../x", Kind: File}}}, {Entries: []Entry{{Name: "/etc/x", Kind: File}}},
		{Entries: []Entry{{Name: "a\x00", Kind: File}}}, {More: true}, {Entries: []Entry{{Name: "l", Kind: Link, Target: "/etc"}, {Name: "l/passwd", Kind: File}}},
	} {
		b, err := json.Marshal(p)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Page
		if json.Unmarshal(b, &p) != nil {
			return
		}
		above := t.TempDir()
		dest := filepath.Join(above, "dest")
		require.NoError(t, os.Mkdir(dest, 0o700))
		_ = New(&listing{page: p}, &Local{}, nil).Copy(t.Context(), "d", dest) // An error is as good.
		outside, err := os.ReadDir(above)
		require.NoError(t, err)
		require.Len(t, outside, 1)
		if p.check("") != nil {
			_ = os.Chmod(filepath.Join(dest, "d"), 0o700) // It has the mode that the listing has.
			inside, err := os.ReadDir(filepath.Join(dest, "d"))
			require.NoError(t, err)
			assert.Empty(t, inside)
		}
		_ = filepath.WalkDir(dest, func(path string, d os.DirEntry, err error) error { // It is removed with the test.
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700) // As said.
			}
			return nil
		})
	})
}

// A stream is what frames write, and nothing else.
func FuzzStream(f *testing.F) {
	var b bytes.Buffer
	w := &frames{w: &b}
	require.NoError(f, w.chunk(0, []byte("hello")))
	require.NoError(f, w.chunk(5, nil))
	require.NoError(f, w.end(ended{End: End{Size: 5}}))
	f.Add(b.Bytes(), int64(0))
	f.Add([]byte("end              00000002\n{}"), int64(7))
	f.Add([]byte("0000000000000007 00000001\nx"), int64(7))
	f.Fuzz(func(t *testing.T, stream []byte, from int64) {
		from = max(from, 0)
		next, first := from, true
		_, err := parse(bytes.NewReader(stream), from, func(offset int64, b []byte) error {
			require.LessOrEqual(t, len(b), mostChunk)
			require.True(t, offset == next || first && offset == 0)
			next, first = offset+int64(len(b)), false
			return nil
		})
		if err == nil {
			require.Contains(t, string(stream), "end ")
		}
	})
}
