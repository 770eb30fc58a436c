package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// The times that a client has. What takes long by its nature is not bounded by them.
const (
	headerPatience = 10 * time.Second
	bodyPatience   = 30 * time.Second
	idlePatience   = 2 * time.Minute
	farewell       = time.Second // for answers under way when the server is closed
)

const headerMax = 16 << 10

// Server lets other programs of the same user reach the terminals of a registry. Its
// methods are safe for concurrent use. Close it, before the registry.
type Server struct {
	r     *terminal.Registry
	http  *http.Server
	path  string
	life  context.Context // of all requests
	end   context.CancelCauseFunc
	over  chan struct{} // closed when nobody listens any more
	conns sync.WaitGroup

	closing sync.Once
	err     error

	mu   sync.Mutex
	busy int           // requests under way
	idle chan struct{} // closed when there are none; nil unless somebody waits for that
}

var errServerClosed = fmt.Errorf("the server of the terminals is %w", terminal.ErrClosed)

// Serve listens until Close, at a socket in the registry's directory. A registry has one
// server.
func Serve(r *terminal.Registry) (*Server, error) {
	fail := func(err error) (*Server, error) {
		return nil, &terminal.Error{Op: "serve", Err: err}
	}
	sweep(r.Dir())
	s := &Server{r: r, path: socketPath(r.Dir(), r.Owner()), over: make(chan struct{})}
	if _, err := os.Lstat(s.path); err == nil {
		return fail(errors.New("the registry is served already"))
	}
	l, err := listen(r.Dir(), r.Owner()+socketExt)
	if err != nil {
		return fail(err)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: headerMax,
		ErrorLog:    log.New(quiet{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.life },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, checkPeer(c))
		},
		ConnState: s.count,
	}
	go func() {
		defer close(s.over)
		_ = s.http.Serve(l) // It is closed by Close alone.
	}()
	return s, nil
}

// peerKey is that of the error of a connection in its context.
type peerKey struct{}

// quiet takes what the HTTP server says: that of a client which went away.
type quiet struct{}

func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// listen makes the socket by another name first: at its own somebody always listens.
func listen(dir, name string) (net.Listener, error) {
	var l *net.UnixListener
	err := short(dir, name+makingExt, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // It would remove the name that it knows.
	path := filepath.Join(dir, name)
	err = os.Chmod(path+makingExt, socketMode)
	if err == nil {
		err = os.Rename(path+makingExt, path)
	}
	if err != nil {
		_ = l.Close()                   // Nobody knows it.
		_ = os.Remove(path + makingExt) // As above.
		return nil, err
	}
	return l, nil
}

// count has Close wait for the goroutines of connections.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed:
		s.conns.Done()
	}
}

// request counts those under way.
func (s *Server) request(delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy += delta; s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Drain waits until no request is under way, as when all who were attached have read to
// the end. The error is that of ctx. New requests are still answered.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.busy == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends all requests, streams and waits too, with ErrClosed, removes the socket, and
// waits for all goroutines: as long as a program takes to read what is written to it just
// now. It is safe to call twice, and beside everything else.
func (s *Server) Close() error {
	s.closing.Do(func() {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.err = &terminal.Error{Op: "close the server", Err: err}
		}
		s.end(errServerClosed)
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		_ = s.http.Shutdown(ctx) // Who does not take their answer by then is cut off.
		_ = s.http.Close()       // It has nothing to say that Shutdown has not.
		<-s.over
		s.conns.Wait()
	})
	return s.err
}
