package shell

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
)

// target is the command that runs, for the ladder.
type target struct {
	b      *bash
	r      *running
	nudged bool             // a closing line is on its way
	sid    int              // of bash's session
	known  map[proc.ID]bool // that were members
}

// Shell is bash, which has to survive. A fork is one of the processes to be stopped, and
// bash does nothing but wait for it.
func (t *target) Shell() proc.ID {
	if t.r.place.fork != nil {
		return proc.ID{}
	}
	return t.b.id
}

// ladder is how the command is stopped.
func (r *running) ladder(opts *Options) interrupt.Ladder {
	if len(r.req.Ladder) > 0 {
		return r.req.Ladder
	}
	return opts.Ladder
}

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
// own handler.
func (t *target) Traps() bool {
	return t.b.saved.state.IntTrap || t.b.saved.since.traps || t.r.place.traits.Traps || t.r.place.traits.Unknown
}

// Fork reports whether a member is the fork that runs the script: bash has no other child
// of this command then.
func (t *target) Fork(st proc.Stat) bool {
	return t.r.place.fork != nil && st.PPID == t.b.id.PID
}

// EndsWithChild goes by the functions that bash had when its state was saved. What the last
// commands have defined since is not known.
func (t *target) EndsWithChild() bool {
	return !t.b.saved.since.names && t.r.place.script.EndsWithChild(t.b.library())
}

func (t *target) SignalShell(sig syscall.Signal) {
	if t.r.place.fork != nil && sig != syscall.SIGKILL {
		return
	}
	_ = t.b.conn.Signal(sig) // It may be dead; Back says so.
	switch sig {
	case syscall.SIGINT:
		t.nudged = false
	case syscall.SIGVTALRM, syscall.SIGKILL:
		t.b.obituary.evicted = true
	}
}

// evictionGrace bounds how long a bash that was told to end, and has reported all the same, is
// waited for: far more than its exit trap takes.
const evictionGrace = time.Second

// Back waits for bash's report. A SIGINT may have thrown away even the line
// that reports it, so a new one is sent after each.
func (t *target) Back(wait time.Duration) (back, dead bool) {
	if !t.nudged && t.r.place.fork == nil {
		t.nudged = true
		_ = t.r.Nudge() // It fails if bash has ended, which is seen below.
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	why := t.r.Await(ctx, ipc.Wait{})
	if why == ipc.Reported && t.b.obituary.evicted {
		// It may have reported before the signal that ends it: to say now that it survived
		// would be wrong a moment later. A trap of the user's may keep it alive.
		select {
		case <-t.b.conn.Done():
		case <-time.After(evictionGrace):
		}
	}
	return why == ipc.Reported, why == ipc.Ended || why == ipc.Reported && t.b.dead()
}

// errStoodStill is why a command is stopped that nobody would ever continue.
var errStoodStill = errors.New("it stopped its own shell (SIGSTOP)")

// stillness notices a bash that was stopped, or a fork of it, as by kill -STOP $$, and that
// nobody is there to continue: each process of the command stands still. Under bash -c that
// hangs for ever, until a person at another terminal helps.
type stillness struct {
	b     *bash
	r     *running
	since time.Time
}

// stillAfter is how long bash must be seen to stand still: somebody may only have
// wanted a look at it.
const stillAfter = time.Second

func (s *stillness) noticed() bool {
	bash := proc.State(s.b.id) == 'T'
	if !bash && !s.forkStands() {
		s.since = time.Time{}
		return false
	}
	if bash && s.b.conn.Unread() > 0 {
		s.b.resume() // It stood still before it had read the command.
		return false
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if time.Since(s.since) < stillAfter {
		return false
	}
	return !slices.ContainsFunc((&target{b: s.b, r: s.r}).Members(), func(m proc.Stat) bool { return m.State != 'T' })
}

// forkStands reports whether the fork of bash that runs the script was stopped.
func (s *stillness) forkStands() bool {
	return s.r.place.fork != nil &&
		slices.ContainsFunc(proc.Children(s.b.id.PID), func(kid proc.Stat) bool { return kid.State == 'T' && kid.Start >= s.r.born })
}

// resume lets a bash go on that was stopped while it was idle: it is asked for something.
func (b *bash) resume() {
	if proc.State(b.id) == 'T' {
		_ = b.conn.Signal(syscall.SIGCONT) // It may be dead, which is seen soon.
	}
}

// muteness notices a bash that is back at its stdin without having reported:
// it cannot write its record ("set -r", "ulimit -n 3"), or a function that a
// sourced file named "builtin" came in between. Waiting on would be for ever.
//
// It also notices a trap that reads there: a trap for EXIT runs at bash's top level, with bash's own
// stdin, from which nothing would ever come. Neither it nor bash can be told from the other, so
// both get end-of-file: the trap goes on, as with /dev/null, and bash ends by itself.
type muteness struct {
	b      *bash
	r      *running
	since  time.Time
	next   time.Time
	closed bool
}

// errMute is why a wait ends that muteness has ended.
var errMute = errors.New("bash went back to its prompt")

// wentBack is the failure of such a bash.
const wentBack = "went back to its prompt without a report"

// muteAfter is how long bash must be seen waiting for input. A record that it
// wrote would be there long since.
const muteAfter = time.Second

func (m *muteness) noticed() bool {
	now := time.Now()
	if now.Before(m.next) {
		return false
	}
	m.next = now.Add(muteAfter / 4)
	if !proc.AwaitsInput(m.b.id.PID, m.b.stdin) && (m.closed || !m.trapReads()) {
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
	if !m.closed {
		m.closed, m.since = true, time.Time{}
		_ = m.b.conn.CloseStdin() // If it is broken, bash has ended.
		return false
	}
	m.b.giveUp(wentBack)
	return true
}

// trapReads reports whether bash, which has its own stdin, waits for a child that has that too, or until
// something can be read. What PS0 starts has it as well, but that ends; and what the prompts
// start, before bash has read the command.
func (m *muteness) trapReads() bool {
	bash := m.b.id.PID
	if m.b.stdin == "" || m.b.conn.Unread() > 0 || proc.Stdin(bash) != m.b.stdin {
		return false
	}
	if !proc.AwaitsAny(bash) && !(proc.AwaitsChild(bash) && slices.ContainsFunc(proc.Children(bash), func(kid proc.Stat) bool {
		return kid.Start >= m.r.born && kid.State == 'S' && proc.Stdin(kid.PID) == m.b.stdin
	})) {
		return false
	}
	_, hook := m.b.saved.state.Variable("PS0") // Last: a large state takes long to look through.
	return !hook
}
