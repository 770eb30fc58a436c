package mcpserver

import (
	"sync"

	"github.com/limpet-sh/limpet/session"
)

// places are the directories that answers have told of sessions, so that a directory is told
// when it is another one. The zero value is ready.
type places struct {
	mu sync.Mutex
	of map[string]string // by the name of the session
}

// moved reports whether a session is elsewhere than its last answer said, or, if there was
// none, than it was before. The answer that it is for tells the new directory.
func (p *places) moved(sessions *session.Registry, name, before, dir string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.of[name]
	if !ok {
		last = before
		known := make(map[string]string)
		for _, info := range sessions.List() { // Those of sessions that were closed go.
			if at, ok := p.of[info.Name]; ok {
				known[info.Name] = at
			}
		}
		p.of = known
	}
	p.of[name] = dir
	return dir != last
}
