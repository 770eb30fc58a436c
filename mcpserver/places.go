package mcpserver

import (
	"sync"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// places are what answers have told of sessions: that they are new, and where they are. The zero
// value is ready.
type places struct {
	mu sync.Mutex
	of map[string]place // by the name of the session
}

// place is where a session was that was made then.
type place struct {
	made time.Time
	dir  string
}

// told notes what an answer tells of a session, and reports whether that is news: whether the session
// is another one than that of the last answer, or none was told of it, and whether it is elsewhere.
func (p *places) told(sessions *session.Registry, info session.Info) (fresh, moved bool) {
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
	return !ok || last.made != now.made, ok && last.dir != info.Dir
}
