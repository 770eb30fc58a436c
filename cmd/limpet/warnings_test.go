package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/ipc"
)

// consoleTo returns a console, and what is on its stderr.
func consoleTo(t *testing.T) (*console, func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() }) // It is read already.
	c := &console{}
	c.stderr = consoleStream{console: c, file: file}
	return c, func() string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
}

func TestWarningIsOneReadableLine(t *testing.T) {
	disk := &ipc.DiskError{Dir: "/d", Err: errors.New("no room")}
	for _, row := range []struct {
		name string
		warn func(*slog.Logger)
		want string
	}{
		{"plain", func(l *slog.Logger) { l.Warn("limpet: it is so") }, "limpet: it is so\n"},
		{"no prefix", func(l *slog.Logger) { l.Warn("it is so") }, "limpet: it is so\n"},
		{"error level", func(l *slog.Logger) { l.Error("limpet: worse") }, "limpet: worse\n"},
		{"info is not shown", func(l *slog.Logger) { l.Info("limpet: by the way"); l.Debug("limpet: x") }, ""},
		{"values", func(l *slog.Logger) { l.Warn("w", "n", 3, "ok", true, "word", "/a/b.c", "empty", "") },
			`limpet: w (n=3 ok=true word=/a/b.c empty="")` + "\n"},
		{"lines", func(l *slog.Logger) { l.Warn("w", "said", "one\n\n  two\n") }, `limpet: w (said="one; two")` + "\n"},
		{"no orders to a terminal", func(l *slog.Logger) { l.Warn("w", "said", "a\x1b[31mb\xffc") },
			`limpet: w (said="a\x1b[31mb\xffc")` + "\n"},
		{"an error names flags, and no package", func(l *slog.Logger) { l.Warn("w", "err", fmt.Errorf("saving: %w", disk)) },
			`limpet: w (err="saving: runtime directory \"/d\": no room; set --runtime-dir, or XDG_RUNTIME_DIR, to a directory that can be written")` + "\n"},
		{"nil error", func(l *slog.Logger) { l.Warn("w", "err", nil) }, "limpet: w (err=<nil>)\n"},
		{"groups", func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).Warn("w", slog.Group("h", "c", 3), slog.Attr{})
		}, "limpet: w (a=1 g.b=2 g.h.c=3)\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, told := consoleTo(t)
			row.warn(c.logger())
			assert.Equal(t, row.want, told())
		})
	}
}

func TestWarningIsShort(t *testing.T) {
	c, told := consoleTo(t)
	c.logger().Warn("w", "stderr", "begin "+strings.Repeat("äöü\n", 5000)+" end")
	assert.Less(t, len(told()), 500)
	assert.Contains(t, told(), `"begin ä`)
	assert.Contains(t, told(), ` end")`)
	assert.NotContains(t, told(), `\x`)
}

func TestWarningEndsAnOpenLine(t *testing.T) {
	c, told := consoleTo(t)
	_, err := c.stderr.Write([]byte("half"))
	require.NoError(t, err)
	c.logger().Warn("w")
	assert.Equal(t, "half\nlimpet: w\n", told())
}

func TestWarningWaitsForAPromptToBeAnswered(t *testing.T) {
	c, told := consoleTo(t)
	log := c.logger()
	c.asks()
	log.Warn("one")
	log.Warn("two")
	assert.Empty(t, told())
	c.answered()
	assert.Equal(t, "limpet: one\nlimpet: two\n", told())
	c.answered()
	log.Warn("three")
	assert.Equal(t, "limpet: one\nlimpet: two\nlimpet: three\n", told())
}

func TestWarningsMayComeTogether(t *testing.T) {
	c, told := consoleTo(t)
	log := c.logger()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			log.With("k", 1).WarnContext(context.Background(), "w", "j", 2)
			c.asks()
			c.answered()
		})
	}
	all.Wait()
	c.answered()
	assert.Equal(t, strings.Repeat("limpet: w (k=1 j=2)\n", 8), told())
}

func TestMessagesNameNoPackage(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{command.ErrEmptyScript, "script is empty"},
		{command.ErrNUL, "script holds a NUL byte, which bash cannot carry; keep binary data in a file"},
		{fmt.Errorf("running: %w", errors.Join(errors.New("ipc: a: b"), errors.New("shell: c"))), "running: a: b; c"},
		{&command.EnvError{Name: "a-b", Err: errors.New("is bad")}, `environment entry "a-b": is bad`},
		{errors.New("bash: line 1: command: -x: invalid option"), "bash: line 1: command: -x: invalid option"},
		{restartNews{&command.Restart{Reason: "it ended", Err: errors.New("ipc: no room")}}, "it ended; starting a new bash failed: no room"},
	} {
		assert.Equal(t, row.want, explain(row.err))
	}
}
