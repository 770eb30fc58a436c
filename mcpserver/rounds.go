package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// From 2026-07-28 on no request goes from the server to a client. A call that needs an answer of the user ends with the question, and
// the client calls again, with the answer (SEP-2322, multi round-trip requests):
//
//	client                                   server
//	tools/call ARGUMENTS  ---------------->  the approver is asked, and asks
//	           <---------------------------  input_required: the form, and a state
//	tools/call ARGUMENTS, answer, state -->  the approver is asked again, and has its answer
//
// Nothing has run behind the first call. The second one is decided anew: if something else would be asked by now, the answer
// counts for nothing. A state is good for one answer.

// inputNeeded is the error of a call that ends with a question.
type inputNeeded struct {
	form  *mcp.ElicitParams
	state string
}

func (e *inputNeeded) Error() string { return "the client has not asked its user yet" }

// inputID names the one form that a call has.
const inputID = "approval"

func (e *inputNeeded) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{inputID: e.form}, RequestState: e.state}
}

// rounds are the questions that clients have taken to their users.
type rounds struct {
	mu   sync.Mutex
	open map[string]round
}

// round is such a question. An answer counts only for the very call, and the very words.
type round struct {
	tool, message string
	arguments     []byte
	until         time.Time
}

// mostRounds bounds them: the oldest are forgotten.
const mostRounds = 256

// ask takes down a question, and returns its state.
func (r *rounds) ask(one round) string {
	state := rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[string]round)
	}
	oldest := ""
	for state, other := range r.open {
		if time.Now().After(other.until) {
			delete(r.open, state)
		} else if oldest == "" || other.until.Before(r.open[oldest].until) {
			oldest = state
		}
	}
	if len(r.open) >= mostRounds {
		delete(r.open, oldest)
	}
	r.open[state] = one
	return state
}

// answered takes a question out, and reports whether it was that one.
func (r *rounds) answered(state string, one round) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked, ok := r.open[state]
	delete(r.open, state)
	return ok && asked.tool == one.tool && asked.message == one.message && bytes.Equal(asked.arguments, one.arguments) && time.Now().Before(asked.until)
}

// Rounds reports whether the client is one that calls again with the answer of its user. Then Elicit does not wait: its
// error ends the call, and the Approver must return it.
func (c Caller) Rounds() bool {
	params := c.c.request.Session.InitializeParams()
	return params == nil || params.ProtocolVersion >= stateless
}

// elicitByRounds is Elicit for such a client.
func (c *call) elicitByRounds(ctx context.Context, form *mcp.ElicitParams, choices []string) (string, error) {
	if able := c.request.ClientCapabilities(); able == nil || able.Elicitation == nil || able.Elicitation.Form == nil && able.Elicitation.URL != nil {
		return "", fmt.Errorf("%w: the client cannot ask", ErrNoChoice)
	}
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(time.Hour)
	}
	arguments := new(bytes.Buffer)
	if err := json.Compact(arguments, c.request.Params.Arguments); err != nil { // There are none.
		arguments.Reset()
	}
	one := round{tool: c.request.Params.Name, message: form.Message, arguments: arguments.Bytes(), until: until}
	state := c.request.Params.RequestState
	if state == "" || !c.server.rounds.answered(state, one) {
		return "", &inputNeeded{form, c.server.rounds.ask(one)}
	}
	res, _ := c.request.Params.InputResponses[inputID].(*mcp.ElicitResult)
	return chosen(res, choices)
}

// chosen is the choice that was made in a form.
func chosen(res *mcp.ElicitResult, choices []string) (string, error) {
	if res == nil || res.Action != "accept" {
		return "", ErrNoChoice
	}
	choice, _ := res.Content[choiceField].(string)
	if !slices.Contains(choices, choice) {
		return "", ErrNoChoice
	}
	return choice, nil
}
