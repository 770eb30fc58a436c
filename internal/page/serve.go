package page

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The times that a browser has to ask, and to read an answer; a stream gives it more. An idle connection is closed after quietPatience.
const (
	headerPatience = 10 * time.Second
	answerPatience = 30 * time.Second
	quietPatience  = 2 * time.Minute
)

const (
	mostHeader = 16 << 10 // bytes

	// mostConnections is how many there may be at a time: a further one is closed at once. A browser has at most six.
	mostConnections = 512
)

// Serve has a handler answer those who connect to a listener until ctx ends. Then it closes the listener, the handler and all
// connections, waits until all goroutines of theirs have ended, and returns nil; or the error of the listener, if that fails before.
// What the HTTP server has to say of clients is discarded.
func Serve(ctx context.Context, listener net.Listener, h *Handler) error {
	var conns sync.WaitGroup
	server := &http.Server{
		Handler: h, MaxHeaderBytes: mostHeader,
		ReadHeaderTimeout: headerPatience, WriteTimeout: answerPatience, IdleTimeout: quietPatience,
		ErrorLog:    log.New(discard{}, "", 0), // What goes wrong with a client is its own affair, and could be made to fill a disk.
		BaseContext: func(net.Listener) context.Context { return h.life },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
	}
	bounded := &limited{Listener: listener, free: make(chan struct{}, mostConnections), sent: &h.sent}
	serve := func() error { return server.Serve(bounded) }
	if h.opts.TLS != nil {
		server.TLSConfig, server.Protocols = h.opts.TLS, new(http.Protocols)
		server.Protocols.SetHTTP1(true) // WebSockets are of that.
		serve = func() error { return server.ServeTLS(bounded, "", "") }
	}
	if h.opts.Notify != nil {
		h.attend()
		h.begin(h.tellNotices) // If it is closed, there is nobody to tell.
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	h.Close()
	closed := server.Close() // What is under way is not to be had any more: nothing can be lost.
	if err == nil {
		if err = <-served; errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		err = errors.Join(err, closed)
	}
	conns.Wait()
	return err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// limited closes connections that are too many. It never waits: those that are waited for would be others' turn.
type limited struct {
	net.Listener
	free chan struct{} // has an element for each connection that is open
	sent *atomic.Int64 // bytes
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: c, sent: l.sent, done: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			_ = c.Close() // It is one too many.
		}
	}
}

// counted is a connection that makes room for another one when it is closed, and whose bytes are counted.
type counted struct {
	net.Conn
	sent *atomic.Int64
	done func()
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c *counted) Close() error {
	defer c.done()
	return c.Conn.Close()
}
