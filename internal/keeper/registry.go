package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// MostSessions is how many a user may keep: each has a watcher of files, of which Linux gives a user
// 128 (inotify(7), max_user_instances).
const MostSessions = 100

// A session that has ended is remembered for so long after its end was noticed, and so many of them are.
const (
	rememberedFor  = 7 * 24 * time.Hour
	mostRemembered = 32
)

// Registry finds the sessions that are kept by name, and starts keepers. Its methods are safe for
// concurrent use, also by several programs. There is nothing to close.
type Registry struct {
	dir string // of this boot

	// Execute returns a command that serves a directory, as [Serve] does. Its descriptors, its
	// environment and its directory are set by the registry.
	Execute func(dir string) *exec.Cmd

	// Version is told to those who ask.
	Version string

	endPatience time.Duration // 0 is that of the constant
}

// Open returns the registry of a directory; empty means that of the user. It is made, for the user
// alone, by whoever starts a keeper.
func Open(dir string) (*Registry, error) {
	if dir == "" {
		var err error
		if dir, err = statedir.Default(statedir.Kept); err != nil {
			return nil, &session.Error{Op: "find the directory of kept sessions", Err: err, Remedy: "set XDG_STATE_HOME, or HOME"}
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, &session.Error{Op: "find the directory of kept sessions", Err: err}
	}
	return &Registry{dir: filepath.Join(dir, boot())}, nil
}

// Dir is where the keepers of this boot have their directories.
func (r *Registry) Dir() string { return r.dir }

// Place makes the directory, and returns what names it, which is drawn at random once: another place of the same path, as in
// a container that was made anew, has another name.
func (r *Registry) Place() (string, error) {
	if err := r.make(); err != nil {
		return "", err
	}
	path := filepath.Join(r.dir, placeFile)
	const most = 100
	for {
		b, err := statedir.Read(path, most)
		if !errors.Is(err, fs.ErrNotExist) {
			return strings.TrimSpace(string(b)), err
		}
		fresh := path + "-" + newID()
		if err := statedir.Write(fresh, []byte(newID()+"\n")); err != nil {
			return "", err
		}
		err = os.Link(fresh, path) // The first one counts.
		_ = os.Remove(fresh)       // It has another name, or is not wanted.
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// StateDir is where the jobs and the terminals of the sessions of a name are, in the directories "jobs" and
// "terminals", as far as there were any: also those of a session that has ended, for as long as that is remembered.
func (r *Registry) StateDir(name string) string { return filepath.Join(r.dir, byName, name) }

// Questions is where programs of this user ask people, the keepers among them: a directory of package questions. No sandbox
// sees it.
func (r *Registry) Questions() string { return filepath.Join(r.dir, asking) }

// entry is a keeper's directory.
type entry struct {
	dir    string
	record Record
	alive  bool
	err    error // why there is no record
	other  bool  // it does not have its name: not yet, or not any more; see upgrade.go
}

// make makes the registry's directory.
func (r *Registry) make() error {
	err := private.MkdirAll(r.dir)
	for _, dir := range []string{filepath.Dir(r.dir), r.dir} {
		if err == nil {
			err = os.Chmod(dir, statedir.DirMode) // Whatever the umask is.
		}
		if err == nil {
			err = statedir.Private(dir)
		}
	}
	if err != nil {
		return fmt.Errorf("%w, %s, cannot be had: %w", errNoDirectory, r.dir, err)
	}
	return nil
}

var errNoDirectory = errors.New("the directory of kept sessions")

// remedyOf is what to do about an error of a directory.
func remedyOf(err error) string {
	if text := errtext.Remedy(err); text != "" {
		return text
	}
	switch {
	case errors.Is(err, errNoDirectory), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return "set XDG_STATE_HOME to a directory that can be written"
	}
	return ""
}

// lock holds the names. It waits for whoever has them, who may stand still; ctx bounds that. Call
// unlock.
func (r *Registry) lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = statedir.Lock(ctx, filepath.Join(r.dir, lockFile))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("another program is about to take a name: %w", err)
	}
	return unlock, err
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// alive reports whether the keeper of a directory lives: it holds the lock. Where there is no telling
// it does: nobody may take its name.
func alive(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close() // It gives the lock back.
	return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// removeLeaving removes the directory of a keeper that leaves: first the lock, so that one without a record is never taken for one that lives.
func removeLeaving(dir string) {
	_ = os.Remove(filepath.Join(dir, lockFile)) // Best effort: sweep does it too.
	_ = os.RemoveAll(dir)                       // As above.
}

// entries are the keepers, those that live and those that have ended, the oldest first. Of a name at
// most one lives that is no other.
func (r *Registry) entries() ([]entry, error) {
	const tries = 3 // That a keeper which has just taken over a name was not there yet happens once.
	for try := 1; ; try++ {
		list, err := r.readEntries()
		if err != nil || markOthers(list) || try == tries {
			return list, err
		}
	}
}

// markOthers finds those that do not have their names. Records change while they are read: it reports false
// if one that took over a name, or one from which it did, is not in the list.
func markOthers(list []entry) (whole bool) {
	byID := make(map[string]*entry, len(list))
	for i := range list {
		byID[filepath.Base(list[i].dir)] = &list[i]
	}
	whole = true
	for i := range list {
		e := &list[i]
		if e.err != nil {
			continue
		}
		if next := e.record.Next; next != "" {
			e.other = true
			_, there := byID[next]
			whole = whole && there
		}
		switch from, there := byID[e.record.From]; {
		case e.record.From == "":
		case e.record.Settled && there:
			from.other = true // Its record may have been read before it said so.
		case e.record.Settled:
		case !there || from.err != nil: // It stays until this one is settled.
			e.other, whole = true, false
		default:
			e.other = e.other || from.record.Next != e.record.ID
		}
	}
	return whole
}

// settleDead does for keepers that were killed what they would have done: those that had their names say
// so without the one that they come from.
func settleDead(list []entry) {
	for i := range list {
		if e := &list[i]; e.err == nil && !e.alive && !e.other && e.record.From != "" && !e.record.Settled {
			e.record.Settled = true
			e.record.Settled = e.record.write(e.dir) == nil // Else the next sweep tries again.
		}
	}
}

// isNeeded reports whether a keeper that has handed over its name has to be there still.
func isNeeded(e entry, list []entry) bool {
	return slices.ContainsFunc(list, func(next entry) bool {
		return next.err == nil && e.record.Next == next.record.ID && !next.record.Settled
	})
}

func (r *Registry) readEntries() ([]entry, error) {
	found, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []entry
	for _, one := range found {
		if !one.IsDir() || one.Name() == byName || one.Name() == asking {
			continue
		}
		e := entry{dir: filepath.Join(r.dir, one.Name())}
		e.alive = alive(e.dir)
		if e.record, e.err = readRecord(e.dir); e.alive && errors.Is(e.err, fs.ErrNotExist) {
			e.alive = alive(e.dir) // It has just left: see removeLeaving.
		}
		list = append(list, e)
	}
	slices.SortFunc(list, byAge)
	return list, nil
}

// sweep notes which keepers were killed, and when it noticed that, forgets what has ended long ago, and returns the others. The
// caller holds the names, so that none is about to start.
func (r *Registry) sweep() ([]entry, error) {
	list, err := r.entries()
	if err != nil {
		return nil, err
	}
	settleDead(list)
	var kept, ended []entry
	for _, e := range list {
		switch {
		case e.alive, e.other && isNeeded(e, list):
			kept = append(kept, e)
			continue
		case e.err != nil, e.other: // Whoever was about to start it was killed, or the name is another's.
			_ = os.RemoveAll(e.dir) // Best effort: the next one tries again.
			continue
		case e.record.State != Ended || e.record.End == nil:
			e.record = dead(e)
			_ = os.Remove(filepath.Join(e.dir, socketFile)) // It may be gone.
		}
		if e.record.notice() {
			_ = e.record.writeLast(e.dir) // As above.
		}
		ended = append(ended, e)
	}
	kept = append(kept, forgetOld(ended)...)
	slices.SortFunc(kept, byAge)
	r.sweepNames(kept)
	r.sweepBoots()
	return kept, nil
}

// byAge sorts entries, the oldest first.
func byAge(a, b entry) int {
	return cmp.Compare(a.record.Created.UnixNano(), b.record.Created.UnixNano())
}

// forgetOld removes the directories of sessions whose end was noticed too long ago, or before that of too many others, and returns
// the entries that stay.
func forgetOld(ended []entry) (stay []entry) {
	slices.SortFunc(ended, func(a, b entry) int { return b.record.noticed().Compare(a.record.noticed()) })
	for i, e := range ended {
		if i >= mostRemembered || time.Since(e.record.noticed()) > rememberedFor {
			_ = os.RemoveAll(e.dir) // Best effort: the next sweep tries again.
			continue
		}
		stay = append(stay, e)
	}
	return stay
}

// dead is the record of a keeper that does not live, and has not said how it ended.
func dead(e entry) Record {
	r := e.record
	if r.State == Ended && r.End != nil {
		return r
	}
	last := readNow(e.dir)
	r.State = Ended
	r.End = &End{At: time.Now(), Why: "ended when its keeper was killed", Dir: last.Dir, Running: last.Running}
	if r.Within != "" && isOver(r.Within) {
		r.End.Why = "ended with " + r.EndsWith() + ", in which it was made"
	}
	if said := readSaid(e.dir); said != "" {
		r.End.Why = "ended when its keeper failed: " + said
	}
	if st, err := os.Stat(filepath.Join(e.dir, nowFile)); err == nil {
		r.End.At = st.ModTime() // It was after that, maybe by days: see Record.Noticed.
	}
	return r
}

// Names returns those of which there may be jobs or terminals, whether a session has the name now or not; nil if there
// is no telling.
func (r *Registry) Names() []string {
	all, err := os.ReadDir(filepath.Join(r.dir, byName))
	if err != nil {
		return nil // There are none, or the next one tries again.
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name()
	}
	return names
}

// sweepNames forgets the jobs and the terminals of names that nobody remembers, but not while one of them runs.
func (r *Registry) sweepNames(kept []entry) {
	for _, name := range r.Names() {
		if slices.ContainsFunc(kept, func(e entry) bool { return e.record.Name == name }) || anyRuns(filepath.Join(r.StateDir(name), "jobs")) {
			continue
		}
		_ = os.RemoveAll(r.StateDir(name)) // Best effort, as above.
	}
}

// anyRuns reports whether a job runs, or there is no telling.
func anyRuns(dir string) bool {
	list, err := jobs.Open(dir, &jobs.Options{ReadOnly: true})
	if err != nil {
		return true
	}
	defer list.Close() // It was only read.
	n, err := list.Active(jobs.Filter{})
	return n > 0 || err != nil
}

// boots is what directories of boots are called.
var boots = lazyregexp.New(`^([0-9a-f]{8}|boot)$`)

// sweepBoots forgets what was kept before the machine was started.
func (r *Registry) sweepBoots() {
	all, err := os.ReadDir(filepath.Dir(r.dir))
	if err != nil {
		return // Best effort.
	}
	for _, one := range all {
		dir := filepath.Join(filepath.Dir(r.dir), one.Name())
		if one.IsDir() && dir != r.dir && boots().MatchString(one.Name()) {
			r.sweepBoot(dir)
		}
	}
}

// sweepBoot forgets those of another boot, but not of another machine that shares the directory: there
// locks are held too, as far as the file system carries them, and what is young is left alone.
func (r *Registry) sweepBoot(dir string) {
	st, err := os.Stat(dir)
	if err != nil || time.Since(st.ModTime()) < rememberedFor {
		return
	}
	list, err := (&Registry{dir: dir}).entries()
	if err != nil || slices.ContainsFunc(list, func(e entry) bool { return e.alive }) {
		return
	}
	_ = os.RemoveAll(dir) // Best effort: the next one tries again.
}

// boot names the machine since it was started.
func boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && len(id) >= 8 {
		return id[:8]
	}
	return "boot" // Locks say who lives.
}
