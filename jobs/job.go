package jobs

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/supervisor"
)

// job is what this program knows of one job. What has happened to it is in its
// files.
type job struct {
	spec stored
	dir  string

	mu         sync.Mutex
	handle     *supervisor.Handle // if this program has started it
	foreground Foreground         // if it was one

	memo    memo
	scanned scanner             // how far its output was matched
	untold  []Match             // that are in the queue, the oldest first; see missed
	missed  bool                // the first of untold was dropped from the queue, which nobody was told yet
	process *supervisor.Process // once it is recorded
	over    bool                // it does not run any more
	stopped string              // why it is being stopped, if its supervisor cannot record that
	ended   *files              // when it has finished for good: its files do not change any more
	window  window
	ready   chan struct{} // closed when its start is through
	gone    chan struct{} // closed when it was forgotten

	queued bool // its completion is in the queue; the queue's mutex guards it
}

func (r *Registry) newJob(spec stored) *job {
	return &job{
		spec: spec, dir: filepath.Join(r.dir, spec.ID), gone: make(chan struct{}), ready: make(chan struct{}),
		scanned: scanner{line: 1}, window: window{limits: r.opts.Watch},
	}
}

// What the owner has in the directory of a job.
const (
	specFile = "spec.json"
	memoFile = "owner.json"
)

func readSpec(dir string) (s stored, err error) {
	const most = 64 << 20 // A script is in it.
	if err := statedir.ReadJSON(filepath.Join(dir, specFile), &s, most); err != nil {
		return s, err
	}
	if s.ID != filepath.Base(dir) {
		return s, fmt.Errorf("%s is that of %q", specFile, s.ID)
	}
	return s, nil
}

func writeSpec(dir string, s stored) error {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return statedir.Write(filepath.Join(dir, specFile), append(b, '\n'))
}

// memo is what the owner remembers of a job, also after a crash.
type memo struct {
	Polled  int64 `json:"polled"`  // up to where Poll has told the output
	Watched int64 `json:"watched"` // up to where its matches were told, or there were none
	Line    int64 `json:"line"`    // the number of the line there, from 1
	Told    bool  `json:"told"`    // the end was told, or seen
	Ended   bool  `json:"ended"`   // the end is in the history
	Seen    int64 `json:"seen_ns"` // when an owner saw that it had ended
	Off     bool  `json:"off"`     // matches are told no more, and the end is
}

// memoSize is that of the file. It is written in place, at once: whoever is killed
// meanwhile has written it or not.
const memoSize = 256

func (j *job) readMemo() {
	if err := statedir.ReadJSON(filepath.Join(j.dir, memoFile), &j.memo, 2*memoSize); err == nil { // Without it, nothing was told yet.
		j.scanned = scanner{at: j.memo.Watched, line: max(j.memo.Line, 1)}
	}
}

// remember changes the memo and writes it down, if that changes it.
func (r *Registry) remember(j *job, change func(*memo)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.memo
	if change(&j.memo); j.memo == before || r.opts.ReadOnly {
		return
	}
	b, err := json.Marshal(j.memo)
	if err != nil {
		panic("jobs: " + err.Error()) // Numbers and booleans.
	}
	b = append(b, bytes.Repeat([]byte{' '}, max(memoSize-len(b)-1, 0))...)
	f, err := private.OpenFile(filepath.Join(j.dir, memoFile), os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOFOLLOW) // It waits for nobody: it may be no file by now.
	if err == nil {
		_, err = f.WriteAt(append(b, '\n'), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.opts.Logger.Warn("limpet: what was told of a job could not be written down, and may be told again after a crash", "job", j.spec.ID, "err", err)
	}
}

func (j *job) remembered() memo {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.memo
}

// read reads the files of the job.
func (j *job) read() (files, error) {
	j.mu.Lock()
	ended, process := j.ended, j.process
	j.mu.Unlock()
	if ended != nil {
		return *ended, nil
	}
	f, err := readFiles(j.dir, j.spec, process)
	if err != nil {
		return f, err
	}
	if f.exit == nil {
		// A directory that was removed reads as one in which nothing has happened.
		if _, err := os.Stat(j.path(specFile)); err != nil {
			return f, err
		}
	}
	if f.started && process == nil {
		j.mu.Lock()
		j.process = &f.process
		j.mu.Unlock()
	}
	if f.exit != nil && !f.present.Supervisor && f.present.Elsewhere == "" && !f.killed {
		j.mu.Lock()
		j.ended = &f
		j.mu.Unlock()
	}
	return f, nil
}

// setOver notes that the job does not run any more. The end is in the history when it returns, also if somebody else has noted it.
func (r *Registry) setOver(j *job, exit *Exit) {
	end := Event{Kind: Ended, Time: exit.Ended, Why: exit.String()}
	if end.Time.IsZero() {
		end.Time = r.opts.now()
	}
	j.mu.Lock()
	before := j.over || j.memo.Ended
	j.over = true
	if !before {
		r.append(j, end)
	}
	j.mu.Unlock()
	if before {
		return
	}
	r.tellHistory(j, end)
	r.remember(j, func(m *memo) { m.Ended, m.Seen = true, time.Now().UnixNano() })
}

// running reports whether the job may still run.
func (j *job) running() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.over
}

