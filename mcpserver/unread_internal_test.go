package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// holdup holds a call up whose answer is made and not sent.
type holdup struct {
	mu      sync.Mutex
	armed   bool
	names   []string      // commands: the titles of resources have them, and are masked, too; that is no answer
	reached chan struct{} // has a token when it is held up
	release chan struct{}
	calls   chan heldCall // what the server has of a call that will be held up
}

// heldCall is a call at the server.
type heldCall struct {
	cancel   context.CancelFunc // cancels the context of the call, with all that are derived from it, before it returns
	returned chan struct{}      // is closed when the call has returned
}

func (h *holdup) mask(text []byte) ([]byte, []string) {
	h.mu.Lock()
	armed := h.armed && !slices.Contains(h.names, string(text))
	if armed {
		h.armed = false
	}
	h.mu.Unlock()
	if armed {
		h.reached <- struct{}{}
		<-h.release
	}
	return text, nil
}

// A call may be cancelled when its answer is made. Nobody reads that: what it tells once is told by the next one, and once.
func TestWhatACancelledCallWouldHaveToldIsToldNext(t *testing.T) {
	testenv.Slow(t)
	h := &holdup{reached: make(chan struct{}, 1), release: make(chan struct{}), calls: make(chan heldCall, 1)}
	sessions, err := session.New(&session.Options{Shell: &shell.Options{
		Env: append(shell.DefaultEnv(), "HOME="+testenv.TempDir(t)), Dir: testenv.TempDir(t), RuntimeDir: testenv.TempDir(t),
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, sessions.Close()) }()
	server, err := New(sessions, &Options{Structured: true, Mask: h.mask})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	server.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			h.mu.Lock()
			armed := h.armed && method == callTool
			h.mu.Unlock()
			if armed {
				own, cancel := context.WithCancel(ctx)
				defer cancel()
				held := heldCall{cancel, make(chan struct{})}
				defer close(held.returned)
				h.calls <- held
				ctx = own
			}
			return next(ctx, method, req)
		}
	})
	there, here := mcp.NewInMemoryTransports()
	_, err = server.mcp.Connect(testenv.Context(t), there, nil)
	require.NoError(t, err)
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(testenv.Context(t), here, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	type object = map[string]any
	call := func(ctx context.Context, tool string, arguments object) (out object, err error) {
		res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return nil, err
		}
		if res.IsError {
			return nil, fmt.Errorf("%v", res.Content)
		}
		b, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return nil, err
		}
		return out, json.Unmarshal(b, &out)
	}
	done := func(tool string, arguments object) object {
		out, err := call(testenv.Context(t), tool, arguments)
		require.NoError(t, err)
		return out
	}
	text := func(session string) string {
		res, err := client.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: object{"session": session, "command": "true"}})
		require.NoError(t, err)
		require.NotEmpty(t, res.Content)
		return res.Content[0].(*mcp.TextContent).Text
	}
	notices := func() string {
		list, _ := done("run_command", object{"session": "s", "command": "true"})["notices"].([]any)
		var texts []string
		for _, one := range list {
			texts = append(texts, one.(string))
		}
		return strings.Join(texts, "\n")
	}
	notices()
	sess, err := sessions.Get("s")
	require.NoError(t, err)
	dir := testenv.TempDir(t)
	until := func(gate string) string { // a command that ends when a fifo is opened
		path := filepath.Join(dir, gate)
		require.NoError(t, unix.Mkfifo(path, 0o600))
		return "read -r line <" + path + "; exit 5"
	}
	open := func(gate string) { require.NoError(t, os.WriteFile(filepath.Join(dir, gate), []byte("\n"), 0o600)) }
	starts := func(command string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.names = append(h.names, command)
	}
	startJob := func(command string) string {
		starts(command)
		return done("run_command", object{"session": "s", "command": command, "background": true})["job"].(object)["job"].(string)
	}
	startTerminal := func(command string) string {
		starts(command)
		return done("terminal_create", object{"session": "s", "command": command, "settle_seconds": 0})["terminal"].(object)["terminal"].(string)
	}
	starts("exec sleep 1000")
	starts("/there/is/none")
	terminal := startTerminal("bash")
	ended, job := startTerminal("exit 3"), startJob("exit 4")
	done("terminal_wait", object{"terminal": ended})
	done("job_wait", object{"jobs": []any{job}})
	notices()

	startJob(until("listed-job"))
	startJob(until("taken-job"))
	news := func() { sess.Notify("news") }
	seenJob, queuedJob, killedJob := startJob(until("seen-job")), startJob(until("queued-job")), startJob("exec sleep 1000")
	queuedTerminal, typedTerminal, listedTerminal := startTerminal(until("queued-terminal")), startTerminal(until("typed-terminal")), startTerminal(until("listed-terminal"))
	endJob := func() {
		open("seen-job")
		r, err := sessions.Jobs()
		require.NoError(t, err)
		testenv.Await(t, "the end", func() bool {
			job, err := r.Get(seenJob)
			return err == nil && job.State.Finished()
		})
	}
	queue := func(gate string) func() { // has an end queued, which nobody has seen
		return func() {
			open(gate)
			testenv.Await(t, "the end behind "+gate, func() bool {
				texts, putBack := sess.TakeNotices()
				putBack()
				return len(texts) > 0
			})
		}
	}
	const (
		jobEnded      = `job \S+ \(read .*\) has ended: exit 5`
		terminalEnded = `the program of terminal \S+ \(read .*\) has ended: failed, exit 5`
	)
	cancelled := func(tool string, arguments object) { // makes a call that is cancelled when its answer is complete
		h.mu.Lock()
		h.armed = true
		h.mu.Unlock()
		ctx, cancel := context.WithCancel(testenv.Context(t))
		answered := make(chan error, 1)
		go func() {
			_, err := call(ctx, tool, arguments)
			answered <- err
		}()
		held := <-h.calls
		select {
		case <-h.reached:
		case err := <-answered:
			require.FailNow(t, "it was not held up", "%s %v: %v", tool, arguments, err)
		}
		cancel()
		require.ErrorIs(t, <-answered, context.Canceled)
		held.cancel() // The cancellation of the client may still be on its way.
		h.release <- struct{}{}
		<-held.returned
	}
	for _, row := range []struct {
		tool      string
		arguments object
		before    func()
		want      string // regular expression of the one notice
	}{
		{"terminal_create", object{"session": "s", "command": "exec sleep 1000", "settle_seconds": 0}, nil, `^a call was cancelled that has started terminal \S+ \(exec sleep 1000\): it runs on$`},
		{"run_command", object{"session": "s", "command": "exec sleep 1000", "background": true}, nil, `^a call was cancelled that has started job \S+ \(exec sleep 1000\)$`},
		{"run_command", object{"session": "s", "command": "echo x"}, nil, `^a call was cancelled \(echo x\): its command had exited with code 0, and result \S+ has what it printed$`},
		{"run_command", object{"session": "s", "command": "echo y"}, news, `^news\na call was cancelled \(echo y\): .*$`},
		{"terminal_screen", object{"terminal": terminal}, news, "^news$"},
		{"job_list", object{"session": "s"}, news, "^news$"},
		{"terminal_screen", object{"terminal": ended}, nil, "^$"},
		{"job_log", object{"job": job}, nil, "^$"},
		{"job_log", object{"job": seenJob}, endJob, "^" + jobEnded + "$"},
		{"job_log", object{"job": queuedJob}, queue("queued-job"), "^" + jobEnded + "$"},
		{"job_list", object{"session": "s"}, queue("listed-job"), "^" + jobEnded + "$"},
		{"run_command", object{"session": "s", "command": "echo z"}, queue("taken-job"), "^" + jobEnded + `\na call was cancelled \(echo z\): .*$`},
		{"job_write", object{"job": queuedJob, "text": "x"}, nil, "^$"},
		{"job_kill", object{"job": killedJob}, nil, `^job \S+ \(exec sleep 1000\) has ended: ended by signal \d+ \(.*\), stopped on request$`},
		{"job_kill", object{"job": killedJob}, nil, "^$"},
		{"terminal_capture", object{"terminal": queuedTerminal}, queue("queued-terminal"), "^" + terminalEnded + "$"},
		{"terminal_send_keys", object{"terminal": typedTerminal, "text": "x"}, queue("typed-terminal"), "^" + terminalEnded + "$"},
		{"terminal_resize", object{"terminal": typedTerminal, "columns": 90, "rows": 20}, nil, "^$"},
		{"terminal_list", object{"session": "s"}, queue("listed-terminal"), "^" + terminalEnded + "$"},
		{"terminal_kill", object{"terminal": listedTerminal}, nil, "^$"},
		{"terminal_kill", object{"terminal": terminal}, nil, `^a call was cancelled that has ended terminal \S+ \(bash\)$`},
		{"terminal_kill", object{"terminal": terminal}, nil, "^$"},
		{"terminal_create", object{"session": "s", "argv": []any{"/there/is/none"}}, nil, "^$"},
		{"terminal_list", object{"session": "s"}, nil, "^$"},
	} {
		if row.before != nil {
			row.before()
		}
		cancelled(row.tool, row.arguments)
		assert.Regexp(t, row.want, notices(), "%s %v", row.tool, row.arguments)
		assert.Empty(t, notices(), "%s %v", row.tool, row.arguments)
	}

	cancelled("run_command", object{"session": "s", "command": "cd /usr"})
	assert.Contains(t, text("s"), "in /usr")
	assert.NotContains(t, text("s"), "in /usr")
	cancelled("run_command", object{"session": "another", "command": "true"})
	assert.Contains(t, text("another"), "new session another")
	assert.NotContains(t, text("another"), "new session another")
}
