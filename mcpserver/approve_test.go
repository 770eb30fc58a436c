package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// approver says what it was told to, and remembers what it was asked.
type approver struct {
	mu     sync.Mutex
	asked  []session.Action
	answer func(ctx context.Context, a session.Action) error
}

func (a *approver) Approve(ctx context.Context, act session.Action) (func(string) bool, error) {
	a.mu.Lock()
	a.asked = append(a.asked, act)
	a.mu.Unlock()
	return nil, a.answer(ctx, act)
}

func (a *approver) Changed() {}

func (a *approver) Fork() session.Approver { return a }

// approving returns a host whose sessions ask a func.
func approving(t *testing.T, with setup, answer func(ctx context.Context, a session.Action) error) (*host, *approver) {
	a := &approver{answer: answer}
	with.sessions.Approve = func(session.Approved) session.Approver { return a }
	return connect(t, with), a
}

func no(refusals int) error {
	return &approval.RefusedError{Question: approval.Question{Script: "rm a", Judgement: approval.Judge("rm a", nil)}, Reason: "keep it", Refusals: refusals}
}

// A model is told why, and what to do instead, and in the end to stop.
func TestWhatIsNotApprovedDoesNotRunAndSaysWhatToDo(t *testing.T) {
	var why error
	h, a := approving(t, setup{}, func(context.Context, session.Action) error { return why })
	dir := filepath.Join(testenv.TempDir(t), "made")
	for _, c := range []struct {
		why  error
		says string
	}{
		{no(1), "not approved: rm a: it deletes files; the answer was no: keep it. Nothing ran. Do it in another way, or tell the user why it is needed."},
		{no(3), "not approved: rm a: it deletes files; the answer was no: keep it. Nothing ran. That is question 3 in a row without a yes: stop trying, and tell the user what is to be approved."},
		{fmt.Errorf("%w within 25s", &approval.RefusedError{Question: approval.Question{Judgement: approval.Judge("rm a", nil)}, Nobody: true}),
			"not approved: rm a: it deletes files; there is nobody to ask within 25s. Nothing ran. Go on with what needs no approval, or tell the user what is to be approved."},
		{&approval.RefusedError{Question: approval.Question{Judgement: approval.Judge("rm a", nil)}, Nobody: true, Refusals: 3},
			"not approved: rm a: it deletes files; there is nobody to ask. Nothing ran. That is question 3 in a row without a yes: stop trying, and tell the user what is to be approved."},
		{errors.New("the disk is full"), "refused: the disk is full"},
	} {
		why = c.why
		for _, one := range []struct {
			tool      string
			arguments object
		}{
			{"run_command", object{"command": "mkdir " + dir}},
			{"run_command", object{"command": "mkdir " + dir, "background": true}},
			{"run_command", object{"command": "mkdir " + dir, "stdin": "x"}},
			{"terminal_create", object{"command": "mkdir " + dir}},
			{"terminal_create", object{"argv": []string{"mkdir", dir}}},
		} {
			assert.Equal(t, c.says, h.refuse(one.tool, one.arguments), "%s %v", one.tool, one.arguments)
		}
	}
	why = nil
	require.NoDirExists(t, dir)
	for _, act := range a.asked {
		assert.Equal(t, "mkdir "+dir, act.Script)
		assert.Equal(t, "default", act.Session)
		assert.NotEmpty(t, act.Dir)
	}
	out := h.run("default", "true")
	assert.NotNil(t, out, "the session goes on")
}

func TestWhatIsTypedIsApproved(t *testing.T) {
	testenv.Slow(t)
	var mu sync.Mutex
	refuse := false
	h, a := approving(t, setup{}, func(context.Context, session.Action) error {
		mu.Lock()
		defer mu.Unlock()
		if refuse {
			return no(1)
		}
		return nil
	})
	job, _ := h.call("run_command", object{"command": "cat", "background": true, "keep_stdin_open": true})
	id := job["job"].(object)["job"].(string)
	screen, _ := h.call("terminal_create", object{"command": "cat"})
	terminal := screen["terminal"].(object)["terminal"].(string)
	mu.Lock()
	refuse = true
	mu.Unlock()
	for tool, arguments := range map[string]object{
		"job_write":          {"job": id, "text": "rm a"},
		"job_submit":         {"job": id, "text": "rm a"},
		"terminal_send_keys": {"terminal": terminal, "keys": []string{"rm a", "Enter"}},
	} {
		assert.Contains(t, h.refuse(tool, arguments), "not approved", tool)
		last := a.asked[len(a.asked)-1]
		assert.Equal(t, session.InputAction, last.Kind, tool)
		assert.Contains(t, last.Script, "rm a", tool)
		assert.Contains(t, []string{id, terminal}, last.Input, tool)
	}
	mu.Lock()
	refuse = false
	mu.Unlock()
	h.call("job_write", object{"job": id, "text": "y"})
	h.call("job_close", object{"job": id}) // It types nothing.
}

