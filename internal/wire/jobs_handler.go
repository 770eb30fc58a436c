package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/exact"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// newJob and newTerminal are what is to be started, byte for byte.
type newJob struct {
	jobs.Spec
	Command exact.String  `json:"command"`
	Dir     exact.String  `json:"dir,omitempty"`
	Env     exact.Strings `json:"env,omitempty"`
}

type newTerminal struct {
	terminal.Spec
	Argv   exact.Strings `json:"argv,omitempty"`
	Line   exact.String  `json:"line,omitempty"`
	Dir    exact.String  `json:"dir,omitempty"`
	Env    exact.Strings `json:"env,omitempty"`
	Record exact.String  `json:"record,omitempty"`
}

// polled and logged are what jobs say with bytes that are no text.
type polled struct {
	jobs.Polled
	Raw     []byte   `json:"raw,omitempty"`
	RawLast [][]byte `json:"raw_last,omitempty"`
}

type logged struct {
	jobs.Log
	Raw []byte `json:"raw,omitempty"`
}

// searched is what is asked of search.
type searched struct {
	jobs.SearchOptions
	Pattern string `json:"pattern"`
}

// wrote is the answer of write.
type wrote struct {
	Written int `json:"written"`
}

func raw(texts []string) (list [][]byte) {
	for _, text := range texts {
		list = append(list, []byte(text))
	}
	return list
}

func texts(raw [][]byte) []string {
	list := make([]string, len(raw)) // Not null.
	for i, b := range raw {
		list[i] = string(b)
	}
	return list
}

// asked is a request about a job.
type asked struct {
	h    *Handler
	jobs jobs.Handle
	id   string
	w    http.ResponseWriter
	r    *http.Request
}

// in reads what came with it.
func (a asked) in(value any) error { return jsonhttp.Decode(a.w, a.r, mostSmall, value) }

// ofJobs are what can be asked about a job, or about several.
var ofJobs = map[string]func(asked) (any, error){
	"GET /jobs": func(a asked) (any, error) { return list(a.jobs.List(jobs.Filter{})) },
	"POST /jobs/list": func(a asked) (any, error) {
		var filter jobs.Filter
		if err := a.in(&filter); err != nil {
			return nil, err
		}
		return list(a.jobs.List(filter))
	},
	"POST /jobs/wait": func(a asked) (any, error) {
		var o jobs.WaitOptions
		if err := a.in(&o); err != nil {
			return nil, err
		}
		return a.jobs.Wait(a.r.Context(), o)
	},
	"POST /jobs/stop": func(a asked) (any, error) {
		var filter jobs.Filter
		if err := a.in(&filter); err != nil {
			return nil, err
		}
		stopped, err := a.jobs.StopAll(a.r.Context(), filter)
		return some(list(stopped, err))
	},
	"GET /jobs/{id}":          func(a asked) (any, error) { return a.jobs.Get(a.id) },
	"POST /jobs/{id}/get":     func(a asked) (any, error) { return a.jobs.Get(a.id) },
	"POST /jobs/{id}/history": func(a asked) (any, error) { return list(a.jobs.History(a.id)) },
	"POST /jobs/{id}/poll": func(a asked) (any, error) {
		var o jobs.PollOptions
		if err := a.in(&o); err != nil {
			return nil, err
		}
		p, err := a.jobs.Poll(a.id, &o)
		said := polled{Polled: p}
		if p.Binary {
			said.Raw, said.RawLast = []byte(p.New), raw(p.Last)
		}
		return said, err
	},
	"POST /jobs/{id}/log": func(a asked) (any, error) {
		var o jobs.LogOptions
		if err := a.in(&o); err != nil {
			return nil, err
		}
		l, err := a.jobs.Log(a.id, o)
		said := logged{Log: l}
		if l.Binary {
			said.Raw = []byte(l.Text)
		}
		return said, err
	},
	"POST /jobs/{id}/search": func(a asked) (any, error) {
		var in searched
		if err := a.in(&in); err != nil {
			return nil, err
		}
		return a.jobs.Search(a.id, in.Pattern, in.SearchOptions)
	},
	"POST /jobs/{id}/stop": func(a asked) (any, error) { return some(a.jobs.Stop(a.r.Context(), a.id)) },
	"POST /jobs/{id}/write": func(a asked) (any, error) {
		b, err := jsonhttp.Body(a.w, a.r, MostBody)
		if err != nil {
			return nil, err
		}
		n, err := a.jobs.Write(a.id, b)
		return some(wrote{n}, err)
	},
	"POST /jobs/{id}/submit": func(a asked) (any, error) {
		b, err := jsonhttp.Body(a.w, a.r, MostBody)
		if err != nil {
			return nil, err
		}
		return done, a.jobs.Submit(a.id, string(b))
	},
	"POST /jobs/{id}/eof": func(a asked) (any, error) { return done, a.jobs.CloseStdin(a.id) },
	"POST /jobs/{id}/resize": func(a asked) (any, error) {
		var size jobs.Size
		if err := a.in(&size); err != nil {
			return nil, err
		}
		return done, a.jobs.Resize(a.id, size)
	},
	"POST /jobs/{id}/forget": func(a asked) (any, error) { return done, a.jobs.Forget(a.id) },
	"GET /jobs/{id}/output":  followJob,
}

