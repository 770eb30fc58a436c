package page

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// What is shown of lists, and of texts in them, in bytes. Of a list it is the end.
const (
	mostSessions  = 500
	mostQuestions = 100
	mostBrief     = 2 << 10
)

// jobPath is before the ID of a job.
const jobPath = "/api/jobs/"

// serveAPI answers a request that its token allows.
func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request, as rights) {
	switch r.URL.Path {
	case "/api/sessions":
		h.answered(w, r, as, r.URL.Path+as.key(), func(ctx context.Context) (any, error) {
			if as.share != nil {
				return h.listShared(ctx, as.share)
			}
			return h.listSessions(ctx)
		})
		return
	case "/api/questions":
		h.answered(w, r, as, r.URL.Path, h.listQuestions)
		return
	case metricsPath:
		h.answered(w, r, as, r.URL.Path, h.listMetrics)
		return
	case terminalPath:
		h.serveTerminal(w, r, as)
		return
	}
	if id, ok := strings.CutPrefix(r.URL.Path, questionPath); ok {
		h.serveQuestion(w, r, as, id)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, sharesPath); ok && (rest == "" || rest[0] == '/') {
		h.serveShares(w, r, rest)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, recordingsPath); ok && h.opts.Recordings != nil && (rest == "" || rest[0] == '/') {
		h.serveRecordings(w, r, as, rest)
		return
	}
	name := r.URL.Query().Get("session")
	of := as.of(name)
	ofJob, ok := strings.CutPrefix(r.URL.Path, jobPath)
	id, what, _ := strings.Cut(ofJob, "/")
	aJob := map[string]func(http.ResponseWriter, *http.Request, rights, which, string){"log": h.serveLog, "search": h.serveSearch, "stop": h.serveStop}[what]
	switch {
	case r.URL.Path == "/api/events", r.URL.Path == "/api/jobs", r.URL.Path == "/api/terminals":
	case ok && aJob != nil && session.ValidName(id): // An ID has the same characters, and none that mean something in a path.
	default:
		refuse(w, http.StatusNotFound, "there is nothing of that name here")
		return
	}
	switch {
	case name == "" && r.URL.Path == "/api/events" && r.URL.Query().Has("notices"):
		h.serveEvents(w, r, as, of)
	case !validName(name):
		refuse(w, http.StatusBadRequest, "wants session=NAME")
	case ok:
		aJob(w, r, as, of, id)
	case r.URL.Path == "/api/jobs":
		h.answered(w, r, as, jobsKey(as, of), func(ctx context.Context) (any, error) { return h.listJobs(ctx, as, of) })
	case r.URL.Path == "/api/terminals":
		h.answered(w, r, as, r.URL.Path+"\x00"+of.key()+as.key(), func(ctx context.Context) (any, error) { return h.listTerminals(ctx, as, of) })
	default:
		h.serveEvents(w, r, as, of)
	}
}

// terminalPath is that of the WebSocket that shows a terminal.
const terminalPath = "/api/terminal"

// number returns a number of the query, 0 if it is not there. It has refused the request if it returns false.
func number(w http.ResponseWriter, r *http.Request, name string) (n int64, ok bool) {
	n, err := jsonhttp.Number(r, name, 0)
	if err != nil || n < 0 {
		refuse(w, http.StatusBadRequest, name+": wants a number from 0 on")
		return 0, false
	}
	return n, true
}

// sessionJSON is one session of the list.
type sessionJSON struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"` // the same for all processes that have had the session
	Created time.Time `json:"created"`
	Answers bool      `json:"answers"` // whether its process does; else nothing is known but the above

	State       session.State `json:"state,omitempty"`
	Dir         string        `json:"dir,omitempty"`
	Running     string        `json:"running,omitempty"` // the beginning of the script that runs
	IdleMS      int64         `json:"idle_ms"`           // since it was last used
	Commands    int           `json:"commands"`
	Jobs        int           `json:"jobs"`      // that run
	Terminals   int           `json:"terminals"` // that run
	Checkpoints []string      `json:"checkpoints,omitempty"`
	Policy      string        `json:"policy,omitempty"`

	Ended *endedJSON `json:"ended,omitempty"`

	// ForkedFrom is the owner's to know: by a share link there is no other session than its own. So toSessionJSON leaves it out.
	ForkedFrom *keeper.Parent `json:"forked_from,omitempty"`
}

// endedJSON is how a session has ended.
type endedJSON struct {
	At      time.Time `json:"at"`
	Why     string    `json:"why"`
	Dir     string    `json:"dir,omitempty"`
	Running string    `json:"running,omitempty"` // what ran then
}

// toSessionJSON is what whoever may see a session may know of it.
func toSessionJSON(l keeper.Listed) sessionJSON {
	out := sessionJSON{Name: l.Record.Name, ID: l.Record.SessionID(), Created: l.Record.Created}
	if end := l.Record.End; end != nil && !l.Alive {
		out.Ended = &endedJSON{end.At, end.Why, end.Dir, cut(end.Running, mostBrief)}
	} else if !l.Alive {
		out.Ended = &endedJSON{Why: "it is not known how it ended"}
	}
	if i := l.Info; i != nil {
		out.Answers = true
		out.State, out.Dir, out.Running, out.IdleMS = i.State, i.Dir, cut(i.Running, mostBrief), i.SinceUsed.Milliseconds()
		out.Commands, out.Jobs, out.Terminals, out.Checkpoints, out.Policy = i.Commands, i.Jobs, i.Terminals, i.Checkpoints, i.Policy
	}
	return out
}

type sessionsJSON struct {
	Sessions   []sessionJSON `json:"sessions"`
	Machines   []Machine     `json:"machines,omitempty"`
	Typing     bool          `json:"typing"`               // whether people may type into terminals
	Recordings bool          `json:"recordings,omitempty"` // whether there is a directory of recordings, which the owner plays
	Share      *sharedJSON   `json:"share,omitempty"`      // of a page that was shared
}

func (h *Handler) listSessions(ctx context.Context) (any, error) {
	list, err := h.sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	out := sessionsJSON{Sessions: []sessionJSON{}, Machines: h.sessions.Machines(), Typing: h.opts.Typing, Recordings: h.opts.Recordings != nil}
	for _, one := range lastOf(list, mostSessions) {
		shown := toSessionJSON(one)
		shown.ForkedFrom = one.Record.ForkedFrom()
		if _, target, isElsewhere := strings.Cut(shown.Name, "@"); isElsewhere && shown.ForkedFrom != nil {
			shown.ForkedFrom = &keeper.Parent{ID: shown.ForkedFrom.ID, Name: shown.ForkedFrom.Name + "@" + target}
		}
		out.Sessions = append(out.Sessions, shown)
	}
	return out, nil
}

func lastOf[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }
