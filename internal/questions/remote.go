package questions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	urlpath "path"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
)

// Path is where a [NewHandler] answers, behind the version of the protocol.
//
//	GET  /questions            the questions that are asked: a list of Open
//	GET  /questions/await      the same, as soon as there is one
//	GET  /questions/ID/over    answers when it is not asked any more
//	POST /questions/ID/answer  answers it
const Path = "/questions"

// outcome is what became of a question. Refused is the text of ErrNotOpen or ErrWithin, if it is one.
type outcome struct {
	Refused string `json:"refused,omitempty"`
}

// NewHandler returns what a [Remote] asks, about the questions of a directory. Whether this program may answer is decided by the program that
// asks: see [Answer]; whether the sender of a request may, by whoever passes requests on: see [Answers]. Done writes the answer to a request, or an error.
func NewHandler(dir string, done func(w http.ResponseWriter, value any, err error)) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request, body []byte) (any, error)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /v1"+Path+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := jsonhttp.Body(w, r, 2*mostAnswer) // First: see pipe.Serve.
			defer clear(body)                              // It may have a secret.
			var value any
			if err == nil {
				value, err = do(r, body)
			}
			done(w, value, err)
		})
	}
	list := func(r *http.Request) (any, error) {
		open, err := List(r.Context(), dir)
		if open == nil {
			open = []Open{} // Not null.
		}
		return open, err
	}
	handle("GET ", func(r *http.Request, _ []byte) (any, error) { return list(r) })
	handle("GET /await", func(r *http.Request, _ []byte) (any, error) {
		if err := Dir(dir).Await(r.Context()); err != nil {
			return nil, err
		}
		return list(r)
	})
	handle("GET /{id}/over", func(r *http.Request, _ []byte) (any, error) {
		id := r.PathValue("id")
		if !validID(id) {
			return outcome{ErrNotOpen.Error()}, nil
		}
		return outcome{}, Over(r.Context(), dir, id)
	})
	handle("POST /{id}/answer", func(r *http.Request, body []byte) (any, error) {
		id := r.PathValue("id")
		var in answer
		if err := jsonhttp.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		defer clear(in.Secret)
		err := ErrNotOpen
		if validID(id) {
			err = post(r.Context(), dir, id, in)
		}
		if errors.Is(err, ErrNotOpen) || errors.Is(err, ErrWithin) {
			return outcome{err.Error()}, nil
		}
		return outcome{}, err
	})
	return mux
}

// Answers reports whether a request to a [NewHandler] may answer a question. The handler answers as a process of its own, whoever has sent the request:
// a program that passes requests on checks by [Within] whether their sender may answer, and if not gives [Refused] as the answer.
func Answers(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.HasPrefix(urlpath.Clean(r.URL.Path), "/v1"+Path+"/")
}

// Refused is what a [Remote] takes for err, which is ErrNotOpen or ErrWithin.
func Refused(err error) any { return outcome{err.Error()} }

// validID reports whether it may be the ID of a question: it becomes part of a path.
func validID(id string) bool {
	return id != "" && len(id) < 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Remote is the questions of another machine, where a [NewHandler] answers a client of its protocol.
type Remote struct {
	Asks *jsonhttp.Client
}

var _ Desk = Remote{}

func (r Remote) get(ctx context.Context, path string, value any) error {
	err := r.Asks.Call(ctx, jsonhttp.Request{Method: http.MethodGet, Path: Path + path, Again: true}, value)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// List implements [Desk]. What has an ID that cannot be one is left out: it is printed as it is.
func (r Remote) List(ctx context.Context) (open []Open, err error) {
	err = r.get(ctx, "", &open)
	return slices.DeleteFunc(open, func(q Open) bool { return !validID(q.ID) }), err
}

// Await implements [Desk].
func (r Remote) Await(ctx context.Context) error {
	var open []Open
	return r.get(ctx, "/await", &open)
}

// Over implements [Desk].
func (r Remote) Over(ctx context.Context, id string) error {
	return r.get(ctx, "/"+id+"/over", &outcome{})
}

// Answer implements [Desk].
func (r Remote) Answer(ctx context.Context, id string, reply approval.Reply) error {
	return r.post(ctx, id, answer{Answer: reply.Answer, Reason: reply.Reason})
}

// AnswerPassword implements [Desk].
func (r Remote) AnswerPassword(ctx context.Context, id string, secret []byte, given bool) error {
	return r.post(ctx, id, answer{Given: given, Secret: secret})
}

// post answers once: an answer that is lost may have been given.
func (r Remote) post(ctx context.Context, id string, a answer) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	defer clear(body) // It may be secret.
	var out outcome
	if err := r.Asks.Call(ctx, jsonhttp.Request{Method: http.MethodPost, Path: Path + "/" + id + "/answer", Content: body}, &out); err != nil {
		return err
	}
	for _, known := range []error{ErrNotOpen, ErrWithin} {
		if out.Refused == known.Error() {
			return known
		}
	}
	return nil
}
