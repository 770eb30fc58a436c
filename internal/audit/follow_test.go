package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// following follows a record, and returns its entries' scripts as they come, and what is broken.
func following(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	came, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		ended <- Follow(ctx, path, func(e Entry) error { came <- e.Script; return nil }, func(err error) { came <- "broken: " + err.Error() })
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return came
}

func comes(t *testing.T, came <-chan string, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case got := <-came:
			require.Equal(t, text, got)
		case <-time.After(testenv.Patience):
			require.FailNow(t, "it does not come", text)
		}
	}
}

func TestARecordIsFollowedFromFileToFile(t *testing.T) {
	dir := testenv.TempDir(t)
	path := filepath.Join(dir, "a.jsonl")
	l, err := Open(path)
	require.NoError(t, err)
	write := func(script string) {
		require.NoError(t, l.Write(Entry{Time: time.Now(), Kind: "begin", Script: script}))
	}
	write("one")
	came := following(t, path)
	comes(t, came, "one")
	write("two")
	comes(t, came, "two")
	l.most = 1 // Each line is in a file of its own.
	for _, script := range []string{"three", "four", "five"} {
		write(script)
		comes(t, came, script)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	assert.Len(t, files, 4)

	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	for _, part := range []string{`{"time":"2026-01-02T03:04:05Z","kind":"be`, `gin","script":"six"}` + "\n", "no entry\n", "{}\n", "\n" + strings.Repeat("x", mostLine+10) + "\n"} {
		_, err := f.WriteString(part)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	comes(t, came, "six", "broken: "+path+": a line is no entry", "broken: "+path+": a line is no entry")
	assert.Contains(t, <-came, "a line is longer than")
	l.most = mostBytes
	write("seven")
	for text := range came {
		if text == "seven" {
			break
		}
		assert.Contains(t, text, "broken") // The rest of the long line.
	}
}

func TestOfADirectoryTheLatestFileIsFollowedAndWhatComesThen(t *testing.T) {
	dir := testenv.TempDir(t)
	day := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(`{"time":"2026-01-02T03:04:05Z","kind":"begin","script":"`+script+"\"}\n"), 0o600))
	}
	day("2026-01-01", "old")
	day("2026-01-02", "one")
	came := following(t, dir)
	comes(t, came, "one")
	day("2026-01-03", "two")
	comes(t, came, "two")
	require.NoError(t, os.Rename(filepath.Join(dir, "2026-01-03.jsonl"), filepath.Join(dir, "2026-01-03-20260103T101010.000000000Z.jsonl")))
	day("2026-01-03", "three")
	comes(t, came, "three")
}

// What is no file is left out; a link leads to what changes, and what was emptied is read again.
func TestWhatElseMayBeInADirectoryOfRecords(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "a[b")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "2.jsonl"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "3.jsonl"), 0o600))
	line := func(script string) []byte {
		return []byte(`{"time":"2026-01-02T03:04:05Z","kind":"begin","script":"` + script + "\"}\n")
	}
	one := filepath.Join(dir, "1.jsonl")
	require.NoError(t, os.WriteFile(one, append(line("one"), line("two")...), 0o600))
	link := filepath.Join(testenv.TempDir(t), "link")
	require.NoError(t, os.Symlink(one, link))
	came := following(t, link)
	comes(t, came, "one", "two")
	require.NoError(t, os.WriteFile(one, line("anew"), 0o600))
	comes(t, came, "anew")

	came = following(t, dir)
	comes(t, came, "broken: "+filepath.Join(dir, "3.jsonl")+" is no file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "4.jsonl"), line("four"), 0o600))
	comes(t, came, "four")
}

func TestWhatCannotBeFollowedIsAnError(t *testing.T) {
	dir := testenv.TempDir(t)
	nothing := func(Entry) error { return nil }
	assert.ErrorIs(t, Follow(t.Context(), filepath.Join(dir, "none"), nothing, nil), os.ErrNotExist)
	assert.ErrorContains(t, Follow(t.Context(), "/dev/null", nothing, nil), "is no file")
	path := filepath.Join(dir, "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"time":"2026-01-02T03:04:05Z","kind":"begin"}`+"\n"), 0o600))
	mine := errors.New("mine")
	assert.ErrorIs(t, Follow(t.Context(), path, func(Entry) error { return mine }, nil), mine)
}
