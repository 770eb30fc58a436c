package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// HeadSession is the header that says which session is meant: its keeper.Record.SessionID.
const HeadSession = "Limpet-Session"

// mostSmall bounds the bodies of the requests that are answered here. A spec has paths and no environment.
const mostSmall = 64 << 10

// Open is the body of a request for a session.
type Open struct {
	Spec *keeper.Spec `json:"spec,omitempty"`
}

// Close is that of a request for the end of one.
type Close struct {
	Session string `json:"session"`
	Forget  bool   `json:"forget,omitempty"` // nobody will ask for its name
}

// Upgrade is that of a request to have one kept by this program. The answer is a wire.Upgraded.
type Upgrade struct {
	Session string `json:"session"`
	NoWait  bool   `json:"no_wait,omitempty"` // as in keeper.Upgrade
	Force   bool   `json:"force,omitempty"`   // as above
}

// Found is the answer of follow.
type Found struct {
	Found bool `json:"found"`
}

// router answers requests, by the keepers of a registry. Its methods are safe for concurrent use. Close it.
type router struct {
	registry *keeper.Registry
	mux      *http.ServeMux
	files    *transfer.Handler
	lost     func() bool // reports whether the connection is; nothing more is asked then

	mu    sync.Mutex
	known map[string]*keeper.Kept // by their session's ID
}

func newRouter(registry *keeper.Registry) *router {
	rt := &router{registry: registry, mux: http.NewServeMux(), lost: func() bool { return false }, known: make(map[string]*keeper.Kept)}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // Where it is not known, as for a session.
	}
	rt.files = transfer.NewHandler(&transfer.Local{Dir: home, Home: home, Mark: ":"}, wire.Answer)
	for pattern, do := range map[string]func(r *http.Request, body []byte) (any, error){
		"GET /v1/kept":                    rt.list,
		"PUT /v1/kept/{name}":             rt.open,
		"POST /v1/kept/{name}/close":      rt.end,
		"POST /v1/kept/{name}/upgrade":    rt.upgrade,
		"POST /v1/kept/{name}/kill":       rt.kill,
		"POST /v1/sessions/{name}/follow": rt.follow,
	} {
		rt.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := jsonhttp.Body(w, r, mostSmall)
			var value any
			if err == nil {
				value, err = do(r, body)
			}
			wire.Answer(w, value, err)
		})
	}
	rt.mux.Handle("POST "+transfer.Path+"{op}", rt.files)
	asked := questions.NewHandler(registry.Questions(), wire.Answer)
	rt.mux.Handle("/v1"+questions.Path, asked)
	rt.mux.Handle("/v1"+questions.Path+"/", asked)
	rt.mux.HandleFunc("/v1/kept/{name}/terminals", rt.terminals)
	rt.mux.HandleFunc("/v1/kept/{name}/terminals/", rt.terminals)
	rt.mux.HandleFunc("POST /v1/kept/{name}/run", rt.run)
	rt.mux.HandleFunc("/v1/sessions/{name}", rt.forward)
	rt.mux.HandleFunc("/v1/sessions/{name}/{rest...}", rt.forward)
	rt.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = jsonhttp.Body(w, r, wire.MostBody) // It must be read, whatever it is.
		wire.Answer(w, nil, fmt.Errorf("there is no %s %s here; this is version %d of the protocol", r.Method, r.URL.Path, wire.Version))
	})
	return rt
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) { rt.mux.ServeHTTP(w, r) }

// close lets go of all sessions and files.
func (rt *router) close() {
	rt.files.Close()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, k := range rt.known {
		k.Disconnect()
	}
	clear(rt.known)
}

func (rt *router) list(r *http.Request, _ []byte) (any, error) {
	all, _ := strconv.ParseBool(r.URL.Query().Get("all")) // False, if it is not given.
	list, err := rt.registry.List(r.Context(), all)
	if list == nil {
		list = []keeper.Listed{} // Not null.
	}
	return list, err
}

func (rt *router) open(r *http.Request, body []byte) (any, error) {
	var in Open
	if err := jsonhttp.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	k, err := rt.session(r.Context(), r.PathValue("name"), in.Spec)
	if err != nil {
		return nil, err
	}
	opened := k.Opened()
	opened.Info = infoOf(r.Context(), k)
	if !rt.note(k) {
		k.Disconnect()
	}
	return opened, nil
}

// session opens a session, whose keeper has just answered. The caller must note it, or Disconnect it.
func (rt *router) session(ctx context.Context, name string, spec *keeper.Spec) (*keeper.Kept, error) {
	if spec != nil {
		spec.Env = shell.DefaultEnv() // Nothing of the other machine's.
		if home, err := os.UserHomeDir(); err == nil && spec.Dir == "" {
			spec.Dir = home
		}
	}
	return rt.registry.Session(ctx, name, spec)
}

