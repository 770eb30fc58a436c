package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// linkOf starts a limpet serve, and returns the line with its link.
func linkOf(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // It has ended, unless the test failed.
	link, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return link
}

// linkParts are the address of a page, and its token.
func linkParts(t *testing.T, link string) (page, token string) {
	t.Helper()
	parts := regexp.MustCompile(`^(http://127\.0\.0\.1:\d+/)#([A-Z2-7]{26})\n$`).FindStringSubmatch(link)
	require.NotNil(t, parts, "%q", link)
	return parts[1], parts[2]
}

// The page shows the sessions of this machine: whoever has the link sees an agent's command while it runs.
func TestServeShowsWhatRunsInSessions(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() { _ = exec.Command("limpet", "session", "close", "one").Run() }) // It may be closed.
	out, code := limpetIn(t, dir, "run", "-s", "one", "echo before")
	require.Zero(t, code, out)

	// The browser is a script, which notes what it was given.
	bin := testenv.TempDir(t)
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + bin + "/args\ncat \"$1\" >" + bin + "/page.tmp; echo >>" + bin + "/page.tmp; mv " + bin + "/page.tmp " + bin + "/page\n"
	for _, name := range []string{"xdg-open", "open"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	cmd := exec.Command("limpet", "serve", "--open")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	link := linkOf(t, cmd)
	url, token := linkParts(t, link)
	page := testenv.AwaitFile(t, filepath.Join(bin, "page"))
	assert.Contains(t, page, strings.TrimSpace(link))
	args, err := os.ReadFile(filepath.Join(bin, "args"))
	require.NoError(t, err)
	assert.NotContains(t, string(args), token, "all users see the arguments of processes")

	get := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return answer
	}
	answer := get("api/sessions")
	list, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(list), `"name":"one"`)
	assert.Contains(t, string(list), `"dir":"`+dir+`"`)

	answer = get("api/events?session=one")
	defer answer.Body.Close()
	events := bufio.NewReader(answer.Body)
	sees := func(want string) {
		t.Helper()
		for {
			line, err := events.ReadString('\n')
			require.NoError(t, err, "want %s", want)
			if strings.Contains(line, want) {
				return
			}
		}
	}
	sees(`"script":"echo before"`)
	sees(`"kind":"end"`)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = limpetIn(t, dir, "run", "-s", "one", "echo while; cat fifo")
	}()
	sees(`"script":"echo while; cat fifo"`)
	sees(`"text":"d2hpbGUK"`) // It runs still: nobody has written into the fifo.
	require.NoError(t, os.WriteFile(fifo, []byte("end\n"), 0))
	<-ended
	sees(`"kind":"end"`)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // Its exit code is looked at.
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
	left, err := filepath.Glob(filepath.Join(dir, "limpet-serve-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	out, code = limpetIn(t, dir, "session", "close", "one")
	assert.Zero(t, code, "the session has stayed: %s", out)
}

func TestServeListensAtTheLoopbackAlone(t *testing.T) {
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", dir)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:80", "[::ffff:192.0.2.1]:0", "localhost.example:0", "[::1%lo]:0"} {
		out, code := limpetIn(t, dir, "serve", "--listen", addr)
		assert.Equal(t, codeUsage, code, out)
		assert.Contains(t, out, "is no address of the loopback, and there is no TLS", addr)
	}
	for _, addr := range []string{"", "7334", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", "127.0.0.1:-1"} {
		out, code := limpetIn(t, dir, "serve", "--listen", addr)
		assert.Equal(t, codeUsage, code, out)
		assert.Contains(t, out, "wants HOST:PORT", addr)
	}
}
