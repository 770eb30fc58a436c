package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
)

// Run is the body of a request that opens a session and runs a command in it, which saves who asks a round trip. The offsets of its output
// are in the address, as those of ./commands.
type Run struct {
	Spec    *keeper.Spec    `json:"spec,omitempty"` // as in Open
	Command json.RawMessage `json:"command"`        // the body of ./commands

	// Close ends a session that this request has made when the command has ended. The answer ends after that, with HeadClosed.
	Close bool `json:"close,omitempty"`
}

// The answer to a Run begins, if the session could be opened, with a line that says how many bytes a keeper.Opened has, as JSON, and then these. It
// is sent before the keeper has answered, which may take long: the command waits there while the session is upgraded, say. The answer to the
// command is behind it: a line that has its status, or NoAnswer, and its body.

// NoAnswer says that the keeper of the session may have the command, and has not answered. The client asks for it again, in that session.
const NoAnswer = http.StatusBadGateway

// HeadClosed is in the trailer of the answer to a Run when its session was ended.
const HeadClosed = "Limpet-Closed"

// closePatience bounds how long the answer to a Run waits for the end of its session.
const closePatience = 10 * time.Second

// run opens a session, and passes a command on to its keeper. The session stays if the connection is lost: the client may ask again, over another
// one.
func (rt *router) run(w http.ResponseWriter, r *http.Request) {
	body, err := jsonhttp.Body(w, r, wire.MostBody) // First: see pipe.Serve.
	var in Run
	if err == nil {
		err = jsonhttp.Unmarshal(body, &in)
	}
	if err == nil && len(in.Command) == 0 {
		err = errors.New("there is no command to run")
	}
	var k *keeper.Kept
	if err == nil {
		ctx := r.Context()
		if in.Close {
			ctx = context.WithoutCancel(ctx) // A session that is made just when the client gives up is to be known, and ended.
		}
		k, err = rt.session(ctx, r.PathValue("name"), in.Spec)
	}
	if err != nil {
		wire.Answer(w, nil, err)
		return
	}
	if !rt.note(k) { // What the others use may lead to the keeper before the session was upgraded.
		defer k.Disconnect()
	}
	opened := k.Opened()
	if opened.Made { // Who asks tells a person where it is.
		opened.Info = infoOf(r.Context(), k)
	}
	begin(w, opened)
	behind := &behindOpened{w}
	answer, err := k.Forward(r.Context(), http.MethodPost, "/sessions/"+k.Name()+"/commands?"+r.URL.RawQuery, in.Command)
	if err != nil && in.Close && opened.Made && r.Context().Err() != nil && !rt.lost() {
		_ = rt.closeRun(r.Context(), k) // The client has given up, and may not know that there is a session.
	}
	if jsonhttp.Sent(err) {
		behind.WriteHeader(NoAnswer)
		return
	}
	if err != nil {
		if errors.Is(err, wire.ErrGone) {
			rt.forget(k.Record.SessionID()) // As in forward.
		}
		wire.Answer(behind, nil, err)
		return
	}
	defer answer.Close()
	if !jsonhttp.Relay(behind, answer.Response) {
		panic(http.ErrAbortHandler) // As in forward.
	}
	if in.Close && opened.Made && answer.StatusCode == http.StatusOK {
		if rt.closeRun(r.Context(), k) == nil { // Else the client asks for it, and is told why not.
			w.Header().Set(http.TrailerPrefix+HeadClosed, "true")
		}
	}
}

// closeRun ends the session of a Run, also when its client does not wait for that.
func (rt *router) closeRun(ctx context.Context, k *keeper.Kept) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return rt.endNow(ctx, k, true)
}

// begin has an answer begin with the session that is open. Who went away misses nothing.
func begin(w http.ResponseWriter, opened keeper.Opened) {
	said, err := json.Marshal(opened)
	if err != nil {
		panic(http.ErrAbortHandler) // The client sees that there is no answer.
	}
	w.WriteHeader(http.StatusOK)
	_, _ = fmt.Fprintf(w, "%d\n%s", len(said), said)
	_ = http.NewResponseController(w).Flush()
}

// behindOpened writes an answer behind the session.
type behindOpened struct{ http.ResponseWriter }

func (b *behindOpened) WriteHeader(status int) {
	_, _ = fmt.Fprintf(b.ResponseWriter, "%d\n", status) // Who went away misses nothing.
}

// Unwrap is for http.ResponseController.
func (b *behindOpened) Unwrap() http.ResponseWriter { return b.ResponseWriter }
