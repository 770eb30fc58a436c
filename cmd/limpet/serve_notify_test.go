package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A command of the person's is told of what happens in sessions, those that are made later too. What a program prints is text for it,
// and none that bash reads.
func TestServeNotifies(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask", "--keep")
	told := filepath.Join(p.dir, "told")
	page := p.page("--notify", `read -r line; echo "$LIMPET_NOTICE: $line" >>`+told)
	await := func(want string) {
		t.Helper()
		testenv.Await(t, want, func() bool {
			b, _ := os.ReadFile(told) // It is not there before the first notice.
			return strings.Contains(string(b), want)
		})
	}
	waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
	await("may this run? touch one")
	b, err := os.ReadFile(told)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(b), "question: session agent-"), "%s", b)
	p.limpet("approvals", "list")

	p.limpet("run", "-s", "build", "true")
	p.limpet("jobs", "start", "-s", "build", "--watch", "ready", `printf 'ready $(touch %s/ran) \033[31m\u202e\n' `+p.dir+`; exit 3`)
	await("job_matched: session build: job job-printf-")
	await("ready $(touch " + p.dir + "/ran) ")
	await("has ended: exit 3\n")
	assert.NoFileExists(t, filepath.Join(p.dir, "ran"))
	b, err = os.ReadFile(told)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "\x1b")
	assert.NotContains(t, string(b), "\u202e")

	// Another process keeps the session from here on, and tells everything once.
	p.limpet("session", "upgrade", "--force", "build")
	for _, code := range []string{"5", "6"} {
		p.limpet("jobs", "start", "-s", "build", "exit "+code)
		await("has ended: exit " + code + "\n")
	}
	b, err = os.ReadFile(told)
	require.NoError(t, err)
	for _, code := range []string{"3", "5", "6"} {
		assert.Equal(t, 1, strings.Count(string(b), "has ended: exit "+code+"\n"), "%s", b)
	}

	page.ends()
	c.leaves()
	<-waits
	p.limpet("session", "close", "build")
	p.closeKept()
}

// A command that fails is told of on standard error, once, and costs nothing else.
func TestANotifierThatFailsIsSaid(t *testing.T) {
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	p.limpet("run", "-s", "build", "true")
	cmd := p.command("serve", "--notify", "cat >/dev/null; echo no display >&2; echo >>count; exit 4")
	said, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = write
	linkOf(t, cmd)
	require.NoError(t, write.Close())
	for range 2 {
		p.limpet("jobs", "start", "-s", "build", "true")
	}
	testenv.Await(t, "both", func() bool {
		b, _ := os.ReadFile(filepath.Join(p.dir, "count"))
		return string(b) == "\n\n"
	})
	(&pageOf{t: t, cmd: cmd}).ends()
	b := make([]byte, 4096)
	n, err := said.Read(b)
	require.NoError(t, err)
	require.NoError(t, said.Close())
	assert.Equal(t, "limpet: --notify: exit status 4: no display; its failures are not said again until it works\n", string(b[:n]))
	p.limpet("session", "close", "build")

	out, err := p.command("serve", "--notify", " ").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "--notify: ")
}
