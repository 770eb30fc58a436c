package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/session"
)

// Limpet-Found is in the header of the answer to a command that was asked for before.
const headFound = "Limpet-Found"

// headerDelay is how long the header of a stream waits for the first piece of it.
const headerDelay = 5 * time.Millisecond

func (h *Handler) getCommands(s session.Handle, _ http.ResponseWriter, _ *http.Request) (any, error) {
	return h.book.list(s.Name()), nil
}

// postCommand starts a command. With an offset in the address the answer is the stream of its
// output from there; else it comes at once.
func (h *Handler) postCommand(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var req request
	if err := jsonhttp.Decode(w, r, MostBody, &req); err != nil {
		return nil, err
	}
	if _, _, err := offsets(r); err != nil {
		return nil, err
	}
	one, err := h.book.find(s.Name(), req)
	if err != nil {
		return nil, err
	}
	found := one != nil
	if !found {
		ctx, cancel := r.Context(), func() {}
		if req.Deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(req.Deadline))
		}
		leave, err := h.gate.enter(ctx, time.Duration(req.TurnTimeout))
		cancel()
		if err != nil {
			return nil, err
		}
		if one, found, err = h.book.begin(s, req, r.PathValue("mark"), leave); err != nil || found {
			leave()
		}
		if err != nil {
			return nil, err
		}
	}
	w.Header().Set(headFound, strconv.FormatBool(found))
	if q := r.URL.Query(); q.Has("out") || q.Has("err") {
		return nil, stream(one, w, r)
	}
	return one.told(), nil
}

func (h *Handler) getCommand(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	one, err := h.book.get(s.Name(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	said := told{Command: one.told()}
	if said.State == Ended {
		said.last = one.last()
	}
	return said, nil
}

func (h *Handler) getOutput(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	one, err := h.book.get(s.Name(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return nil, stream(one, w, r)
}

// offsets are those from which on the streams are wanted; a negative one is not wanted.
func offsets(r *http.Request) (out, errs int64, err error) {
	out, err1 := jsonhttp.Number(r, "out", -1)
	errs, err2 := jsonhttp.Number(r, "err", -1)
	return out, errs, cmp.Or(err1, err2)
}

// stream sends the output of a command as it comes, and then what came of it. Who reads slowly
// misses what is not kept; the command does not wait. An error is one before the first frame.
func stream(one *run, w http.ResponseWriter, r *http.Request) error {
	out, errs, err := offsets(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	at := one.streams.join(out, errs)
	atEnd := false
	defer func() { one.streams.leave(at, atEnd) }()
	flush := http.NewResponseController(w).Flush
	// The header says that the command is there: it is waited for, to send stdin or a stop. Most
	// commands are over before it would pay to send it alone.
	soon := time.NewTimer(headerDelay)
	defer soon.Stop()
	if one.stdin != nil {
		soon.Reset(0)
	}
	for {
		frames, ended, news := one.streams.next(at)
		for _, f := range frames {
			if f.writeTo(w) != nil {
				return nil // They are gone.
			}
		}
		switch {
		case ended:
			b, err := json.Marshal(one.last())
			if err == nil {
				err = frame{stream: streamLast, data: b}.writeTo(w)
			}
			atEnd = err == nil
			return nil
		case len(frames) > 0:
			if flush() != nil {
				return nil
			}
			continue
		}
		select {
		case <-news:
		case <-soon.C:
			if flush() != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil // They are gone, or this program ends.
		}
	}
}

// postStdin takes a piece of what a command reads, once the one before it was read.
func (h *Handler) postStdin(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	one, err := h.book.get(s.Name(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	offset, err := jsonhttp.Number(r, "offset", 0)
	if err != nil {
		return nil, err
	}
	b, err := jsonhttp.Body(w, r, mostStdin)
	if err != nil {
		return nil, err
	}
	if one.stdin == nil {
		return nil, errNoStdin
	}
	return one.stdin.put(r.Context(), offset, b, r.URL.Query().Get("eof") != "")
}

// postStop stops a command, and does not wait for it. One that has ended is left alone.
func (h *Handler) postStop(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	one, err := h.book.get(s.Name(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in what
	if err := jsonhttp.Decode(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	one.stop(cmp.Or(in.Why.unpack(), errStopped))
	return one.told(), nil
}
