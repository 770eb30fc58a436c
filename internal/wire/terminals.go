package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/limpet-sh/limpet/terminal/remote"
)

// Terminals returns a client of the session's terminals. Close it. Where the client's transport connects again by itself, a viewer
// goes on at the offset where it was.
func (s *Session) Terminals() *remote.Client { return Terminals(s.c.transport, below(s.name)) }

// Terminals returns a client of the terminals that a program serves below a path. Programs between it and this one answer by the protocol of
// this package: their ErrGone and ErrUnreachable become those of package terminal/remote. The caller must close it.
func Terminals(transport http.RoundTripper, path string) *remote.Client {
	return remote.Way{
		Transport: toTerminals{transport}, Path: path, Said: saidOfTerminals, Patience: patienceThere, Resumes: true,
	}.Client()
}

// saidOfTerminals reads an error of this package's protocol, which has a tree; nil for one of the terminals' own.
func saidOfTerminals(answer []byte) error {
	var f failure
	if json.Unmarshal(answer, &f) != nil || f.Tree == nil {
		return nil
	}
	err := f.Tree.unpack()
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, ErrMoved):
		return &terminalError{err, remote.ErrGone}
	case remote.IsOlder(err):
		return &terminalError{err, remote.ErrOlder}
	}
	return ofTerminals(err)
}

// terminalError is an error of this package that is an error of package terminal/remote, too. It keeps its text.
type terminalError struct {
	error
	is error
}

func (e *terminalError) Unwrap() []error { return []error{e.error, e.is} }

// ofTerminals makes ErrUnreachable that of package terminal/remote, too.
func ofTerminals(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return &terminalError{err, remote.ErrUnreachable}
	}
	return err
}

// toTerminals is a transport whose errors, and those of its answers' bodies, go through ofTerminals.
type toTerminals struct{ http.RoundTripper }

func (t toTerminals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, ofTerminals(err)
	}
	resp.Body = terminalBody{resp.Body}
	return resp, nil
}

type terminalBody struct{ io.ReadCloser }

func (b terminalBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { // Its own end counts.
		err = ofTerminals(err)
	}
	return n, err
}
