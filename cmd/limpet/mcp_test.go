package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// mcpPlace is where the limpets of a test run. All that they start carries a mark.
type mcpPlace struct {
	t                         *testing.T
	home, state, runtime, dir string
	mark                      string
	env                       []string            // more of it, and wins
	stderr                    *os.File            // nil: it is kept
	as                        *syscall.Credential // nil: as the test
	client                    *mcp.ClientOptions  // of hosts
	version                   string              // of the protocol; empty: the last
}

func newMCPPlace(t *testing.T) *mcpPlace {
	testenv.NeedProc(t)
	root := testenv.TempDir(t)
	p := &mcpPlace{
		t: t, home: filepath.Join(root, "home"), state: filepath.Join(root, "state"), runtime: filepath.Join(root, "run"),
		dir: filepath.Join(root, "dir"), mark: "LIMPET_TEST_MARK=" + rand.Text(),
	}
	for _, dir := range []string{p.home, p.runtime, p.dir} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, st := range testenv.Marked(p.mark) {
				_ = syscall.Kill(st.PID, syscall.SIGKILL) // What the test has found.
			}
		}
	})
	return p
}

// gone waits until nothing is left of what limpets have started.
func (p *mcpPlace) gone(when string) {
	p.t.Helper()
	testenv.AwaitNone(p.t, p.mark, when)
	testenv.Await(p.t, "the runtime directory to be empty", func() bool {
		left, err := filepath.Glob(filepath.Join(p.runtime, "*", "*")) // The user's own stays.
		return err == nil && len(left) == 0
	})
}

// limpet is a limpet mcp that runs.
type mcpLimpet struct {
	*mcpPlace
	cmd   *exec.Cmd
	said  *syncBuffer
	ended chan struct{} // it has, and nobody has its stderr
}

func (p *mcpPlace) start(stdin io.Reader, stdout io.Writer, extra []*os.File, args ...string) *mcpLimpet {
	p.t.Helper()
	l := &mcpLimpet{mcpPlace: p, cmd: exec.Command("limpet", append([]string{"mcp", "--structured"}, args...)...), said: &syncBuffer{}, ended: make(chan struct{})}
	l.cmd.Dir, l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr, l.cmd.ExtraFiles = p.dir, stdin, stdout, l.said, extra
	l.cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.state, "XDG_RUNTIME_DIR="+p.runtime, "GORACE=atexit_sleep_ms=0", p.mark)
	l.cmd.Env = append(l.cmd.Env, p.env...)
	if p.as != nil {
		l.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	}
	if p.stderr != nil {
		l.cmd.Stderr = p.stderr
	}
	require.NoError(p.t, l.cmd.Start())
	go func() {
		defer close(l.ended)
		_ = l.cmd.Wait() // Whoever wants to know looks at its state.
	}()
	p.t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // It has ended, unless the test failed.
		<-l.ended
	})
	return l
}

// exits waits until limpet ends, and whoever may have its stderr, and checks its exit code.
func (l *mcpLimpet) exits(code int) {
	l.t.Helper()
	select {
	case <-l.ended:
	case <-testenv.Context(l.t).Done():
		require.FailNow(l.t, "limpet does not end", "it said: %s", l.said)
	}
	assert.Equal(l.t, code, l.cmd.ProcessState.ExitCode(), "it said: %s", l.said)
}

// syncBuffer is a bytes.Buffer that may be looked at while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// mcpClient is a host with a connection to a limpet.
type mcpClient struct {
	*mcpLimpet
	*mcp.ClientSession
	in, out *os.File    // the pipes; out is limpet's stdout
	read    *syncBuffer // all that came
}

// stdio starts a limpet for a client.
func (p *mcpPlace) stdio(args ...string) *mcpClient {
	p.t.Helper()
	inR, inW, err := os.Pipe()
	require.NoError(p.t, err)
	outR, outW, err := os.Pipe()
	require.NoError(p.t, err)
	c := &mcpClient{mcpLimpet: p.start(inR, outW, []*os.File{inR, outW}, args...), in: inW, out: outR, read: &syncBuffer{}}
	require.NoError(p.t, inR.Close())
	require.NoError(p.t, outW.Close())
	p.t.Cleanup(func() { _, _ = inW.Close(), outR.Close() }) // The test may have closed them.
	reader := struct {
		io.Reader
		io.Closer
	}{io.TeeReader(outR, c.read), outR}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, p.client)
	c.ClientSession, err = client.Connect(testenv.Context(p.t), &mcp.IOTransport{Reader: reader, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: p.version})
	require.NoError(p.t, err)
	return c
}

func testClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
}

