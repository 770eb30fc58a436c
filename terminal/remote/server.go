package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/terminal"
)

// Server lets other programs of the same user reach the terminals of a registry. Its
// methods are safe for concurrent use. Close it, before the registry.
type Server struct {
	http *socket.Server
	path string

	closing sync.Once
	err     error
}

var errServerClosed = fmt.Errorf("the server of the terminals is %w", terminal.ErrClosed)

// Serve listens until Close, at a socket in the registry's directory. A registry has one
// server.
func Serve(r *terminal.Registry) (*Server, error) {
	fail := func(err error) (*Server, error) {
		return nil, &terminal.Error{Op: "serve", Err: err}
	}
	sweep(r.Dir())
	s := &Server{path: socketPath(r.Dir(), r.Owner())}
	if _, err := os.Lstat(s.path); err == nil {
		return fail(errors.New("the registry is served already"))
	}
	l, err := socket.Listen(r.Dir(), r.Owner()+socketExt)
	if err != nil {
		return fail(err)
	}
	s.http = socket.NewServer(Handler(r), func(w http.ResponseWriter, why error) {
		jsonhttp.Write(w, http.StatusForbidden, wireError{Error: why.Error()})
	})
	s.http.Serve(l)
	return s, nil
}

// Drain waits until no request is under way, as when all who were attached have read to
// the end. The error is that of ctx. New requests are still answered.
func (s *Server) Drain(ctx context.Context) error { return s.http.Drain(ctx) }

// Close ends all requests, streams and waits too, with ErrClosed, removes the socket, and
// waits for all goroutines: as long as a program takes to read what is written to it just
// now. It is safe to call twice, and beside everything else.
func (s *Server) Close() error {
	s.closing.Do(func() {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.err = &terminal.Error{Op: "close the server", Err: err}
		}
		s.http.Close(errServerClosed)
	})
	return s.err
}
