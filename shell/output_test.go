package shell_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func TestLongOutputKeepsHeadAndTail(t *testing.T) {
	sh := start(t, &shell.Options{OutputLimit: 1000})
	res := run(t, sh, "seq 1 100000")
	assert.EqualValues(t, 588895, res.Stdout.Total)
	assert.Len(t, res.Stdout.Bytes(), 1000+len("\n[limpet: 587895 bytes omitted]\n"))
	assert.True(t, strings.HasPrefix(res.Stdout.String(), "1\n2\n"))
	assert.True(t, strings.HasSuffix(res.Stdout.String(), "99999\n100000\n"))
	assert.Empty(t, res.Stdout.Path)
	_, err := res.Stdout.ReadAt(make([]byte, 10), 5000)
	assert.ErrorIs(t, err, command.ErrOmitted)
}

func TestSpooledOutputCanBePagedAndSearched(t *testing.T) {
	sh := start(t, &shell.Options{OutputLimit: 1000, SpoolLimit: 1 << 20, SpoolFiles: 2})
	var want bytes.Buffer
	for i := range 5000 {
		want.WriteString(strings.Repeat("x", i%60) + "\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(sh.Dir(), "data"), want.Bytes(), 0o600))
	res := run(t, sh, "cat data; seq 1 100000 >&2")
	out := res.Stdout
	require.FileExists(t, out.Path)
	page := make([]byte, 4096)
	for off := int64(0); off < out.Total; off += int64(len(page)) {
		n, err := out.ReadAt(page, off)
		if off+int64(len(page)) <= out.Total {
			require.NoError(t, err)
		}
		require.Equal(t, want.String()[off:off+int64(n)], string(page[:n]))
	}
	found, err := res.Stderr.Search(regexp.MustCompile("^50000$"), 1)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.EqualValues(t, 288888, found[0].Offset)

	// Two files are kept: the first command's go when others come.
	newer := run(t, sh, "seq 1 100000; seq 1 100000 >&2")
	assert.NoFileExists(t, out.Path)
	assert.FileExists(t, newer.Stdout.Path)
	require.NoError(t, sh.Close())
	assert.NoFileExists(t, newer.Stdout.Path)
}

func TestAFileThatAJobGoesOnWritingIsNotSpooledAndStaysBounded(t *testing.T) {
	base := t.TempDir()
	sh := start(t, &shell.Options{OutputLimit: 1000, SpoolLimit: 100_000, RuntimeDir: base})
	finished := filepath.Join(t.TempDir(), "finished")
	res := run(t, sh, "(head -c 100000000 /dev/zero; echo >"+finished+"; exec sleep 1000) & head -c 1000000 /dev/zero")
	assert.Empty(t, res.Stdout.Path)
	assert.NotZero(t, res.Stdout.Omitted())
	require.Eventually(t, func() bool { _, err := os.Stat(finished); return err == nil }, testenv.Patience, time.Millisecond)
	assert.Eventually(t, func() bool { return diskUse(t, base) < 32<<20 }, testenv.Patience, 10*time.Millisecond)
}

func TestStreamsArriveWhileTheCommandRuns(t *testing.T) {
	sh := start(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	var mu sync.Mutex
	var got strings.Builder
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: "echo first; until [[ -e " + gate + " ]]; do sleep 0.01; done; echo second >&2; echo last",
		Stdout: writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			got.Write(p)
			return len(p), os.WriteFile(gate, nil, 0o600)
		}),
		MergeStderr: true,
	})
	require.NoError(t, err)
	assert.Equal(t, "first\nsecond\nlast\n", got.String())
	assert.Equal(t, "first\nsecond\nlast\n", res.Stdout.String())
	assert.Empty(t, res.Stderr.String())
}
