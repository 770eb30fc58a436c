package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// watching is a limpet session watch that runs.
type watching struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func watchIn(t *testing.T, dir string, args ...string) *watching {
	t.Helper()
	w := &watching{t: t, cmd: exec.Command("limpet", append([]string{"session", "watch"}, args...)...)}
	w.cmd.Dir = dir
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	w.lines = bufio.NewReader(out)
	require.NoError(t, w.cmd.Start())
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // It has ended, unless the test failed.
	return w
}

// sees waits for some lines, and for no others.
func (w *watching) sees(lines ...string) {
	w.t.Helper()
	for _, want := range lines {
		line, err := w.lines.ReadString('\n')
		require.NoError(w.t, err, "want %q", want)
		require.Regexp(w.t, "^"+want+"\n$", line)
	}
}

func (w *watching) ends(sig syscall.Signal, code int) {
	w.t.Helper()
	require.NoError(w.t, w.cmd.Process.Signal(sig))
	rest, err := io.ReadAll(w.lines)
	require.NoError(w.t, err)
	assert.Empty(w.t, string(rest))
	_ = w.cmd.Wait() // Its exit code is looked at.
	assert.Equal(w.t, code, w.cmd.ProcessState.ExitCode())
}

func TestWatchShowsWhatRunsInSessions(t *testing.T) {
	testenv.Slow(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	state, dir := testenv.TempDir(t), testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", state)
	t.Cleanup(func() { _ = exec.Command("limpet", "session", "close", "one", "two").Run() }) // They may be closed.
	run := func(name, script string) { _, _ = limpetIn(t, dir, "run", "-s", name, script) }
	run("one", `echo before; printf '10%%\r20%%\n\033[31mred\033[0m\033]0;title\007\n'; printf open; true | false`)
	w := watchIn(t, dir)
	w.sees("one \\| "+dir+` \$ echo before; .*`, `one \| before`, `one \| 20%`, `one \| red`, `one \| open`, `one \| -- exit 1, after \S+`, `one \| -- pipeline 0\|1`)

	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run("two", "echo now\ncat fifo")
	}()
	w.sees("two \\| "+dir+` \$ echo now`, `two \|  +> cat fifo`, `two \| now`) // While it runs, in a session that was made later.
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("more\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	w.sees(`two \| more`, `two \| -- exit 0, after \S+`)
	<-ended
	out, code := limpetIn(t, dir, "session", "close", "two")
	require.Zero(t, code, out)
	w.sees(`two \| -- the session has ended`)
	w.ends(syscall.SIGINT, codeSignal+int(syscall.SIGINT))

	w = watchIn(t, dir, "--json", "one")
	line, err := w.lines.ReadBytes('\n')
	require.NoError(t, err)
	var e session.Event
	require.NoError(t, json.Unmarshal(line, &e))
	assert.Equal(t, session.BeginEvent, e.Kind)
	out, code = limpetIn(t, dir, "session", "close", "one")
	require.Zero(t, code, out)
	_, err = io.ReadAll(w.lines)
	require.NoError(t, err)
	require.NoError(t, w.cmd.Wait(), "the session that it is about has ended")
}

func TestWatchFillsATerminal(t *testing.T) {
	testenv.Slow(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	state, dir := testenv.TempDir(t), testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", state)
	t.Cleanup(func() { _ = exec.Command("limpet", "session", "close", "one", "two").Run() }) // They may be closed.
	tm := onTerminal(t, dir, "xterm", "watch")
	tm.sees("There is no session yet")
	record := filepath.Join(dir, "audit.jsonl")
	out, code := limpetIn(t, dir, "run", "-s", "one", "--audit", record, `echo 'of one'; printf '\033]0;title\007'`)
	require.Zero(t, code, out)
	tm.sees("1 one")
	tm.sees("of one\r\n")
	tm.sees("-- exit 0, after")
	out, code = limpetIn(t, dir, "run", "-s", "two", `echo 'of two'`)
	require.Zero(t, code, out)
	tm.sees("2 two*")
	tm.types("\t")
	tm.sees("of two\r\n")
	tm.types("1")
	tm.sees("of one\r\n")
	tm.types("q")
	tm.exits(0)
	tm.isAsBefore()
	assert.NotContains(t, tm.seen+tm.unread, "\x1b]0", "what programs print gives no orders to the terminal")

	tm = onTerminal(t, dir, "xterm", "watch", record)
	tm.sees("1 one")
	tm.sees("$ echo 'of one'")
	tm.sees("-- exit 0, after")
	out, code = limpetIn(t, dir, "run", "-s", "one", "echo more; false")
	require.Equal(t, 1, code, out)
	tm.sees("more\r\n")
	tm.sees("-- exit 1, after")
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGTERM))
	tm.exits(codeSignal + int(syscall.SIGTERM))
	tm.isAsBefore()

	out, code = limpetIn(t, dir, "watch")
	assert.Equal(t, codeUsage, code)
	assert.Contains(t, out, "it wants a terminal to fill: use limpet session watch")
	tm = onTerminal(t, dir, "xterm", "watch", "nowhere")
	tm.sees("nowhere: no such file or directory")
	tm.exits(codeFailed)
}
