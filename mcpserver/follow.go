package mcpserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// followed are the resources that clients know of, and those of which they want to hear
// when they change.
type followed struct {
	s *Server

	listing sync.Mutex
	listed  []string // URIs

	mu       sync.Mutex
	follows  map[string]*follow // by URI
	clients  map[*mcp.ServerSession]bool
	closed   bool
	watching sync.WaitGroup // the goroutines of both
}

// follow is a resource that somebody follows.
type follow struct {
	clients map[*mcp.ServerSession]bool
	stop    context.CancelFunc
}

func (f *followed) init(s *Server) {
	f.s, f.follows, f.clients = s, make(map[string]*follow), make(map[*mcp.ServerSession]bool)
}

// changed brings the list of resources up to date. Clients are told if it has changed.
func (f *followed) changed() {
	f.listing.Lock()
	defer f.listing.Unlock()
	now := f.s.listed()
	var gone []string
	for _, uri := range f.listed {
		if now[uri] == nil {
			gone = append(gone, uri)
		}
	}
	if len(gone) > 0 {
		f.s.mcp.RemoveResources(gone...)
	}
	for _, uri := range slices.Sorted(maps.Keys(now)) {
		if !slices.Contains(f.listed, uri) {
			f.s.mcp.AddResource(now[uri], f.s.readResource)
		}
	}
	f.listed = slices.Sorted(maps.Keys(now))
}

// subscribe has a client told when a resource changes.
func (f *followed) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	watch, err := f.watcher(uri)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return mcp.ErrConnectionClosed
	}
	one := f.follows[uri]
	if one == nil {
		ctx, stop := context.WithCancel(context.Background())
		one = &follow{make(map[*mcp.ServerSession]bool), stop}
		f.follows[uri] = one
		f.watching.Go(func() { watch(ctx) })
	}
	one.clients[req.Session] = true // Twice is as once, as the SDK has it.
	if !f.clients[req.Session] {
		f.clients[req.Session] = true
		f.watching.Go(func() { f.await(req.Session) })
	}
	return nil
}

// unsubscribe takes back what was subscribed to.
func (f *followed) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.follows[req.Params.URI]; one != nil && one.clients[req.Session] {
		f.drop(req.Params.URI, req.Session)
	}
	return nil
}

// drop takes a client from what it follows. The caller holds mu.
func (f *followed) drop(uri string, client *mcp.ServerSession) {
	one := f.follows[uri]
	delete(one.clients, client)
	if len(one.clients) == 0 {
		one.stop()
		delete(f.follows, uri)
	}
}

// await waits until a client is gone, which need not take back what it has asked for.
func (f *followed) await(client *mcp.ServerSession) {
	_ = client.Wait() // How it ended changes nothing.
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clients, client)
	for uri, one := range f.follows {
		if one.clients[client] {
			f.drop(uri, client)
		}
	}
}

// close ends all that is followed. The clients are gone.
func (f *followed) close() {
	f.mu.Lock()
	f.closed = true
	for _, one := range f.follows {
		one.stop()
	}
	f.mu.Unlock()
	f.watching.Wait()
}

// updated tells who follows a resource that it has changed, and waits a moment: a loud
// program is no reason to tell it a thousand times a second.
func (f *followed) updated(ctx context.Context, uri string) {
	_ = f.s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}) // A client that is gone is not told.
	timer := time.NewTimer(f.s.opts.Updates)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// watcher returns what watches a resource until its context ends or there is nothing more
// to come.
func (f *followed) watcher(uri string) (func(ctx context.Context), error) {
	if id, ok := idIn(uri, jobURI); ok && f.s.offers(groupJobs) {
		r, err := f.s.sessions.Jobs()
		if err != nil {
			return nil, err
		}
		job, err := r.Get(id)
		if errors.Is(err, jobs.ErrNotFound) {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		return func(ctx context.Context) { f.watchJob(ctx, r, uri, job) }, err
	}
	if id, ok := idIn(uri, terminalURI); ok && f.s.offers(groupTerminals) {
		t, err := f.s.ownTerminal(id)
		if errors.Is(err, terminal.ErrNotFound) {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { f.watchTerminal(ctx, uri, t) }, nil
	}
	return nil, mcp.ResourceNotFoundError(uri)
}

func (f *followed) watchJob(ctx context.Context, r *jobs.Registry, uri string, job jobs.Job) {
	for over := false; !over && ctx.Err() == nil; {
		over = true
		for range r.Follow(ctx, job.ID, job.Output.End) {
			over = false
			break
		}
		var err error
		if job, err = r.Get(job.ID); err != nil {
			return // It was forgotten.
		}
		f.updated(ctx, uri) // Also of its end.
	}
}

func (f *followed) watchTerminal(ctx context.Context, uri string, t *terminal.Terminal) {
	seen := t.Info().Bytes
	for ctx.Err() == nil {
		viewer, err := t.Attach(seen)
		if err != nil {
			return
		}
		_, err = viewer.Next(ctx)
		_ = viewer.Close() // It cannot fail.
		seen = t.Info().Bytes
		f.updated(ctx, uri) // Also of its end.
		if err != nil {
			return
		}
	}
}