// isReady reports whether the start of the job is through.
func (j *job) isReady() bool {
	select {
	case <-j.ready:
		return true
	default:
		return false
	}
}

// settlePatience is how long a supervisor may take to record an end.
const settlePatience = 500 * time.Millisecond

// settled is read, but that it waits a moment where the end is just being recorded.
func (j *job) settled() (files, error) {
	const pause = time.Millisecond
	for began := time.Now(); ; time.Sleep(pause) {
		f, err := j.read()
		if state, _ := f.state(); err != nil || state != Ending || time.Since(began) > settlePatience {
			return f, err
		}
	}
}

// matchTold notes that a match was taken: it is not found again after a crash.
func (r *Registry) matchTold(j *job, offset int64) {
	j.mu.Lock()
	j.untold = slices.DeleteFunc(j.untold, func(m Match) bool { return m.Offset == offset })
	j.mu.Unlock()
	r.rememberScan(j)
}

// matchDropped notes that a match was dropped from the queue. Until somebody is told that events were missed, the first that was dropped stays in
// untold: after a crash it is found again, and what is behind it.
func (j *job) matchDropped(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.missed {
		j.untold = slices.DeleteFunc(j.untold, func(m Match) bool { return m.Offset == offset })
	}
	j.missed = true
}

// missedTold notes that somebody was told that events were missed: matches among them are not found again.
func (r *Registry) missedTold() {
	for _, j := range r.all() {
		j.mu.Lock()
		missed := j.missed
		if missed {
			j.untold, j.missed = slices.Delete(j.untold, 0, 1), false
		}
		j.mu.Unlock()
		if missed {
			r.rememberScan(j)
		}
	}
}

// rememberScan writes down how far the output was matched, and told.
func (r *Registry) rememberScan(j *job) {
	r.remember(j, func(m *memo) {
		m.Watched, m.Line = j.scanned.at, j.scanned.line
		if len(j.untold) > 0 {
			m.Watched, m.Line = j.untold[0].Offset, j.untold[0].Number
		}
	})
}

// release lets go of what this program has of the job. A job that lives with it was
// ended before.
func (j *job) release() {
	if h := j.supervised(); h != nil {
		h.Release()
	}
}

// supervise notes the supervisor that this program has started. The job may have ended,
// and been forgotten, before its start returns.
func (j *job) supervise(h *supervisor.Handle, err error) error {
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.handle = h
	j.mu.Unlock()
	select {
	case <-j.gone:
		h.Release()
	default:
	}
	return nil
}

func (j *job) supervised() *supervisor.Handle {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.handle
}

func (j *job) adopted() Foreground {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.foreground
}

// unreadable says why the job could not be read: it was forgotten, or else.
func (j *job) unreadable(err error) error {
	select {
	case <-j.gone:
	default:
		if !errors.Is(err, fs.ErrNotExist) { // By its owner, if that is another program.
			return err
		}
	}
	return fmt.Errorf("%w any more: it was forgotten", ErrNotFound)
}

// reap waits for the supervisor of a job that has ended: it is about to end, too.
func (j *job) reap() {
	handle := j.supervised()
	if handle == nil {
		return
	}
	f, err := j.read()
	if err != nil {
		return
	}
	if state, _ := f.state(); !state.Finished() || f.exit != nil && f.exit.Left {
		return // It stays with the job, or with what that has left.
	}
	select {
	case <-handle.Done():
	case <-time.After(recordPatience):
	}
}

// newID makes a name that says what runs, for people who read lists: the program,
// and nothing that may be a secret.
func newID(script string) string {
	const most = 20
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		case 'A' <= c && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, programOf(script))
	if len(name) > most {
		name = name[:most]
	}
	if name = strings.Trim(name, "-"); name != "" {
		name += "-"
	}
	const letters = 8 // 40 random bits: a directory of that name is not made twice in any case.
	return jobPrefix + name + strings.ToLower(rand.Text()[:letters])
}

// programOf is the program that a script is about, if that is easy to see: its first
// one that does more than to prepare.
func programOf(script string) string {
	for part := range strings.FieldsFuncSeq(script, func(c rune) bool { return strings.ContainsRune(";&|\n()", c) }) {
		words := strings.Fields(part)
		for len(words) > 0 && slices.Contains([]string{"sudo", "exec", "env", "nohup", "time"}, words[0]) {
			words = words[1:]
		}
		if len(words) == 0 || slices.Contains([]string{"cd", "export", "set", "source", "."}, words[0]) {
			continue
		}
		if strings.ContainsAny(words[0], "='\"$`{}<>\\#") {
			return ""
		}
		return filepath.Base(words[0])
	}
	return ""
}

// validID reports whether a name may be that of a job: it becomes part of a path.
func validID(id string) bool {
	rest, ok := strings.CutPrefix(id, jobPrefix)
	return ok && rest != "" && len(id) < 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
