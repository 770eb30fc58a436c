package terminal

import (
	"os"
	"slices"
	"sync"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

// members are the living processes of the terminal: the program, and whatever descends from
// it, is of its session or carries its mark.
func (p *program) members() []proc.Stat {
	l := processes.look()
	if l.err != nil {
		return nil
	}
	members := l.tree.Family(p.id)
	seen := make(map[proc.ID]bool, len(members))
	for _, m := range members {
		seen[m.ID()] = true
	}
	add := func(list []proc.Stat) {
		for _, st := range list {
			if !seen[st.ID()] {
				seen[st.ID()] = true
				members = append(members, st)
			}
		}
	}
	add(l.carriers[p.name])
	if st, ok := l.tree.Get(p.id); ok && !st.Zombie() {
		add([]proc.Stat{st})
	}
	p.mu.Lock()
	add(l.tree.Besides(p.known, p.id.PID)) // Also of a session whose leader is gone, without any mark.
	for id := range seen {
		p.known[id] = true
	}
	p.mu.Unlock()
	switch e, ok := p.conn.(transport.Enclosed); {
	case ok:
		// What wraps the program is none of it: it ends when the program does.
		first, err := proc.Read(e.Init())
		return slices.DeleteFunc(members, func(m proc.Stat) bool { return err != nil || !l.tree.Below(m.PID, first.ID()) })
	case p.hosted && len(members) > 1: // As above.
		return slices.DeleteFunc(members, func(m proc.Stat) bool { return m.ID() == p.id })
	}
	return members
}

// processes is asked by all that are closed.
var processes census

// census looks at all processes. Those who ask while somebody looks share the next look, as
// when a registry closes a thousand terminals: else each of them would read all of
// /proc, some times.
type census struct {
	looking sync.Mutex

	mu   sync.Mutex
	next *look // that has not begun; nil if nobody waits for one
}

type look struct {
	once     sync.Once
	tree     proc.Tree
	carriers map[string][]proc.Stat // by the value of their mark
	err      error
}

// look returns what a look found that began after the call did.
func (c *census) look() *look {
	c.mu.Lock()
	if c.next == nil {
		c.next = &look{}
	}
	l := c.next
	c.mu.Unlock()
	l.once.Do(func() {
		c.looking.Lock()
		defer c.looking.Unlock()
		c.mu.Lock()
		c.next = nil // It begins: who asks from now on wants another one.
		c.mu.Unlock()
		l.take()
	})
	return l
}

// take looks at all processes, and into the environment of those that may be ours.
func (l *look) take() {
	if l.tree, l.err = proc.Snapshot(); l.err != nil {
		return
	}
	self, _ := proc.Read(os.Getpid()) // Without it all are looked at.
	l.carriers = make(map[string][]proc.Stat)
	for _, st := range l.tree.All() {
		if st.Start < self.Start || st.PID == self.PID {
			continue
		}
		if id, ok := proc.Env(st.PID, environ.TerminalVar); ok {
			l.carriers[id] = append(l.carriers[id], st)
		}
	}
}