// note has the requests about a session use what has opened it. It reports false if others use another one already.
func (rt *router) note(k *keeper.Kept) bool {
	id := k.Record.SessionID()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.known[id] != nil {
		return false
	}
	rt.known[id] = k
	return true
}

// infoPatience is how long the answer to who opens a session waits for what is known of it, which saves the client a round trip.
const infoPatience = time.Second

// infoOf returns what is known of a session; nil if it does not answer soon: then the client asks, and is told why not.
func infoOf(ctx context.Context, k *keeper.Kept) *session.Info {
	ctx, cancel := context.WithTimeout(ctx, infoPatience)
	defer cancel()
	info, err := k.Info(ctx)
	if err != nil {
		return nil
	}
	return &info
}

// find returns the session that a request means.
func (rt *router) find(ctx context.Context, name, id string) (*keeper.Kept, error) {
	rt.mu.Lock()
	k := rt.known[id]
	rt.mu.Unlock()
	if k != nil && k.Name() == name {
		return k, nil
	}
	k, err := rt.registry.Session(ctx, name, nil)
	if errors.Is(err, session.ErrNotFound) {
		return nil, wire.ErrGone
	}
	if err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if k.Record.SessionID() != id || rt.known[id] != nil {
		k.Disconnect()
		if k = rt.known[id]; k == nil || k.Name() != name {
			return nil, wire.ErrGone // Another session has its name.
		}
		return k, nil
	}
	rt.known[id] = k
	return k, nil
}

// forget lets go of a session that has ended.
func (rt *router) forget(id string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if k := rt.known[id]; k != nil {
		k.Disconnect()
	}
	delete(rt.known, id)
}

// done is the answer that there is nothing to tell.
var done = struct{}{}

func (rt *router) end(r *http.Request, body []byte) (any, error) {
	var in Close
	if err := jsonhttp.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	k, err := rt.find(r.Context(), r.PathValue("name"), in.Session)
	if errors.Is(err, wire.ErrGone) {
		return done, nil // It has ended.
	}
	if err == nil {
		err = rt.endNow(r.Context(), k, in.Forget)
	}
	return done, err
}

// endNow ends a session, and lets go of it. With forget nothing of it is remembered.
func (rt *router) endNow(ctx context.Context, k *keeper.Kept, forget bool) error {
	if err := rt.registry.Close(ctx, k); err != nil {
		return err
	}
	if forget {
		rt.registry.Forget(k)
	}
	rt.forget(k.Record.SessionID())
	return nil
}

func (rt *router) upgrade(r *http.Request, body []byte) (any, error) {
	var in Upgrade
	if err := jsonhttp.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	k, err := rt.find(r.Context(), r.PathValue("name"), in.Session)
	if err != nil {
		return nil, err
	}
	lost, err := rt.registry.Upgrade(r.Context(), k, keeper.Upgrade{NoWait: in.NoWait, Force: in.Force})
	return wire.Upgraded{Lost: lost}, err
}

func (rt *router) kill(r *http.Request, _ []byte) (any, error) {
	return done, rt.registry.Kill(r.Context(), r.PathValue("name"))
}

func (rt *router) follow(r *http.Request, _ []byte) (any, error) {
	k, err := rt.find(r.Context(), r.PathValue("name"), r.Header.Get(HeadSession))
	return Found{err == nil && k.Follow(r.Context())}, nil
}

// forward passes a request on to the keeper of its session, and the answer back as it comes.
func (rt *router) forward(w http.ResponseWriter, r *http.Request) {
	body, err := jsonhttp.Body(w, r, wire.MostBody) // First: see pipe.Serve.
	var k *keeper.Kept
	if err == nil {
		k, err = rt.find(r.Context(), r.PathValue("name"), r.Header.Get(HeadSession))
	}
	var answer *jsonhttp.Answer
	if err == nil {
		path := strings.TrimPrefix(r.URL.EscapedPath(), "/v1")
		if r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		answer, err = k.Forward(r.Context(), r.Method, path, body)
	}
	if jsonhttp.Sent(err) {
		panic(http.ErrAbortHandler) // The client sees that there is no answer.
	}
	if err != nil {
		if errors.Is(err, wire.ErrGone) {
			rt.forget(r.Header.Get(HeadSession)) // Else a connection that lives for days remembers all that there were.
		}
		wire.Answer(w, nil, err)
		return
	}
	defer answer.Close()
	if !jsonhttp.Relay(w, answer.Response) {
		panic(http.ErrAbortHandler) // The client sees that it is not the end, and asks again.
	}
}
