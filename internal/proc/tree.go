package proc

// Tree is a view of all processes at one moment.
type Tree struct {
	all map[int]Stat
}

// Snapshot reads the processes that there are.
func Snapshot() (Tree, error) {
	list, err := List()
	t := Tree{all: make(map[int]Stat, len(list))}
	for _, st := range list {
		t.all[st.PID] = st
	}
	return t, err
}

// Session returns the living processes that belong to a shell, the leader of a
// session: those below it, those of its session, and those that carry its
// environment entry wherever they are now. The shell itself is not among them.
func (t Tree) Session(shell ID, entry string) []Stat {
	return t.kin(shell, func(st Stat) bool { return st.Start >= shell.Start && HasEnv(st.PID, entry) })
}

// Family is Session without those that only carry an entry.
func (t Tree) Family(leader ID) []Stat { return t.kin(leader, func(Stat) bool { return false }) }

// kin returns the living processes below the leader of a session, those of its session,
// and those others that are taken for its own.
func (t Tree) kin(leader ID, besides func(Stat) bool) []Stat {
	var members []Stat
	_, leads := t.Get(leader) // Else its pid may be another's, and so the session's.
	for pid, st := range t.all {
		if st.ID() == leader || st.Zombie() {
			continue
		}
		if t.Below(pid, leader) || leads && st.SID == leader.PID || besides(st) {
			members = append(members, st)
		}
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
	var found []Stat
	for pid, st := range t.all {
		if !st.Zombie() && t.Below(pid, id) {
			found = append(found, st)
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
