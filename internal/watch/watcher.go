// Package watch tells sessions and jobs that something was written to a directory of theirs: by
// inotify, through one instance for the whole process. Where there are no events it says so, and
// its user polls.
package watch

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells sessions that something was written to their status
// directories. One serves the whole process: inotify allows a user 128
// instances (inotify(7), max_user_instances), which 500 sessions with one each
// would exceed. It holds an instance and a goroutine only while somebody
// watches. The zero value is ready for use, by any number of goroutines.
type Watcher struct {
	mu      sync.Mutex
	notify  *fsnotify.Watcher
	done    chan struct{}       // closed when the goroutine of notify has ended
	watches map[string][]*Watch // by directory
}

// Shared is the watcher of this process.
var Shared Watcher

// Watch is a subscription to one directory, which may have others. Close it.
type Watch struct {
	// C has a token when something happened since the last receive. A wake-up
	// promises nothing: read the record.
	C chan struct{}

	// Err says why events are not to be had and the directory must be polled;
	// nil if they are.
	Err error

	dir string
	w   *Watcher
}

// Watch subscribes to a directory. It does not fail: where inotify has no
// instance or no watch left, or the file system raises no events, the Watch
// says so and the caller polls.
func (w *Watcher) Watch(dir string) *Watch {
	watch := &Watch{C: make(chan struct{}, 1), dir: filepath.Clean(dir), w: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	watch.Err = w.add(watch)
	return watch
}

func (w *Watcher) add(watch *Watch) error {
	if w.notify == nil {
		// The buffer keeps a burst of sessions from stalling the reader.
		n, err := fsnotify.NewBufferedWatcher(64)
		if err != nil {
			return fmt.Errorf("ipc: no file events: %w", worded(err))
		}
		w.notify, w.done, w.watches = n, make(chan struct{}), make(map[string][]*Watch)
		go w.route(n, w.done)
	}
	if err := w.notify.Add(watch.dir); err != nil {
		w.closeIfIdle()
		return fmt.Errorf("ipc: no file events for %q: %w", watch.dir, worded(err))
	}
	w.watches[watch.dir] = append(w.watches[watch.dir], watch)
	return nil
}

// route sends each event to those who watch the directory that it is about. After an
// overflow, or an error that may hide events, everybody looks.
func (w *Watcher) route(n *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	for {
		select {
		case event, ok := <-n.Events:
			if !ok {
				return
			}
			w.mu.Lock()
			watches := w.watches[filepath.Dir(event.Name)]
			if watches == nil {
				watches = w.watches[event.Name] // The directory itself went away.
			}
			wake(watches)
			w.mu.Unlock()
		case err, ok := <-n.Errors:
			if !ok {
				return
			}
			_ = err // Whatever it was, looking at the records is the answer.
			w.mu.Lock()
			for _, watches := range w.watches {
				wake(watches)
			}
			w.mu.Unlock()
		}
	}
}

func wake(watches []*Watch) {
	for _, watch := range watches {
		select {
		case watch.C <- struct{}{}:
		default: // A token is there already.
		}
	}
}

// Close ends the subscription. With the last one the inotify instance and its
// goroutine go too. It is safe to call twice.
func (watch *Watch) Close() {
	w := watch.w
	w.mu.Lock()
	others := w.watches[watch.dir]
	if i := slices.Index(others, watch); i >= 0 {
		if others = slices.Delete(others, i, i+1); len(others) > 0 {
			w.watches[watch.dir] = others
		} else {
			delete(w.watches, watch.dir)
			// The directory may be gone already, and its watch with it.
			_ = w.notify.Remove(watch.dir)
		}
	}
	done := w.closeIfIdle()
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

// closeIfIdle closes the instance when nobody watches. The caller holds mu; the
// returned channel is closed when the goroutine has ended.
func (w *Watcher) closeIfIdle() <-chan struct{} {
	if w.notify == nil || len(w.watches) > 0 {
		return nil
	}
	_ = w.notify.Close() // Always nil on Linux; there is nothing left to lose.
	done := w.done
	w.notify, w.done = nil, nil
	return done
}

// PollInterval is how often a session without file events looks at its record
// if it was not told otherwise.
const PollInterval = time.Millisecond