// list is one that is not null.
func list[T any](values []T, err error) ([]T, error) {
	if values == nil {
		values = []T{}
	}
	return values, err
}

// some is an answer that is worth to be known beside an error.
func some(value any, err error) (any, error) {
	if err == nil {
		return value, nil
	}
	b, failed := json.Marshal(value)
	if failed != nil {
		return nil, err // It is told alone.
	}
	return nil, &partly{err, b}
}

// partly is an error beside what was done all the same.
type partly struct {
	error
	value json.RawMessage
}

func (p *partly) Unwrap() error { return p.error }

// addJobs serves the jobs of sessions, and their terminals.
func (h *Handler) addJobs(one string) {
	for pattern, do := range ofJobs {
		method, path, _ := strings.Cut(pattern, " ")
		h.handle(method+" "+one+path, atOnce, func(h *Handler, s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
			of, err := jobsOf(r.Context(), s)
			if err != nil {
				return nil, err
			}
			value, err := do(asked{h, of, r.PathValue("id"), w, r})
			return value, h.moved(err)
		})
	}
	h.handle("POST "+one+"/jobs", turn, (*Handler).postJob)
	h.handle("POST "+one+"/terminals", turn, (*Handler).postTerminal)
	h.handle("GET "+one+"/terminals", atOnce, (*Handler).toTerminals)
	h.handle(one+"/terminals/", atOnce, (*Handler).toTerminals)
}

// jobsOf are those of a session. The program that had the session before may be about to let go of them.
func jobsOf(ctx context.Context, s session.Handle) (of jobs.Handle, err error) {
	const pause, patience = 20 * time.Millisecond, 5 * time.Second
	for began := time.Now(); ; {
		of, err = s.Jobs()
		if !errors.Is(err, jobs.ErrOwned) || time.Since(began) > patience {
			return of, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// moved is the error of jobs that another program has now: that is asked then.
func (h *Handler) moved(err error) error {
	if errors.Is(err, jobs.ErrClosed) && h.gate.hasMoved() {
		return ErrMoved
	}
	return err
}

func (h *Handler) postJob(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in newJob
	if err := jsonhttp.Decode(w, r, MostBody, &in); err != nil {
		return nil, err
	}
	spec := in.Spec
	spec.Command, spec.Dir, spec.Env = string(in.Command), string(in.Dir), in.Env
	return s.StartJob(r.Context(), spec)
}

// terminals is a session whose terminals this program has.
type terminals interface {
	StartTerminal(ctx context.Context, spec terminal.Spec) (*terminal.Terminal, error)
	Terminals() (*terminal.Registry, error)
}

var _ terminals = (*session.Session)(nil)

var errNoTerminals = errors.New("this program does not have the terminals of the session")

func (h *Handler) postTerminal(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	has, ok := s.(terminals)
	if !ok {
		return nil, errNoTerminals
	}
	var in newTerminal
	if err := jsonhttp.Decode(w, r, MostBody, &in); err != nil {
		return nil, err
	}
	spec := in.Spec
	spec.Argv, spec.Line, spec.Dir, spec.Env, spec.Record = in.Argv, string(in.Line), string(in.Dir), in.Env, string(in.Record)
	t, err := has.StartTerminal(r.Context(), spec)
	if err != nil {
		return nil, err
	}
	return t.Info(), nil
}

// toTerminals passes on what is asked about terminals: their protocol is below that of the session.
func (h *Handler) toTerminals(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	has, ok := s.(terminals)
	if !ok {
		return nil, errNoTerminals
	}
	of, err := has.Terminals()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	to := h.terminals[of]
	if to == nil {
		to = remote.Handler(of)
		h.terminals[of] = to
	}
	h.mu.Unlock()
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/sessions/"), "/") // Behind the name.
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/v1/"+rest, ""
	to.ServeHTTP(w, r)
	return nil, nil
}

// followJob sends what a job prints as it comes. An error is one before the first frame.
func followJob(a asked) (any, error) {
	from, err := jsonhttp.Number(a.r, "from", 0)
	if err != nil {
		return nil, err
	}
	if _, err := a.jobs.Get(a.id); err != nil {
		return nil, err
	}
	a.w.Header().Set("Content-Type", "application/octet-stream")
	flush := http.NewResponseController(a.w).Flush
	var failed error
	for c, err := range a.jobs.Follow(a.r.Context(), a.id, from) {
		if failed = err; err != nil {
			break
		}
		if sendChunk(a.w, c) != nil || flush() != nil {
			return nil, nil // They are gone.
		}
	}
	b, err := json.Marshal(last{Error: pack(a.h.moved(failed))})
	if err == nil {
		_ = frame{stream: streamLast, data: b}.writeTo(a.w) // As above.
	}
	return nil, nil
}

// sendChunk sends a piece of output, as the frames that it takes.
func sendChunk(w io.Writer, c jobs.Chunk) error {
	f := frame{stream: streamStdout, offset: c.Offset, missed: c.Dropped}
	for rest := c.Data; ; {
		n := min(len(rest), mostChunk)
		f.data, rest = rest[:n], rest[n:]
		if err := f.writeTo(w); err != nil || len(rest) == 0 {
			return err
		}
		f.offset, f.missed = f.offset+int64(n), 0
	}
}
