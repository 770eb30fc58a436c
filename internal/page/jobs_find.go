package page

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/jobs"
)

const (
	// mostFound bounds the lines that a search finds.
	mostFound = 100

	// stopPatience is how long a job may take to end that is stopped: it may have a ladder of its own.
	stopPatience = time.Minute
)

// foundJSON is what a search in a job's output has found.
type foundJSON struct {
	Matches []matchJSON `json:"matches"`
	More    bool        `json:"more"`    // there are more lines than these
	Dropped int64       `json:"dropped"` // bytes that are not kept, and were not searched
}

type matchJSON struct {
	Number int64  `json:"number"` // of the line, from 1
	Text   string `json:"text"`   // its beginning
}

// serveSearch answers with the lines of a job's output that match a regular expression.
func (h *Handler) serveSearch(w http.ResponseWriter, r *http.Request, as rights, of which, id string) {
	pattern := r.URL.Query().Get("pattern")
	if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("wants a regular expression (RE2), and %q is none", cut(pattern, 100)))
		return
	}
	h.answered(w, r, as, fmt.Sprintf("search\x00%s\x00%s\x00%s", of.key(), id, pattern), func(ctx context.Context) (any, error) {
		out := foundJSON{Matches: []matchJSON{}}
		err := h.withJob(ctx, of, id, func(all jobs.Handle) error {
			found, err := all.Search(id, pattern, jobs.SearchOptions{Max: mostFound})
			for _, m := range found.Matches {
				out.Matches = append(out.Matches, matchJSON{m.Number, cut(m.Text, mostBrief)})
			}
			out.More, out.Dropped = found.More, found.Dropped
			return err
		})
		return out, err
	})
}

// serveStop stops a job, and answers when it has ended. It goes on if the browser is gone.
func (h *Handler) serveStop(w http.ResponseWriter, r *http.Request, as rights, of which, id string) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "a job is stopped by POST")
		return
	case !as.mayType(h.opts):
		refuse(w, http.StatusForbidden, fmt.Sprintf("nothing is stopped here: limpet serve was started without --allow-typing; stop it at a terminal: limpet jobs stop -s %s %s", at(of.name), id))
		return
	case !h.enter():
		refuse(w, http.StatusServiceUnavailable, errClosed.Error())
		return
	}
	defer h.work.Done()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stopPatience + answerPatience)) // A connection has deadlines.
	ctx, cancel := context.WithTimeout(h.life, stopPatience)
	defer cancel()
	var out jobJSON
	done, err := h.acts(Act{Kind: StopAct, Session: of.name, By: as.by(), About: id})
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	err = h.withJob(ctx, of, id, func(all jobs.Handle) error {
		stopped, err := all.Stop(ctx, id)
		out = toJobJSON(stopped.Job)
		return err
	})
	done(err)
	h.memo.forget(jobsKey(as, of), jobsKey(rights{owner: true}, which{name: of.name}))
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	jsonhttp.Write(w, http.StatusOK, out)
}
