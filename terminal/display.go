package terminal

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// display is what a person would see of a ring. To emulate a terminal takes more than to
// print to it, and mostly nobody looks: so it is fed when somebody does, and before what it
// has not had leaves the ring, unless that would take too much. If it has missed something
// it begins anew where it knows how.
type display struct {
	out        *ring
	history    *history
	scrollback int
	first      *beginning // of a log; nil while the program runs
	began      time.Time

	mu       sync.Mutex
	emulator *screen.Emulator // nil until the first look
	fed      int64            // the offset up to which it has been
	ahead    time.Duration    // what feedAhead took
}

// beginning is where an emulator begins, and what it has to be told before.
type beginning struct {
	offset  int64
	restore []byte
}

func newDisplay(out *ring, history *history, scrollback int) *display {
	return &display{out: out, history: history, scrollback: scrollback, began: time.Now()}
}

// A screen that nobody looks at may take a part of the time that there was, one feedShare of
// it, and feedFirst besides: enough for megabytes. Programs for people need far less.
const feedShare = 20

var feedFirst = 20 * time.Millisecond // for tests under the race detector, where all is slower

// feedAhead is for the one that reads what the program prints: it feeds what was not fed,
// before it leaves the ring. It reports whether that was looked after: somebody may
// be feeding just now, and is not waited for.
func (d *display) feedAhead() bool {
	if !d.mu.TryLock() {
		return false
	}
	defer d.mu.Unlock()
	if began := time.Now(); d.ahead < feedFirst+began.Sub(d.began)/feedShare {
		d.catchUp()
		d.ahead += time.Since(began)
	}
	return true
}

// look returns what is to be seen now.
func (d *display) look() Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	return Snapshot{Screen: d.emulator.Screen(), Offset: d.fed}
}

// cursor returns where the cursor is now, and the size of the screen, without a copy of it.
func (d *display) cursor() (screen.Cursor, Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	size, _ := d.history.size(d.fed)
	return d.emulator.Cursor(), size
}

// catchUp feeds what was not fed. The caller holds mu.
func (d *display) catchUp() {
	if d.emulator == nil {
		d.begin()
	}
	_, end := d.out.bounds() // A program that prints faster is not run after.
	for {
		size, next := d.history.size(d.fed)
		d.emulator.Resize(size)
		at, data, _ := d.out.read(d.fed)
		if at > d.fed {
			d.begin()
			continue
		}
		if next >= 0 {
			data = data[:min(int64(len(data)), next-at)]
		}
		if len(data) == 0 {
			return
		}
		_, _ = d.emulator.Write(data) // It never fails.
		if d.fed += int64(len(data)); d.fed >= end {
			size, _ := d.history.size(d.fed)
			d.emulator.Resize(size)
			return
		}
	}
}

// begin begins anew.
func (d *display) begin() {
	at := d.resume()
	if d.emulator != nil {
		d.emulator.Close()
	}
	size, _ := d.history.size(at.offset)
	d.emulator = screen.New(size, &screen.Options{Scrollback: d.scrollback})
	_, _ = d.emulator.Write(at.restore) // As above.
	d.fed = at.offset
}

// resume is where an emulator can begin, as early as possible.
func (d *display) resume() beginning {
	if d.first != nil {
		return *d.first
	}
	if r, ok := d.out.resume(); ok {
		return beginning{r.offset, r.modes.Restore()}
	}
	start, _ := d.out.bounds()
	return beginning{offset: start} // In the middle of a long sequence.
}

// close frees the emulator. A later look makes another one.
func (d *display) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.emulator != nil {
		d.emulator.Close()
		d.emulator = nil
	}
}

// Snapshot is what a person would see of a terminal.
type Snapshot struct {
	*screen.Screen

	// Offset is up to where the output is in the picture: what comes from there on
	// changes it. ANSI paints it for who attaches from there.
	Offset int64
}

// snapshot is a Snapshot in JSON.
type snapshot struct {
	Offset int64          `json:"offset"`
	Screen *screen.Screen `json:"screen"`
}

// MarshalJSON has the screen under a name of its own.
func (s Snapshot) MarshalJSON() ([]byte, error) { return json.Marshal(snapshot{s.Offset, s.Screen}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Snapshot) UnmarshalJSON(b []byte) error {
	var read snapshot
	if err := json.Unmarshal(b, &read); err != nil {
		return err
	}
	if read.Screen == nil {
		return errors.New("terminal: a snapshot without a screen")
	}
	s.Offset, s.Screen = read.Offset, read.Screen
	return nil
}

// Screen returns what is on the screen now, or was at the end of the program.
func (t *Terminal) Screen() (Snapshot, error) {
	d, err := t.seen("screen")
	if err != nil {
		return Snapshot{}, err
	}
	return d.look(), nil
}

// Scrollback returns the lines that have left the screen at its top, the oldest first, as
// text, up to Options.Scrollback.
func (t *Terminal) Scrollback() ([]string, error) {
	d, err := t.seen("scrollback")
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	return d.emulator.Scrollback(), nil
}
