package mcpserver

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errClientGone is why calls of a client are cancelled that leaves.
var errClientGone = errors.New("the client has left")

// httpCalls knows the calls of clients of the old era that are under way, to cancel those
// of a client that leaves. The zero value is ready.
type httpCalls struct {
	mu      sync.Mutex
	clients map[string]*httpClient // by Mcp-Session-Id; those that have calls, or leave
}

// httpClient has what is under way.
type httpClient struct {
	calls   map[*context.CancelCauseFunc]struct{}
	leaving int
}

// middleware notes calls down, and cancels them when their client leaves.
func (c *httpCalls) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		id := ""
		if client := req.GetSession(); client != nil {
			id = client.ID()
		}
		if id == "" { // stdio, or the new era.
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer c.add(id, &cancel)()
		return next(ctx, method, req)
	}
}

func (c *httpCalls) add(id string, cancel *context.CancelCauseFunc) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.client(id)
	client.calls[cancel] = struct{}{}
	if client.leaving > 0 {
		(*cancel)(errClientGone)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(client.calls, cancel)
		c.forget(id, client)
	}
}

// ending cancels the calls of a client, and those that it still makes until done.
func (c *httpCalls) ending(id string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.client(id)
	client.leaving++
	for cancel := range client.calls {
		(*cancel)(errClientGone)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		client.leaving--
		c.forget(id, client)
	}
}

// client is the one of that id. The caller holds mu.
func (c *httpCalls) client(id string) *httpClient {
	if c.clients == nil {
		c.clients = make(map[string]*httpClient)
	}
	client := c.clients[id]
	if client == nil {
		client = &httpClient{calls: make(map[*context.CancelCauseFunc]struct{})}
		c.clients[id] = client
	}
	return client
}

// forget takes a client out that has nothing here. The caller holds mu.
func (c *httpCalls) forget(id string, client *httpClient) {
	if len(client.calls) == 0 && client.leaving == 0 {
		delete(c.clients, id)
	}
}
