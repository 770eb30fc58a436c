package proc

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// environments remembers what processes were started with: to read each of them
// at each of many looks is most of what a look costs. What is remembered holds for one
// program of one process: it is forgotten when that executes another.
type environments struct {
	mu    sync.Mutex
	known map[ID]*environment
}

// environment has the values of those variables of one process that were asked for.
type environment struct {
	image  image
	values map[string][]string
}

// Carries reports whether the process was started with entry ("NAME=value") in its
// environment, by the program that it is now. It is false where we may not look.
func (s Stat) Carries(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	return slices.Contains(known.values(s, name), value)
}

// values returns the values that a variable has in the environment of the process.
func (e *environments) values(st Stat, name string) []string {
	if st.image.bare() {
		return nil
	}
	e.mu.Lock()
	one := e.known[st.ID()]
	if one != nil && one.image == st.image {
		if values, ok := one.values[name]; ok {
			e.mu.Unlock()
			return values
		}
	}
	e.mu.Unlock()
	values, read := envValues(st.PID, name) // It may have to wait for an execve.
	if !read {
		return nil // There was none yet, or we may not look yet.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if one = e.known[st.ID()]; one == nil || one.image != st.image {
		one = &environment{image: st.image, values: make(map[string][]string)}
		e.known[st.ID()] = one
	}
	one.values[name] = values
	return values
}

// keep forgets all but these processes.
func (e *environments) keep(living map[int]Stat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.known {
		if living[id.PID].ID() != id {
			delete(e.known, id)
		}
	}
}

// bearers says which processes of a view carry which entries. It looks only at those
// that were started late enough to be asked for.
type bearers struct {
	environments *environments
	latest       []Stat // those that were started last come first

	mu   sync.Mutex
	seen map[string]int               // by variable: how many of the latest were looked at
	with map[string]map[string][]Stat // by variable and value
}

func newBearers(e *environments, all map[int]Stat) *bearers {
	c := &bearers{environments: e, seen: make(map[string]int), with: make(map[string]map[string][]Stat)}
	for _, st := range all {
		if !st.Zombie() {
			c.latest = append(c.latest, st)
		}
	}
	slices.SortFunc(c.latest, func(a, b Stat) int { return cmp.Compare(b.Start, a.Start) })
	return c
}

// of returns the processes that carry an entry, and were not started before a moment.
func (c *bearers) of(entry string, since uint64) []Stat {
	name, value, _ := strings.Cut(entry, "=")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.with[name] == nil {
		c.with[name] = make(map[string][]Stat)
	}
	at := c.seen[name]
	for ; at < len(c.latest) && c.latest[at].Start >= since; at++ {
		for _, v := range c.environments.values(c.latest[at], name) {
			c.with[name][v] = append(c.with[name][v], c.latest[at])
		}
	}
	c.seen[name] = at
	var found []Stat
	for _, st := range c.with[name][value] {
		if st.Start >= since {
			found = append(found, st)
		}
	}
	return found
}
