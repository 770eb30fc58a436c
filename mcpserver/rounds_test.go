package mcpserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// byRounds is a host that asks its user itself, and calls again; what is asked about a script is "run SCRIPT?".
func byRounds(t *testing.T) *host {
	with := setup{version: "2026-07-28", client: mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			panic("nobody is asked this way")
		},
	}}
	h, _ := approving(t, with, func(ctx context.Context, a session.Action) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		c, _ := mcpserver.CallerOf(ctx)
		assert.True(t, c.Rounds())
		choice, err := c.Elicit(ctx, "run "+a.Script+"?", "no", "yes")
		if err == nil && choice != "yes" {
			err = no(1)
		}
		return err
	})
	return h
}

// round calls a tool, with an answer that may be nil.
func (h *host) round(tool string, arguments object, state string, answer *mcp.ElicitResult) *mcp.CallToolResult {
	h.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments, RequestState: state}
	if answer != nil {
		params.InputResponses = mcp.InputResponseMap{"approval": answer}
	}
	res, err := h.CallTool(testenv.Context(h.t), params)
	require.NoError(h.t, err)
	return res
}

func answered(choice any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: object{"answer": choice}}
}

func TestAClientThatCallsAgainBringsTheAnswerOfItsUser(t *testing.T) {
	h := byRounds(t)
	script := object{"command": "echo ran"}
	first := h.round("run_command", script, "", nil)
	require.True(t, first.NeedsInput())
	form, ok := first.InputRequests["approval"].(*mcp.ElicitParams)
	require.True(t, ok)
	assert.Equal(t, "run echo ran?", form.Message)
	res := h.round("run_command", script, first.RequestState, answered("yes"))
	require.False(t, res.NeedsInput())
	assert.Contains(t, textOf(res), "ran\n")

	first = h.round("run_command", script, "", nil)
	assert.Contains(t, textOf(h.round("run_command", script, first.RequestState, answered("no"))), "not approved")
	for name, answer := range map[string]*mcp.ElicitResult{
		"no answer": nil, "no choice": answered(nil), "another": answered("sure"), "declined": {Action: "decline", Content: object{"answer": "yes"}}, "dismissed": {Action: "cancel"},
	} {
		first := h.round("run_command", script, "", nil)
		res := h.round("run_command", script, first.RequestState, answer)
		assert.True(t, res.IsError && !res.NeedsInput(), name)
		assert.Contains(t, textOf(res), "nothing was chosen", name)
	}
}

// A yes is for one call, and for what was asked.
func TestAnAnswerOfAClientIsForOneCall(t *testing.T) {
	h := byRounds(t)
	script, other := object{"command": "echo one"}, object{"command": "echo two"}
	asked := func(what string, res *mcp.CallToolResult) {
		t.Helper()
		require.True(t, res.NeedsInput(), "%s: %s", what, textOf(res))
	}
	first := h.round("run_command", script, "", nil)
	asked("another script", h.round("run_command", other, first.RequestState, answered("yes")))
	asked("it was used for another one", h.round("run_command", script, first.RequestState, answered("yes")))
	asked("no state", h.round("run_command", script, "", answered("yes")))
	asked("a state that is made up", h.round("run_command", script, "AAAAAAAAAAAAAAAAAAAAAAAAAA", answered("yes")))
	first = h.round("run_command", script, "", nil)
	require.False(t, h.round("run_command", script, first.RequestState, answered("yes")).NeedsInput())
	asked("it was used", h.round("run_command", script, first.RequestState, answered("yes")))
	first = h.round("run_command", object{"command": "echo one", "background": true}, "", nil)
	asked("another call with the same question", h.round("run_command", script, first.RequestState, answered("yes")))
	for range 300 {
		h.round("run_command", script, "", nil)
	}
	asked("the oldest are forgotten", h.round("run_command", object{"command": "echo one", "background": true}, first.RequestState, answered("yes")))
}
