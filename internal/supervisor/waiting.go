package supervisor

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/tty"
)

// WaitingFile has what a job waits for on its terminal; there is none if it does not.
const WaitingFile = "waiting.json"

// Waiting is what is in the file.
type Waiting struct {
	tty.Waiting

	// Typed is how often something was typed to the job before: two questions of one program differ by it.
	Typed int `json:"typed"`

	// Start is the start time of the program: its PID may be another one's by now.
	Start uint64 `json:"start"`
}

// Alive reports whether the program runs.
func (w Waiting) Alive() bool {
	state := proc.State(proc.ID{PID: w.PID, Start: w.Start})
	return state != 0 && state != 'Z'
}

// ReadWaiting reads what the job in dir waits for. The error is fs.ErrNotExist if that is nothing.
func ReadWaiting(dir string) (w Waiting, err error) {
	return w, readJSON(filepath.Join(dir, WaitingFile), &w)
}

// firstLook is how long after the last output, or input, the kernel is asked who reads the terminal; then after
// twice as long, and so on, until lastLook. After that nobody wakes for a job that prints nothing and waits for
// nothing. One that waits is looked at each lastLook: it may go on without a word, as when its own time is over.
const (
	firstLook = time.Second
	lastLook  = 16 * time.Second
)

// waits looks for a program that waits for what is typed on the terminal of a job. A nil one does nothing.
type waits struct {
	dir  string
	beat *beat

	mu      sync.Mutex
	master  *os.File
	root    proc.ID     // what all on the terminal descends from
	timer   *time.Timer // nil before begin
	news    time.Time   // when something was printed or typed last
	next    time.Duration
	armed   bool // the timer runs
	typed   int
	written *Waiting // what is in the file; nil if there is none
	closed  bool
}

// begin begins to look, when the job has been started.
func (w *waits) begin(master *os.File, root proc.ID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.master, w.root, w.news, w.next, w.armed = master, root, time.Now(), firstLook, true
	w.timer = time.AfterFunc(firstLook, w.due)
}

// printed notes that the job has printed something.
func (w *waits) printed() { w.note(0) }

// wrote notes that something was typed.
func (w *waits) wrote() { w.note(1) }

func (w *waits) note(typed int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = time.Now()
	w.typed += typed
	w.forget()
	if w.timer != nil && !w.closed && (!w.armed || w.next > firstLook) { // Else it is due within a second.
		w.armed = true
		w.timer.Reset(firstLook)
	}
	w.next = firstLook
}

// forget removes the file. The caller holds mu.
func (w *waits) forget() {
	if w.written != nil {
		w.written = nil
		_ = os.Remove(filepath.Join(w.dir, WaitingFile)) // Whoever reads it sees that the job has ended, or printed more.
		w.beat.soon()
	}
}

// due looks if nothing was new for long enough, or waits for that.
func (w *waits) due() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if quiet := time.Since(w.news); quiet < w.next {
		w.timer.Reset(w.next - quiet)
		return
	}
	found, ok := tty.Reader(w.master, w.root)
	switch {
	case ok:
		w.write(found)
	case w.written != nil:
		w.forget()
		w.next = firstLook // It does something else now, and may soon wait again.
	}
	if w.armed = w.written != nil || w.next < lastLook; w.armed {
		w.timer.Reset(w.next)
		w.next = min(2*w.next, lastLook)
	}
}

// write writes the file, unless the same is there. The caller holds mu.
func (w *waits) write(found tty.Waiting) {
	found.Since = w.news.Round(0)
	now := Waiting{Waiting: found, Typed: w.typed}
	st, err := proc.Read(found.PID)
	if now.Start = st.Start; err != nil {
		w.forget() // It has just ended.
		return
	}
	if w.written != nil && *w.written == now {
		return
	}
	if statedir.WriteJSON(filepath.Join(w.dir, WaitingFile), now) != nil {
		w.forget() // There is something else in it.
		return
	}
	w.written = &now
	w.beat.soon()
}

// close ends it. It is safe to call twice.
func (w *waits) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.forget()
}
