package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/session"
)

// headTemporary is the header of each request about a session that ends with the program which sends the request. The process that shares the
// connection reads it, and closes the session if that program ends without doing so: it was killed, say. Each request has the header, and not only
// the one that opens the session: the connection may be another one by then. No program but this one closes the session where the connection is not
// shared: to the other machine a program that is killed looks like a connection that is lost.
const headTemporary = "Limpet-Temporary"

// temporary sends requests with headTemporary.
type temporary struct{ to http.RoundTripper }

func (t temporary) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // It is the caller's.
	r.Header.Set(headTemporary, "true")
	return t.to.RoundTrip(r)
}

// temporaries are the sessions that end with programs which use a connection that is shared.
type temporaries struct {
	ask  *jsonhttp.Client // of the limpet over there
	used func(delta int)  // is called with 1 for each program that has such sessions, and with -1 when it has none any more

	mu sync.Mutex
	of map[proc.ID]map[string]bool // the names that a program has; the program is watched as long as it is in here
}

// note notes the session that a request is about, if it ends with the process that has sent the request. It reports false if that has ended already:
// nobody would end what the request makes. If the session was not noted before, undo takes the note back; else undo is nil.
func (t *temporaries) note(r *http.Request, pid int) (undo func(), alive bool) {
	name := sessionOf(r)
	if r.Header.Get(headTemporary) == "" || name == "" {
		return nil, true
	}
	st, err := proc.Read(pid)
	if err != nil {
		return nil, pid == 0 || !errors.Is(err, fs.ErrNotExist) // Where there are no pids nothing can be watched.
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	names, watched := t.of[st.ID()]
	if !watched {
		names = make(map[string]bool)
		t.of[st.ID()] = names
		go t.watch(st.ID()) // It ends with that program, or with this one.
	}
	if len(names) == 0 {
		t.used(1)
	}
	if names[name] {
		return nil, true
	}
	names[name] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remove(t.of[st.ID()], name)
	}, true
}

// remove takes the note back that a session is one of these. The caller holds mu.
func (t *temporaries) remove(names map[string]bool, name string) {
	if names[name] {
		if delete(names, name); len(names) == 0 {
			t.used(-1)
		}
	}
}

// forget notes that a session has ended.
func (t *temporaries) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, names := range t.of {
		t.remove(names, name)
	}
}

// watch waits for the end of a program, and closes the sessions that it has not closed.
func (t *temporaries) watch(id proc.ID) {
	const pause = 10 * time.Millisecond // Where there is no pidfd to be had WaitAny does not wait.
	for state := proc.State(id); state != 0 && state != 'Z' && state != 'X'; state = proc.State(id) {
		proc.WaitAny([]proc.ID{id}, time.Hour)
		time.Sleep(pause)
	}
	t.mu.Lock()
	names := t.of[id]
	delete(t.of, id)
	t.mu.Unlock()
	if len(names) == 0 {
		return
	}
	defer t.used(-1) // Behind: the connection stays until the sessions are closed.
	var all sync.WaitGroup
	for name := range names {
		all.Go(func() { t.close(name) })
	}
	all.Wait()
}

// close closes a session, of which only its name is known. It waits for as long as the connection lives. An error is nobody's to tell: the session
// then ends as others do that nobody uses.
func (t *temporaries) close(name string) {
	const tries, pause = 2, time.Second
	for range tries {
		var o keeper.Opened
		err := t.ask.Call(context.Background(), jsonhttp.Request{Method: http.MethodPut, Path: keptPath + name, Content: connect.Open{}}, &o)
		if err == nil {
			how := connect.Close{Session: o.Record.SessionID(), Forget: true}
			_ = t.ask.Call(context.Background(), jsonhttp.Request{Method: http.MethodPost, Path: keptPath + name + closePath, Content: how}, &struct{}{})
			return
		}
		if !errors.Is(err, session.ErrNotFound) {
			return
		}
		time.Sleep(pause) // The request that makes it may be under way.
	}
}

// sessionOf is the name of the session that a request is about; empty if there is none.
func sessionOf(r *http.Request) string {
	for _, before := range []string{keptPath, below("")} {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/v1"+before); ok {
			name, _, _ := strings.Cut(rest, "/")
			return name
		}
	}
	return ""
}

// wasThere reports whether the answer to a request for a session says that another program has made the session. It reads the answer, which can be
// read again then.
func wasThere(answer *http.Response) bool {
	if answer.StatusCode != http.StatusOK {
		return false
	}
	b, _ := io.ReadAll(io.LimitReader(answer.Body, mostOpened)) // The error comes again, behind what was read.
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b), answer.Body), answer.Body}
	var o keeper.Opened
	return json.Unmarshal(b, &o) == nil && !o.Made
}