// tool calls a tool, and returns what it says as data.
func tool(t *testing.T, c *mcp.ClientSession, name string, arguments map[string]any) map[string]any {
	t.Helper()
	res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(t, err)
	b, err := json.Marshal(res)
	require.NoError(t, err)
	require.False(t, res.IsError, "%s", b)
	b, err = json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

func run(t *testing.T, c *mcp.ClientSession, script string) string {
	t.Helper()
	out := tool(t, c, "run_command", map[string]any{"command": script})
	text, _ := out["stdout"].(string)
	return text
}

// job runs a command in the background, and waits for its end.
func (c *mcpClient) job(script string) {
	c.t.Helper()
	out := tool(c.t, c.ClientSession, "run_command", map[string]any{"command": script, "background": true})
	job, ok := out["job"].(map[string]any)
	require.True(c.t, ok, "%v", out)
	ended := tool(c.t, c.ClientSession, "job_wait", map[string]any{"jobs": []any{job["job"]}})
	require.Equal(c.t, "exited", ended["reason"])
}

// busy has everything running that can run, and returns when it does: a command, what one
// has left, in a session of its own too, a job and a terminal.
func (p *mcpPlace) busy(c *mcp.ClientSession) {
	p.t.Helper()
	hang := func(name string) string {
		return "echo >" + p.dir + "/" + name + "; exec tail -f /dev/null"
	}
	run(p.t, c, "("+hang("left")+") & setsid bash -c '"+hang("apart")+"' >/dev/null &")
	tool(p.t, c, "run_command", map[string]any{"command": hang("job"), "background": true})
	tool(p.t, c, "terminal_create", map[string]any{"command": hang("terminal"), "settle_seconds": 0.01})
	go func() { // It gets no answer, or one that nobody looks at.
		_, _ = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "(" + hang("call") + ")"}})
	}()
	for _, name := range []string{"left", "apart", "job", "terminal", "call"} {
		testenv.AwaitFile(p.t, filepath.Join(p.dir, name))
	}
}

func TestMCPLeavesNothingBehind(t *testing.T) {
	testenv.Slow(t)
	signals := func(list ...syscall.Signal) func(*mcpClient) {
		return func(c *mcpClient) {
			for _, sig := range list {
				_ = c.cmd.Process.Signal(sig) // It may have ended after the first.
			}
		}
	}
	hangUp := func(c *mcpClient) {
		_ = c.in.Close()
		_ = c.out.Close() // Whatever it says now is said to nobody.
	}
	for _, row := range []struct {
		name string
		ends func(*mcpClient)
		code int
	}{
		{"stdin ends", func(c *mcpClient) { _ = c.in.Close() }, 0},
		{"the client is killed", hangUp, 0},
		{"SIGTERM", signals(syscall.SIGTERM), 128 + 15},
		{"SIGINT", signals(syscall.SIGINT), 128 + 2},
		{"SIGHUP", signals(syscall.SIGHUP), 128 + 1},
		{"SIGTERM twice", signals(syscall.SIGTERM, syscall.SIGTERM), 128 + 15},
		{"SIGKILL", signals(syscall.SIGKILL), -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newMCPPlace(t)
			c := p.stdio()
			p.busy(c.ClientSession)
			row.ends(c)
			c.exits(row.code)
			assert.Empty(t, c.said.String())
			p.gone(row.name)
		})
	}
}

// What runs when limpet gets a signal is answered with that.
func TestMCPSaysWhyItStoppedACommand(t *testing.T) {
	p := newMCPPlace(t)
	c := p.stdio()
	answer := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{
			"command": "echo >" + p.dir + "/begun; sleep 60",
		}})
		assert.NoError(t, err)
		answer <- res
	}()
	testenv.AwaitFile(t, filepath.Join(p.dir, "begun"))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	res := <-answer
	require.NotNil(t, res)
	b, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"stopped_by":"interrupted"`)
	assert.Contains(t, string(b), "limpet mcp ends: got SIGTERM")
	c.exits(128 + 15)
}

// It ends in good order also if that is said to nobody.
func TestMCPEndsByItselfThoughNobodyHasItsStderr(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.stderr, p.env = w, []string{"LIMPET_DEBUG=1"}
	c := p.stdio()
	p.busy(c.ClientSession)
	require.NoError(t, w.Close())
	require.NoError(t, r.Close())
	require.NoError(t, c.in.Close())
	require.NoError(t, c.out.Close())
	c.exits(0)
	p.gone("on its own")
}

// A second Ctrl-C is for who will not wait. The guard does, then.
func TestMCPLeavesNothingBehindWhenItIsToldTwice(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	c := p.stdio()
	stubborn := filepath.Join(p.dir, "stubborn")
	go func() { // As above.
		_, _ = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{
			"command": "trap '' INT TERM HUP; (trap : INT; echo >" + stubborn + "; while :; do read -rt 1000 <> <(:); done)",
		}})
	}()
	testenv.AwaitFile(t, stubborn)
	for range 100 {
		if c.cmd.Process.Signal(syscall.SIGINT) != nil {
			break
		}
	}
	<-c.ended
	p.gone("told to end again and again")
}

func TestMCPStdoutIsTheProtocolsAlone(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	p.env = []string{"LIMPET_DEBUG=1"} // It prints to stderr.
	c := p.stdio("--keep-env", "*")
	const noise = `for f in /dev/stdout /dev/stderr /proc/self/fd/{0..20} /dev/tty; do echo noise >>$f; done
