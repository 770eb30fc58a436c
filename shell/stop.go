package shell

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
)

// target is the command that runs, for the ladder.
type target struct {
	b      *bash
	r      *running
	nudged bool             // a closing line is on its way
	sid    int              // of bash's session
	known  map[proc.ID]bool // that were members
}

func (t *target) Shell() proc.ID { return t.b.id }

// Members are the processes of the session, but for those of earlier commands
// and what they started since. A start time is cut to 10 ms, and so is born: what
// was there before may be taken for a member only if it came in that instant. Who
// was a member once stays one, also when bash, by which it was known, has ended.
func (t *target) Members() []proc.Stat {
	t.r.monitor.Look() // A command that is being stopped may still write without end.
	tree, err := proc.Snapshot()
	if err != nil {
		return nil
	}
	earlier := make(map[proc.ID]bool, len(t.b.earlier))
	for id := range t.b.earlier {
		earlier[id] = true
	}
	if bash, ok := tree.Get(t.b.id); ok { // It may have ended. In a sandbox it does not lead its session.
		t.sid = bash.SID
	}
	if t.known == nil {
		t.known = make(map[proc.ID]bool)
	}
	found := tree.Session(t.b.id, t.b.entry)
	if t.b.first.PID != 0 {
		found = slices.DeleteFunc(tree.Descendants(t.b.first), func(st proc.Stat) bool { return st.ID() == t.b.id })
	}
	if t.b.dead() {
		found = append(found, tree.Besides(t.known, t.sid)...)
	}
	var members []proc.Stat
	listed := make(map[proc.ID]bool)
	for _, st := range found {
		if st.Start >= t.r.born && !listed[st.ID()] && !tree.Origin(st, earlier, t.sid) {
			listed[st.ID()], t.known[st.ID()] = true, true
			members = append(members, st)
		}
	}
	return members
}

func (t *target) Started(st proc.Stat) bool {
	_, earlier := t.b.earlier[st.ID()]
	return !earlier && st.Start >= t.r.born
}

// Traps errs on the side of yes: from outside, a trap cannot be told from bash's
// own handler, and nobody knows what a sourced file does, or an eval, or a command
// whose name is in a variable.
func (t *target) Traps() bool {
	// The saved state knows of what ran before it was saved.
	state, since := t.b.saved.state, t.b.unsaved+t.r.req.Script
	if state.IntTrap || strings.Contains(since, "trap") {
		return true
	}
	calls, ok := commandNames(since)
	if !ok {
		return true
	}
	trapping := append(state.Trapping(), "trap", ".", "source", "eval")
	if strings.Contains(since, "-C") {
		trapping = append(trapping, "mapfile", "readarray") // They can run a command.
	}
	return slices.ContainsFunc(calls, func(name string) bool { return slices.Contains(trapping, name) })
}

func (t *target) SignalShell(sig syscall.Signal) {
	_ = t.b.conn.Signal(sig) // It may be dead; Back says so.
	switch sig {
	case syscall.SIGINT:
		t.nudged = false
	case syscall.SIGVTALRM, syscall.SIGKILL:
		t.b.evicted = true
	}
}

// Back waits for bash's report. A SIGINT may have thrown away even the line
// that reports it, so a new one is sent after each.
func (t *target) Back(wait time.Duration) (back, dead bool) {
	if !t.nudged {
		t.nudged = true
		_ = t.b.send(t.r.ClosingLine()) // It fails if bash has ended, which is seen below.
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	poll := t.b.newPoll(doubt)
	defer poll.stop()
	for {
		if _, ok := t.r.reported(); ok {
			return true, t.b.dead()
		}
		select {
		case <-t.b.events():
			_ = t.b.renewFiles() // If that fails, bash cannot report and is killed.
		case <-poll.c:
			poll.again()
		case <-t.b.conn.Done():
			return false, true
		case <-timer.C:
			return false, false
		}
	}
}

// muteness notices a bash that is back at its stdin without having reported:
// it cannot write its record ("set -r", "ulimit -n 3"), or a function that a
// sourced file named "builtin" came in between. Waiting on would be for ever.
type muteness struct {
	b     *bash
	since time.Time
	next  time.Time
}

// muteAfter is how long bash must be seen waiting for input. A record that it
// wrote would be there long since.
const muteAfter = time.Second

func (m *muteness) noticed() bool {
	now := time.Now()
	if now.Before(m.next) {
		return false
	}
	m.next = now.Add(muteAfter / 4)
	if !proc.AwaitsInput(m.b.id.PID, m.b.stdin) {
		m.since = time.Time{}
		return false
	}
	if m.since.IsZero() {
		m.since = now
		return false
	}
	if now.Sub(m.since) < muteAfter {
		return false
	}
	m.b.giveUp("went back to its prompt without a report")
	return true
}
