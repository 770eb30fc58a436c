package mcpserver

import (
	"sync"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// places are what answers have told of sessions: that they are new, and where they are.
type places struct {
	mu   sync.Mutex
	of   map[string]place     // by the name of the session
	used map[string]time.Time // when the sessions were made that were in use before the server was there
}

// init notes which sessions were in use before the server was there: to a model they are not new.
func (p *places) init(sessions *session.Registry) {
	p.used = make(map[string]time.Time)
	for _, info := range sessions.List() {
		if info.Commands+info.Jobs+info.Terminals > 0 {
			p.used[info.Name] = info.Created
		}
	}
}

// place is where a session was that was made then.
type place struct {
	made time.Time
	dir  string
}

// told notes what an answer tells of a session, and returns what the answer should call it: "" if the
// answer before told of the same session. It also reports whether the session is in another directory than
// that answer said. undo has it not told.
func (p *places) told(sessions *session.Registry, info session.Info) (named string, moved bool, undo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.of[info.Name]
	if !ok {
		known := make(map[string]place)
		for _, info := range sessions.List() { // Those of sessions that were closed go.
			if at, ok := p.of[info.Name]; ok {
				known[info.Name] = at
			}
		}
		p.of = known
	}
	now := place{info.Created, info.Dir}
	p.of[info.Name] = now
	undo = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.of[info.Name] != now: // Another answer has told of it since.
		case ok:
			p.of[info.Name] = last
		default:
			delete(p.of, info.Name)
		}
	}
	switch {
	case ok && last.made.Equal(now.made):
	case p.used[info.Name].Equal(now.made):
		named = "session " + info.Name
	default:
		named = "new session " + info.Name
	}
	return named, ok && last.dir != info.Dir, undo
}
