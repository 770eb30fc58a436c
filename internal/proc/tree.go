package proc

// Tree is a view of all processes at one moment. Any number of goroutines may use one.
type Tree struct {
	all      map[int]Stat
	children map[int][]int // by parent
	sessions map[int][]int // by leader
	bearers  *bearers
}

// Snapshot reads the processes that there are. Those who ask at the same moment share
// one reading, which begins after they asked.
func Snapshot() (Tree, error) { return trees.get() }

var (
	trees = newSharer(snapshot)
	known = environments{known: make(map[ID]*environment)}
)

func snapshot() (Tree, error) {
	list, err := List()
	t := newTree(list)
	if err == nil {
		known.keep(t.all)
	}
	return t, err
}

func newTree(list []Stat) Tree {
	t := Tree{all: make(map[int]Stat, len(list)), children: make(map[int][]int), sessions: make(map[int][]int)}
	for _, st := range list {
		t.all[st.PID] = st
		t.children[st.PPID] = append(t.children[st.PPID], st.PID)
		t.sessions[st.SID] = append(t.sessions[st.SID], st.PID)
	}
	t.bearers = newBearers(&known, t.all)
	return t
}

// Session returns the living processes that belong to a shell, the leader of a
// session: those below it, those of its session, and those that carry its
// environment entry wherever they are now. The shell itself is not among them.
func (t Tree) Session(shell ID, entry string) []Stat {
	return t.kin(shell, t.bearers.of(entry, shell.Start))
}

// Family is Session without those that only carry an entry.
func (t Tree) Family(leader ID) []Stat { return t.kin(leader, nil) }

// kin returns the living processes below the leader of a session, those of its session,
// and those others that are taken for its own.
func (t Tree) kin(leader ID, besides []Stat) []Stat {
	found := make(map[ID]bool)
	var members []Stat
	add := func(st Stat) {
		if st.ID() != leader && !st.Zombie() && !found[st.ID()] {
			found[st.ID()] = true
			members = append(members, st)
		}
	}
	for _, st := range t.Descendants(leader) {
		add(st)
	}
	if _, leads := t.Get(leader); leads { // Else its pid may be another's, and so the session's.
		for _, pid := range t.sessions[leader.PID] {
			add(t.all[pid])
		}
	}
	for _, st := range besides {
		add(st)
	}
	return members
}

// All returns the living processes.
func (t Tree) All() []Stat {
	list := make([]Stat, 0, len(t.all))
	for _, st := range t.all {
		if !st.Zombie() {
			list = append(list, st)
		}
	}
	return list
}

// Besides returns the living processes that a look before this one knew, those that
// descend from one of them, and those of a session whose leader is gone: what is
// left of a shell that has ended, whether it carries an environment entry or not.
// The pid of the leader is nobody else's as long as a process of its session lives
// (setsid(2)).
func (t Tree) Besides(known map[ID]bool, sid int) []Stat {
	var found []Stat
	_, led := t.all[sid]
	for pid, st := range t.all {
		if !st.Zombie() && (known[st.ID()] || !led && sid != 0 && st.SID == sid || t.anyAncestor(pid, func(a Stat) bool { return known[a.ID()] })) {
			found = append(found, st)
		}
	}
	return found
}

// Descendants returns the living processes that descend from the one that id names.
func (t Tree) Descendants(id ID) []Stat {
	if _, ok := t.Get(id); !ok {
		return nil
	}
	var found []Stat
	seen := map[int]bool{id.PID: true} // A torn view may have loops.
	for parents := []int{id.PID}; len(parents) > 0; parents = parents[1:] {
		for _, pid := range t.children[parents[0]] {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			parents = append(parents, pid)
			if st := t.all[pid]; !st.Zombie() {
				found = append(found, st)
			}
		}
	}
	return found
}

// Below reports whether the process descends from the one that id names.
func (t Tree) Below(pid int, id ID) bool {
	return t.anyAncestor(pid, func(st Stat) bool { return st.ID() == id })
}

// anyAncestor walks from the parent of pid to the root. The view may be torn,
// since processes come and go while it is taken: the walk is bounded.
func (t Tree) anyAncestor(pid int, is func(Stat) bool) bool {
	for range len(t.all) {
		parent, ok := t.all[t.all[pid].PPID]
		if !ok {
			return false
		}
		if is(parent) {
			return true
		}
		pid = parent.PID
	}
	return false
}

// Origin answers to which of the given processes a member traces back: itself,
// an ancestor, or the leader of its session. It is how a job of an earlier
// command, with all that it started since, is told from the present command.
func (t Tree) Origin(st Stat, of map[ID]bool, shellSID int) bool {
	if of[st.ID()] {
		return true
	}
	if t.anyAncestor(st.PID, func(a Stat) bool { return of[a.ID()] }) {
		return true
	}
	if st.SID == shellSID {
		return false
	}
	for id := range of {
		if a, ok := t.all[id.PID]; ok && a.ID() == id && a.SID == st.SID {
			return true
		}
	}
	return false
}

// Get returns a process of the view.
func (t Tree) Get(id ID) (Stat, bool) {
	st, ok := t.all[id.PID]
	return st, ok && st.ID() == id
}
