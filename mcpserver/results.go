package mcpserver

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"github.com/limpet-sh/limpet/command"
)

// results are what commands have printed, for a while: a model may want more of it than
// it was given. They are in no file that would outlive the server.
type results struct {
	mu   sync.Mutex
	name string // what all ids end in, so that those of a server before are not taken for this one's
	last int
	kept map[string]*kept
	ids  []string // the oldest first
}

// kept is the output of a command.
type kept struct {
	stdout, stderr command.Output
	merged         bool // stderr is in stdout
}

// mostResults bounds them. What they hold in memory is bounded by the shells' OutputLimit;
// the rest is in files that shells keep fewer of.
const mostResults = 64

// next is a name for the output of a command that is to run.
func (r *results) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = make(map[string]*kept)
		r.name = strings.ToLower(rand.Text()[:4])
	}
	r.last++
	return fmt.Sprintf("r%d-%s", r.last, r.name)
}

// keep keeps the output of a command under its name.
func (r *results) keep(id string, res command.Result, merged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[id] = &kept{res.Stdout, res.Stderr, merged}
	r.ids = append(r.ids, id)
	if len(r.ids) > mostResults {
		delete(r.kept, r.ids[0])
		r.ids = r.ids[1:]
	}
}

// get returns what is kept under a name.
func (r *results) get(id string) (*kept, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.kept[id]; k != nil {
		return k, nil
	}
	if len(r.ids) == 0 {
		return nil, fmt.Errorf("there is no result %q: no command was run yet since the server was started, and results are lost with the server", id)
	}
	return nil, fmt.Errorf("there is no result %q: the last %d are kept, %s to %s, and those of a server before are lost with it; run the command again, with its output in a file", id, len(r.ids), r.ids[0], r.ids[len(r.ids)-1])
}
