package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
)

// Path is where a Handler is.
const Path = "/v1/files/"

// request is what a request has, each a part of it.
type request struct {
	Root    Bytes   `json:"root"`
	Path    Bytes   `json:"path,omitempty"`
	After   Bytes   `json:"after,omitempty"`
	Entry   Entry   `json:"entry,omitzero"`
	Entries []Entry `json:"entries,omitempty"`
	Offset  int64   `json:"offset,omitempty"`
	Sum     []byte  `json:"sum,omitempty"`
	ID      string  `json:"id,omitempty"`
	Restart bool    `json:"restart,omitempty"`
	Discard bool    `json:"discard,omitempty"`
	End     *End    `json:"end,omitempty"`

	chunk []byte // of write, that is sent
	came  []byte // that came
}

// wrote is the answer of write.
type wrote struct {
	Next int64 `json:"next"`
	Done bool  `json:"done,omitempty"`
}

// done is the answer that there is nothing to tell.
var done = struct{}{}

// Handler serves the files of this machine to another one. Its methods are safe for concurrent use. Close it.
type Handler struct {
	local  *Local
	answer func(w http.ResponseWriter, value any, err error)
	held   holding
}

// NewHandler returns a handler, which writes its answers, but for streams, by a function.
func NewHandler(local *Local, answer func(w http.ResponseWriter, value any, err error)) *Handler {
	return &Handler{local: local, answer: answer, held: holding{local: local, parts: make(map[string]*held), over: make(map[string]ending)}}
}

// Close lets go of the files that are being written. What is there of them stays.
func (h *Handler) Close() { h.held.close() }

// buffers are for bodies of requests, most of which have a chunk.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	err := jsonhttp.BodyInto(w, r, mostMessage, b) // First: see pipe.Serve.
	var in request
	if err == nil {
		line, chunk, _ := bytes.Cut(b.Bytes(), []byte("\n"))
		in.came = chunk
		err = json.Unmarshal(line, &in)
	}
	if err == nil && len(in.came) > mostChunk {
		err = fmt.Errorf("a chunk of %d bytes: it has at most %d", len(in.came), mostChunk)
	}
	op := strings.TrimPrefix(r.URL.Path, Path)
	if op == "read" && err == nil {
		h.read(w, r, in)
		return
	}
	var value any
	if err == nil {
		value, err = h.do(r.Context(), op, in)
	}
	h.answer(w, value, err)
}

func (h *Handler) do(ctx context.Context, op string, in request) (any, error) {
	root, path := string(in.Root), string(in.Path)
	switch op {
	case "stat":
		return h.local.Stat(ctx, root)
	case "list":
		return h.local.List(ctx, root, path, string(in.After))
	case "prepare":
		return h.local.Prepare(ctx, root, path, in.Entries)
	case "finish":
		return done, h.local.Finish(ctx, root, path, in.Entry)
	}
	value, err := any(nil), fmt.Errorf("nothing of that name can be asked about files: %.40q: %w", op, fs.ErrInvalid)
	switch op {
	case "begin":
		value, err = h.held.begin(ctx, in)
	case "write":
		value, err = h.held.write(ctx, in)
	case "release":
		h.held.release(in)
		return done, nil
	}
	if err != nil && ctx.Err() == nil {
		err = h.local.wrong("writing", root, path, err)
	}
	return value, err
}

// read answers with a stream.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, in request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	to := &frames{w: w}
	end, err := h.local.Read(r.Context(), string(in.Root), string(in.Path), in.Entry, State{in.Offset, in.Sum}, to.chunk)
	last := ended{End: end}
	if err != nil {
		last.Error, last.Changed = said(err), errors.Is(err, ErrChanged)
	}
	if r.Context().Err() != nil || to.end(last) != nil {
		panic(http.ErrAbortHandler) // The client sees that it is not the end, and asks again.
	}
}
