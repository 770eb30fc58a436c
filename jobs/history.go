package jobs

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/limpet-sh/limpet/internal/private"
)

// The file of a job in which its history is, and the one in which what was before that
// is.
const (
	historyFile    = "events.jsonl"
	oldHistoryFile = "events.0.jsonl"
)

// historyMax bounds each of the two: a job may run for a year.
const historyMax = 64 << 10

// note appends to the history of a job, and tells of it.
func (r *Registry) note(j *job, event Event) {
	if event.Time.IsZero() {
		event.Time = r.opts.now()
	}
	j.mu.Lock()
	r.append(j, event)
	j.mu.Unlock()
	r.tellHistory(j, event)
}

// tellHistory tells of an event that is in the history. Who is told may ask about the job.
func (r *Registry) tellHistory(j *job, event Event) {
	if tell := r.opts.OnHistory; tell != nil {
		event.Job = &Job{ID: j.spec.ID, Command: j.spec.Command, Dir: j.spec.Dir, Session: j.spec.Session, Task: j.spec.Task}
		tell(event)
	}
}

// append appends to the history, under j.mu. What nobody can write down is not worth an
// error.
func (r *Registry) append(j *job, event Event) {
	event.Job = nil
	b, err := json.Marshal(event)
	if err != nil {
		panic("jobs: " + err.Error()) // Text and numbers.
	}
	select {
	case <-j.gone:
		return
	default:
	}
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | syscall.O_NONBLOCK | syscall.O_NOFOLLOW // It may be no file by now.
	f, err := private.OpenFile(j.path(historyFile), flags)
	if err != nil {
		r.opts.Logger.Warn("limpet: the history of a job could not be written", "job", j.spec.ID, "err", err)
		return
	}
	defer f.Close() // Each write says how it went.
	if st, err := f.Stat(); err == nil && st.Size() > historyMax {
		_ = os.Rename(j.path(historyFile), j.path(oldHistoryFile)) // What is open is appended to all the same.
	}
	_, _ = f.Write(append(b, '\n')) // As above.
}

// History returns what has happened to a job as far as its owners know, the oldest
// first: what of it was told, and what was done with it. Of a long one the beginning
// is left out. An end that no owner has seen yet is not in it, and what was found
// again after a crash may be in it twice. It does not wait.
func (r *Registry) History(id string) ([]Event, error) {
	const op = "history"
	j, err := r.find(op, id)
	if err != nil {
		return nil, err
	}
	events := []Event{}
	for _, name := range []string{oldHistoryFile, historyFile} {
		f, err := os.OpenFile(j.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &Error{Op: op, ID: id, Err: err}
		}
		lines := bufio.NewScanner(f)
		for lines.Buffer(nil, 2*historyMax); lines.Scan(); {
			var event Event
			if json.Unmarshal(lines.Bytes(), &event) == nil { // Else its writer was killed.
				events = append(events, event)
			}
		}
		_ = f.Close() // Read only.
	}
	return events, nil
}
