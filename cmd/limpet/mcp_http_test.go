package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

var listening = regexp.MustCompile(`(?m)^limpet: MCP at (http://127\.0\.0\.1:\d+/mcp), token in (.+)$`)

// overHTTP starts a limpet that listens, and returns its URL and where the token is.
func (p *mcpPlace) overHTTP(args ...string) (l *mcpLimpet, url, place string) {
	p.t.Helper()
	l = p.start(nil, nil, nil, append([]string{"--http", "0"}, args...)...)
	testenv.Await(p.t, "it to listen", func() bool {
		if m := listening.FindStringSubmatch(l.said.String()); m != nil {
			url, place = m[1], m[2]
		}
		return url != ""
	})
	return l, url, place
}

// bearer adds a token to requests.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(req)
}

func (p *mcpPlace) dial(url, token, era string) *mcp.ClientSession {
	p.t.Helper()
	transport := &http.Transport{}
	p.t.Cleanup(transport.CloseIdleConnections)
	c, err := testClient().Connect(testenv.Context(p.t), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer{transport, token}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() }) // The server is gone, mostly.
	return c
}

var mcpEras = []string{"2025-11-25", "2026-07-28"}

func TestMCPOverHTTPKeepsSessionsAndItsToken(t *testing.T) {
	p := newMCPPlace(t)
	l, url, file := p.overHTTP()
	assert.Equal(t, filepath.Join(p.state, "limpet", "mcp-token"), file)
	st, err := os.Stat(file)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, st.Mode())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	token := strings.TrimSuffix(string(b), "\n")
	one := p.dial(url, token, mcpEras[0])
	run(t, one, "cd "+p.home+"; x=kept")
	require.NoError(t, one.Close())
	assert.Equal(t, "kept "+p.home+"\n", run(t, p.dial(url, token, mcpEras[1]), "echo $x $PWD"))
	require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM))
	l.exits(128 + 15)
	assert.NotContains(t, l.said.String(), token)
	p.gone("told to end")

	l, url, again := p.overHTTP("--token-file", file)
	assert.Equal(t, file, again)
	assert.Equal(t, "\n", run(t, p.dial(url, token, mcpEras[1]), "echo $x"))
	other := p.start(nil, nil, nil, "--http", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
	other.exits(codeFailed)
	assert.Contains(t, other.said.String(), "another program listens there, perhaps another limpet mcp: choose another port, or 0 for any that is free")
	require.NoError(t, l.cmd.Process.Signal(syscall.SIGINT))
	l.exits(128 + 2)
}

func TestMCPOverHTTPLeavesNothingBehind(t *testing.T) {
	testenv.Slow(t)
	for _, era := range mcpEras {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(era+" "+sig.String(), func(t *testing.T) {
				p := newMCPPlace(t)
				p.env = []string{tokenVariable + "=from-the-environment"}
				l, url, place := p.overHTTP()
				assert.Equal(t, tokenVariable, place)
				assert.NoFileExists(t, filepath.Join(p.state, "limpet", "mcp-token"))
				p.busy(p.dial(url, "from-the-environment", era))
				require.NoError(t, l.cmd.Process.Signal(sig))
				<-l.ended
				p.gone(sig.String())
			})
		}
	}
}

// Whoever has the token can run commands, also outside a sandbox.
func TestMCPDoesNotPassItsTokenOn(t *testing.T) {
	p := newMCPPlace(t)
	const token = "from-the-environment"
	p.env = []string{tokenVariable + "=" + token}
	l, url, _ := p.overHTTP("--keep-env", "*")
	c := p.dial(url, token, mcpEras[1])
	p.busy(c)
	out := tool(t, c, "run_command", map[string]any{"command": "env", "session": "other"})
	assert.Contains(t, out["stdout"], p.mark)
	assert.NotContains(t, out["stdout"], token)
	for _, st := range testenv.Marked(p.mark) {
		for _, file := range []string{"environ", "cmdline"} {
			if file == "environ" && st.PID == l.cmd.Process.Pid {
				continue // That is where it came from.
			}
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/" + file) // It may have ended.
			assert.NotContains(t, string(b), token, "%s of %s", file, testenv.Describe([]proc.Stat{st}))
		}
	}
	require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM))
	l.exits(128 + 15)
	assert.NotContains(t, l.said.String(), token)
	p.gone("told to end")
}

func TestMCPServesNothingButItsPath(t *testing.T) {
	p := newMCPPlace(t)
	l, url, _ := p.overHTTP()
	for path, want := range map[string]int{"/mcp": http.StatusUnauthorized, "/": http.StatusNotFound, "/mcp/x": http.StatusNotFound, "/.well-known/oauth-protected-resource": http.StatusNotFound} {
		res, err := http.Get(strings.TrimSuffix(url, "/mcp") + path)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode, path)
		assert.True(t, strings.HasPrefix(string(b), "limpet: "), "%s", b)
	}
	require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM))
	l.exits(128 + 15)
}

func TestMCPWarnsWhereTheNetworkCanListen(t *testing.T) {
	p := newMCPPlace(t)
	for addr, warned := range map[string]bool{"0.0.0.0:0": true, "[::1]:0": false, "localhost:0": false, ":0": false} {
		l := p.start(nil, nil, nil, "--http", addr)
		said := func(what string) bool { return strings.Contains(l.said.String(), what) }
		testenv.Await(t, "it to listen on "+addr, func() bool { return said("limpet: MCP at http://") || said("does not have that address") })
		if !said("limpet: MCP at http://") {
			require.Equal(t, "[::1]:0", addr) // There is no IPv6 here.
			continue
		}
		assert.Equal(t, warned, strings.Contains(l.said.String(), "there is no TLS"), "%s: %s", addr, l.said)
		require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM))
		l.exits(128 + 15)
	}
}
