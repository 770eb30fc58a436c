package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/terminal"
)

// answerer answers a request about a terminal. A value is written as JSON; nil means that
// it has answered by itself, or that there is nothing to say.
type answerer func(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error)

// Handler answers as the protocol says, for the terminals of a registry that are this program's.
func Handler(of *terminal.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, hello{Version: version, Owner: of.Owner(), PID: os.Getpid()}, nil)
	})
	mux.HandleFunc("GET /v1/terminals", func(w http.ResponseWriter, r *http.Request) {
		list, err := listed(of, r.URL.Query().Get("all") != "")
		answer(w, list, err)
	})
	const one = "/v1/terminals/{id}"
	mux.HandleFunc("POST "+one+"/forget", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, of.Forget(r.PathValue("id")))
	})
	for pattern, do := range map[string]answerer{
		"GET " + one:                 getInfo,
		"POST " + one + "/write":     postWrite,
		"POST " + one + "/send":      postSend,
		"POST " + one + "/resize":    postResize,
		"POST " + one + "/signal":    postSignal,
		"POST " + one + "/close":     postClose,
		"GET " + one + "/attach":     getAttach,
		"GET " + one + "/output":     getOutput,
		"GET " + one + "/text":       getText,
		"GET " + one + "/screen":     getScreen,
		"GET " + one + "/scrollback": getScrollback,
		"POST " + one + "/wait":      postWait,
		"GET " + one + "/record":     getRecord,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			t, err := of.Get(r.PathValue("id"))
			if err != nil {
				answer(w, nil, err)
				return
			}
			value, err := do(t, w, r)
			if value != nil || err != nil {
				answer(w, value, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		jsonhttp.Write(w, http.StatusNotFound, unknown(r))
	})
	return mux
}

// listed are the terminals that are this program's, as others answer for theirs, or all of the registry.
func listed(of *terminal.Registry, all bool) ([]terminal.Info, error) {
	list, err := of.List()
	wanted := []terminal.Info{} // Not null.
	for _, info := range list {
		if all || info.Owner == of.Owner() {
			wanted = append(wanted, info)
		}
	}
	return wanted, err
}

func answer(w http.ResponseWriter, value any, err error) {
	status := http.StatusOK
	if err != nil {
		said := pack(err)
		if n, ok := value.(written); ok {
			said.Written = n.Written
		}
		value, status = said, said.status()
	}
	jsonhttp.Write(w, status, value)
}

// tooMuch says of what is to be typed how much it may be.
func tooMuch(err error) error {
	if errors.Is(err, jsonhttp.ErrTooLarge) {
		return errTooMuch
	}
	return err
}

func getInfo(t *terminal.Terminal, _ http.ResponseWriter, _ *http.Request) (any, error) {
	return t.Info(), nil
}

func postWrite(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := jsonhttp.Body(w, r, mostTyped)
	if err != nil {
		return nil, tooMuch(err)
	}
	n, err := t.Write(b)
	return written{n}, err
}

func postSend(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	var in typed
	if err := jsonhttp.Decode(w, r, mostTyped, &in); err != nil {
		return nil, tooMuch(err)
	}
	return struct{}{}, t.Send(in...)
}

func postResize(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	var size terminal.Size
	if err := jsonhttp.Decode(w, r, mostBody, &size); err != nil {
		return nil, err
	}
	return struct{}{}, t.Resize(size)
}

func postSignal(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	var sig signalled
	if err := jsonhttp.Decode(w, r, mostBody, &sig); err != nil {
		return nil, err
	}
	return struct{}{}, t.Signal(syscall.Signal(sig.Signal))
}

func postClose(t *terminal.Terminal, _ http.ResponseWriter, _ *http.Request) (any, error) {
	return struct{}{}, t.Close()
}

func getOutput(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	from, err1 := jsonhttp.Number(r, "from", 0)
	most, err2 := jsonhttp.Number(r, "most", mostOutput)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	c, err := t.Output(from, int(min(most, mostOutput)))
	if err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(headOffset, strconv.FormatInt(c.Offset, 10))
	h.Set(headMissed, strconv.FormatInt(c.Missed, 10))
	_, _ = w.Write(c.Data) // Who went away misses nothing.
	return nil, nil
}

func getText(t *terminal.Terminal, _ http.ResponseWriter, r *http.Request) (any, error) {
	from, err1 := jsonhttp.Number(r, "from", 0)
	most, err2 := jsonhttp.Number(r, "most", mostOutput)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	return t.Text(from, int(min(most, mostOutput)))
}

func getScreen(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	s, err := t.Screen()
	if err != nil {
		return nil, err
	}
	var text string
	switch format := r.URL.Query().Get("format"); format {
	case "", "json":
		return s, nil
	case "text":
		text = s.Text() + "\n"
	case "ansi":
		text = string(s.ANSI())
	default:
		return nil, fmt.Errorf("format=%s: there are json, text and ansi", format)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set(headOffset, strconv.FormatInt(s.Offset, 10))
	_, _ = io.WriteString(w, text) // Who went away misses nothing.
	return nil, nil
}

func getScrollback(t *terminal.Terminal, _ http.ResponseWriter, _ *http.Request) (any, error) {
	lines, err := t.Scrollback()
	if lines == nil {
		lines = []string{} // Not null.
	}
	return lines, err
}

func postWait(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	var o terminal.WaitOptions
	if err := jsonhttp.Decode(w, r, mostBody, &o); err != nil {
		return nil, err
	}
	return t.Wait(r.Context(), o)
}
