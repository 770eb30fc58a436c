package socket

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// The times that a client has. What takes long by its nature is not bounded by them.
const (
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	farewell       = time.Second // for answers under way when the server is closed
)

const headerMax = 32 << 10

// Server answers HTTP. Its methods are safe for concurrent use. Close it.
type Server struct {
	http  *http.Server
	life  context.Context // of all requests
	end   context.CancelCauseFunc
	over  sync.WaitGroup // those who listen
	conns sync.WaitGroup

	mu     sync.Mutex
	closed bool
	busy   int           // requests under way
	idle   chan struct{} // closed when there are none; nil unless somebody waits for that
}

// NewServer returns a server that nobody reaches until [Server.Serve] is called. Refuse
// answers who is not of the same user, with the reason; the handler never sees them.
func NewServer(handler http.Handler, refuse func(w http.ResponseWriter, why error)) *Server {
	s := &Server{}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.request(1)
			defer s.request(-1)
			if p, _ := r.Context().Value(peerKey{}).(peer); p.err != nil {
				refuse(w, p.err)
				return
			}
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: headerMax,
		ErrorLog:    log.New(quiet{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.life },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peerOf(c))
		},
		ConnState: s.count,
	}
	return s
}

// Serve answers those who connect to a listener, which is closed by Close, and does not wait.
// It may be called for several.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close() // Nobody was let in.
		return
	}
	s.over.Go(func() { _ = s.http.Serve(l) }) // It is closed by Close alone.
}

// peerKey is that of the peer of a connection in its context.
type peerKey struct{}

// peer is the process that has made a connection; its pid is 0 if that is not known. Err is why it is refused.
type peer struct {
	pid int
	err error
}

// RequestPID is the process that has sent a request, by the context of that, or that had, if it has handed its connection on. It is 0 if
// it is not known, as on systems other than Linux.
func RequestPID(ctx context.Context) int {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p.pid
}

// CheckPeer refuses a connection by a unix socket that is not of this user, where the system tells. Other connections
// it lets through: who makes them knows who is there.
func CheckPeer(c net.Conn) error { return peerOf(c).err }

// quiet takes what the HTTP server says: that of a client which went away.
type quiet struct{}

func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// count has Close wait for the goroutines of connections.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
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

// Drain waits until no request is under way, as when all streams were read to the end. The
// error is that of ctx. New requests are still answered.
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

// Close ends all requests, with the cause in their contexts, and waits for all goroutines.
// It is safe to call twice, and beside everything else.
func (s *Server) Close(cause error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(cause)
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = s.http.Shutdown(ctx) // Who does not take their answer by then is cut off.
	_ = s.http.Close()       // It has nothing to say that Shutdown has not.
	s.over.Wait()
	s.conns.Wait()
}