for ((i = 3; i < 20; i++)); do echo noise >&$i; done`
	quiet := "{ " + noise + "; } 2>/dev/null; true"
	run(t, c.ClientSession, quiet)
	run(t, c.ClientSession, "("+quiet+") & wait")
	c.job(quiet)
	tool(t, c.ClientSession, "terminal_create", map[string]any{"command": noise, "settle_seconds": 0.5})

	for fd, want := range []string{"/dev/null", c.name(2), c.name(2)} {
		assert.Equal(t, want, c.name(fd), fd)
	}
	p.busy(c.ClientSession)
	ends := []string{c.name(2), c.name(3), c.name(4)} // Its stderr, and the client's pipes once more.
	for _, st := range testenv.Marked(p.mark) {
		if st.PID == c.cmd.Process.Pid {
			continue
		}
		held, _ := filepath.Glob("/proc/" + strconv.Itoa(st.PID) + "/fd/*") // It may have ended.
		for _, file := range held {
			name, _ := os.Readlink(file) // As above.
			assert.NotContains(t, ends, name, "%s", testenv.Describe([]proc.Stat{st}))
		}
	}
	require.NoError(t, c.in.Close())
	c.exits(0)
	p.gone("closed")
	for line := range strings.Lines(c.read.String()) {
		var message struct {
			Version string `json:"jsonrpc"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &message), "%q", line)
		assert.Equal(t, "2.0", message.Version, "%q", line)
	}
	assert.Contains(t, c.said.String(), "limpet ")
	assert.NotContains(t, c.said.String(), "noise\n")
}

// name is what limpet has at a descriptor.
func (l *mcpLimpet) name(fd int) string {
	l.t.Helper()
	name, err := os.Readlink("/proc/" + strconv.Itoa(l.cmd.Process.Pid) + "/fd/" + strconv.Itoa(fd))
	require.NoError(l.t, err)
	return name
}

func TestMCPStartsWhereItIsTold(t *testing.T) {
	p := newMCPPlace(t)
	c := p.stdio()
	assert.Equal(t, p.dir+"\n", run(t, c.ClientSession, "pwd"))
	require.NoError(t, c.Close())
	c.exits(0)
	c = p.stdio("--dir", p.home, "--env", "x=a b", "--timeout", "3s", "--max-timeout", "4s")
	assert.Equal(t, p.home+" a b\n", run(t, c.ClientSession, "echo $PWD $x"))
	res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "true", "timeout_seconds": 5}})
	require.NoError(t, err)
	assert.True(t, res.IsError)
	require.NoError(t, c.Close())
	c.exits(0)
}

func TestMCPInASandboxStartsInTheWorkspace(t *testing.T) {
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	p := newMCPPlace(t)
	workspace := filepath.Join(p.home, "workspace")
	require.NoError(t, os.Mkdir(workspace, 0o700))
	c := p.stdio("--sandbox", "workspace-write", "--workspace", workspace)
	assert.Equal(t, workspace+"\n", run(t, c.ClientSession, "pwd; echo x >file"))
	out := tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo x >" + p.dir + "/file"})
	assert.NotEqual(t, 0.0, out["exit_code"])
	assert.NoFileExists(t, p.dir+"/file")
	require.NoError(t, c.Close())
	c.exits(0)
	p.gone("closed")

	c = p.stdio("--sandbox", "workspace-write", "--dir", p.dir, "--keep-env", "LIMPET_TEST_MARK")
	assert.Equal(t, p.dir+"\n", run(t, c.ClientSession, "pwd"))
	p.busy(c.ClientSession)
	require.NoError(t, c.cmd.Process.Kill())
	c.exits(-1)
	p.gone("killed")
}

func TestMCPKeepsJobsAndTerminalsWhereItIsTold(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	state := filepath.Join(p.dir, "state")
	c := p.stdio("--state", "state")
	c.job("echo of the job")
	tool(t, c.ClientSession, "terminal_create", map[string]any{"command": "exec -a of-the-terminal cat"})
	for kind, want := range map[string]string{"jobs": "of the job", "term": "of-the-terminal"} {
		dir := map[string]string{"jobs": "jobs", "term": "terminals"}[kind]
		out, err := exec.Command("limpet", kind, "list", "--state", filepath.Join(state, dir)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), want)
	}
	require.NoError(t, c.Close())
	c.exits(0)
	p.gone("closed")
}
