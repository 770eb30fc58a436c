package connect

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// terminals serves the records of a session's terminals. It starts no keeper. A terminal that a keeper still has cannot be used this
// way: the error is terminal.ErrElsewhere.
func (rt *router) terminals(w http.ResponseWriter, r *http.Request) {
	body, err := jsonhttp.Body(w, r, wire.MostBody) // First: see pipe.Serve.
	var registry *terminal.Registry
	name := r.PathValue("name")
	if err == nil {
		registry, err = rt.terminalsOf(name)
	}
	if err != nil {
		wire.Answer(w, nil, err)
		return
	}
	defer registry.Close() // It has started none.
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/kept/"), "/")
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.Body = "/v1/"+rest, "", io.NopCloser(bytes.NewReader(body))
	remote.Handler(registry).ServeHTTP(w, r)
}

// terminalsOf opens the terminals of the sessions of a name. The caller must close the registry.
func (rt *router) terminalsOf(name string) (*terminal.Registry, error) {
	fail := func(err error) (*terminal.Registry, error) {
		return nil, &session.Error{Op: "find", Session: name, Err: err}
	}
	if !session.ValidName(name) {
		return fail(session.ErrName)
	}
	dir := filepath.Join(rt.registry.StateDir(name), "terminals")
	if _, err := os.Stat(dir); err != nil { // Open would make it.
		return fail(session.ErrNotFound)
	}
	return terminal.Open(dir, nil)
}
