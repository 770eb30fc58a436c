package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/mcpserver"
)

// mcpPath is where clients find it.
const mcpPath = "/mcp"

const (
	headerTimeout = 10 * time.Second
	quietTimeout  = 2 * time.Minute // of a connection on which nobody asks for anything
	maxHeader     = 64 << 10

	// httpFarewell bounds how long clients may take to hear of the end.
	httpFarewell = 3 * time.Second
)

// httpDoor is the doorway for any number of clients.
type httpDoor struct {
	listener net.Listener
	token    token
}

// listen opens the doorway.
func (f *mcpFlags) listen(cmd *cobra.Command, said *string) (*httpDoor, error) {
	addr, err := listenAddr(cmd, f.http)
	if err != nil {
		return nil, err
	}
	token, err := f.token(cmd, said)
	if err != nil {
		return nil, err
	}
	network := "tcp"
	if at, err := netip.ParseAddrPort(addr); err == nil && at.Addr().Is4() {
		network = "tcp4" // 0.0.0.0 would mean all of IPv6, too.
	}
	listener, err := net.Listen(network, addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--http %s: another program listens there, perhaps another limpet mcp: choose another port, or 0 for any that is free", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--http %s: this user may not listen there: choose a port above 1023", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--http %s: this machine does not have that address: choose one of its own, or leave the host out", addr)
	case err != nil:
		return nil, fmt.Errorf("--http %s: %w", addr, err)
	}
	return &httpDoor{listener, token}, nil
}

// listenAddr makes an address of PORT, :PORT or HOST:PORT. Without a host it is the
// loopback: nobody shall open a shell to the network by leaving something out.
func listenAddr(cmd *cobra.Command, text string) (string, error) {
	wrong := func() (string, error) {
		return "", usagef(cmd, "--http %q: wants PORT or HOST:PORT, as in 7333, localhost:7333 or [::1]:7333", text)
	}
	host, port := "", text
	if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return wrong()
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port || strings.Contains(host, "/") {
		return wrong()
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func (d *httpDoor) serve(ctx context.Context, server *mcpserver.Server, console *console) error {
	if addr, ok := d.listener.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() {
		console.notef("warning: %v is not the loopback, and there is no TLS: who can listen on the network reads the token and all that is said; put a proxy with TLS before it, or use an SSH tunnel to 127.0.0.1", addr)
	}
	mux := http.NewServeMux()
	mux.Handle(mcpPath, server.Handler(d.token.secret))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "limpet: there is nothing but MCP, at "+mcpPath, http.StatusNotFound)
	})
	silent := &silentConns{}
	listening := &http.Server{
		ConnState: silent.changed,
		Handler:   mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: quietTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(console.logger().Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- listening.Serve(d.listener) }()
	console.notef("MCP at http://%v%s, token in %s", d.listener.Addr(), mcpPath, d.token.place)
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		defer func() { <-served }() // It says that it was closed.
	}
	// First calls end, and streams, so that nobody has to be cut off. But who takes no answer
	// would keep the call waiting that gives it.
	ended := make(chan error, 1)
	go func() {
		ended <- server.Close()
		silent.close()
	}()
	bounded, cancel := context.WithTimeout(context.Background(), httpFarewell)
	defer cancel()
	if listening.Shutdown(bounded) != nil {
		_ = listening.Close() // As much as can be done.
	}
	return errors.Join(err, <-ended)
}

func (d *httpDoor) close() error { return d.listener.Close() }

// silentConns are the connections on which nothing was asked yet, as browsers and others
// open them for later. Shutdown would wait for them.
type silentConns struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (s *silentConns) changed(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[net.Conn]bool)
	}
	if state == http.StateNew {
		s.conns[conn] = true
	} else {
		delete(s.conns, conn)
	}
}

func (s *silentConns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close() // Nothing was said.
	}
}