// callerOf runs a command, and returns what the approver could learn of the call.
func callerOf(t *testing.T, with setup, arguments object, learn func(ctx context.Context, c mcpserver.Caller)) {
	t.Helper()
	h, _ := approving(t, with, func(ctx context.Context, _ session.Action) error {
		c, ok := mcpserver.CallerOf(ctx)
		assert.True(t, ok)
		learn(ctx, c)
		return nil
	})
	arguments["command"] = "true"
	h.call("run_command", arguments)
}

func TestWhoAsksKnowsTheCall(t *testing.T) {
	callerOf(t, setup{server: mcpserver.Options{Answer: 40 * time.Second}}, object{"stdin": "some text"}, func(_ context.Context, c mcpserver.Caller) {
		assert.Equal(t, "test 1", c.Client())
		assert.Equal(t, "some text", c.Stdin())
		assert.Equal(t, 20*time.Second, c.Within(time.Hour), "its client gives it up soon")
		assert.Equal(t, time.Second, c.Within(time.Second))
	})
	_, ok := mcpserver.CallerOf(t.Context())
	assert.False(t, ok)
}

// A form that comes back without a choice, or not at all, has decided nothing, whatever the client says that its user did.
func TestOnlyAChoiceOfThePersonCounts(t *testing.T) {
	testenv.Slow(t)
	for name, c := range map[string]struct {
		result *mcp.ElicitResult
		err    error
		want   string
	}{
		"chosen":            {result: &mcp.ElicitResult{Action: "accept", Content: object{"answer": "yes"}}, want: "yes"},
		"no":                {result: &mcp.ElicitResult{Action: "accept", Content: object{"answer": "no"}}, want: "no"},
		"an empty form":     {result: &mcp.ElicitResult{Action: "accept", Content: object{}}},
		"no form":           {result: &mcp.ElicitResult{Action: "accept"}},
		"another choice":    {result: &mcp.ElicitResult{Action: "accept", Content: object{"answer": "sure"}}},
		"declined":          {result: &mcp.ElicitResult{Action: "decline"}},
		"declined with yes": {result: &mcp.ElicitResult{Action: "decline", Content: object{"answer": "yes"}}},
		"dismissed":         {result: &mcp.ElicitResult{Action: "cancel"}},
		"an error":          {err: errors.New("no")},
	} {
		t.Run(name, func(t *testing.T) {
			shown := ""
			with := setup{version: "2025-11-25", client: mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				shown = r.Params.Message
				return c.result, c.err
			}}}
			callerOf(t, with, object{}, func(ctx context.Context, caller mcpserver.Caller) {
				choice, err := caller.Elicit(ctx, "may it?", "no", "yes")
				assert.Equal(t, c.want, choice)
				assert.Equal(t, c.want == "", errors.Is(err, mcpserver.ErrNoChoice), "%v", err)
			})
			assert.Equal(t, "may it?", shown)
		})
	}
}

func TestAClientThatCannotAskChoosesNothing(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		callerOf(t, setup{version: version}, object{}, func(ctx context.Context, c mcpserver.Caller) {
			_, err := c.Elicit(ctx, "may it?", "no", "yes")
			require.ErrorIs(t, err, mcpserver.ErrNoChoice)
		})
	}
}

// The client of a call that waits for a person is told so, and a call that is cancelled asks no more.
func TestACallThatWaitsForAPersonSaysSoAndCanBeCancelled(t *testing.T) {
	told := make(chan string, 100)
	with := setup{server: mcpserver.Options{Progress: time.Millisecond}, client: mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case told <- r.Params.Message:
			default:
			}
		},
	}}
	withdrawn := make(chan error, 1)
	h, _ := approving(t, with, func(ctx context.Context, _ session.Action) error {
		c, _ := mcpserver.CallerOf(ctx)
		defer c.Waits("waits for somebody")()
		<-ctx.Done()
		withdrawn <- context.Cause(ctx)
		return context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(testenv.Context(t))
	ended := make(chan error, 1)
	go func() {
		params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "true"}}
		params.SetProgressToken("p")
		_, err := h.CallTool(ctx, params)
		ended <- err
	}()
	for text := range told {
		if strings.Contains(text, "waits for somebody") {
			break // The test's own limit ends a wait in vain.
		}
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, <-withdrawn, context.Canceled)
}
