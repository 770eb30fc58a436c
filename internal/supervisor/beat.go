package supervisor

import (
	"os"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
)

// beatEvery is how often readers are told at most that there is something new. A
// job may print a line a microsecond; whoever watches its directory shall not be
// woken by each.
const beatEvery = 25 * time.Millisecond

// beat tells those who watch the job's directory that it is worth a look: at once
// after a silence, and soon if there was no silence.
type beat struct {
	mu    sync.Mutex
	f     *os.File
	last  time.Time
	timer *time.Timer // runs if there is something that was not told yet
}

func newBeat(path string) (*beat, error) {
	f, err := private.OpenFile(path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &beat{f: f}, nil
}

// soon tells it now, or when the time has come.
func (b *beat) soon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		return
	}
	if wait := beatEvery - time.Since(b.last); wait > 0 {
		b.timer = time.AfterFunc(wait, b.now)
		return
	}
	b.tell()
}

func (b *beat) now() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.tell()
}

// tell raises the event. The caller holds mu.
func (b *beat) tell() {
	b.last = time.Now()
	_, _ = b.f.WriteAt([]byte{'.'}, 0) // If there is no room even for that, readers look now and then.
}
