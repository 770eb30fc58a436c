package hosts

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/transfer"
)

// leftOut is an entry that was not copied.
type leftOut struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// copied is the object of limpet hosts copy --json. Its names are a promise: they only ever grow.
type copied struct {
	Files        int64     `json:"files"`
	Same         int64     `json:"same"`
	Dirs         int64     `json:"dirs"`
	Links        int64     `json:"links"`
	Bytes        int64     `json:"bytes"`
	Skipped      []leftOut `json:"skipped"`
	SkippedTotal int64     `json:"skipped_total"`
	Errors       []leftOut `json:"errors"`
	ErrorsTotal  int64     `json:"errors_total"`
	Error        *string   `json:"error"` // why the copy ended before its time
}

// What is told of entries that are not copied is bounded: another machine may name any number of them.
const (
	mostListed = 100
	mostTold   = 1000
)

// report tells a person, and remembers for --json, what is not copied, and shows how far a copy is.
type report struct {
	p     sessions.Program
	began time.Time

	mu              sync.Mutex
	told            int
	skipped, failed []leftOut
	line            bool // the progress is shown, on a line without an end

	stop func()
}

func newReport(p sessions.Program) *report {
	return &report{p: p, began: time.Now(), skipped: []leftOut{}, failed: []leftOut{}, stop: func() {}}
}

// note tells of an entry that is not copied.
func (r *report) note(path, why string, skipped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &r.failed
	if skipped {
		list = &r.skipped
	}
	if len(*list) < mostListed {
		*list = append(*list, leftOut{path, why})
	}
	r.told++
	r.clear()
	switch {
	case r.told < mostTold && skipped:
		r.p.Note("%q: %s", path, why)
	case r.told < mostTold:
		r.p.Note("%s", why)
	case r.told == mostTold:
		r.p.Note("there is more that is not copied, which is not told one by one")
	}
}

// show shows how far the copy is, until end.
func (r *report) show(c *transfer.Copier) {
	const often = 200 * time.Millisecond
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				r.paint(c.Result())
			}
		}
	}()
	r.stop = func() {
		close(over)
		<-done
	}
}

// paint shows one line, in place of the one before.
func (r *report) paint(now transfer.Result) {
	const mega = 1e6
	text := fmt.Sprintf("%d files, %.1f MB, %.1f MB/s", now.Files, float64(now.Bytes)/mega, float64(now.Bytes)/mega/time.Since(r.began).Seconds())
	if now.Size > 0 {
		text = fmt.Sprintf("%.0f%% of %.1f MB, %.1f MB/s", 100*float64(now.Bytes)/float64(now.Size), float64(now.Size)/mega, float64(now.Bytes)/mega/time.Since(r.began).Seconds())
	}
	const usual = 80
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width <= 0 {
		width = usual
	}
	shown := []rune(noun.OneLine(text + "  " + now.Now))
	shown = shown[:min(len(shown), max(width-1, 0))]
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(os.Stderr, "\r%s\x1b[K", string(shown))
	r.line = true
}

// clear takes the progress away. The caller holds mu.
func (r *report) clear() {
	if r.line {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
		r.line = false
	}
}

// end shows no more.
func (r *report) end() {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
}

// row is what is printed with --json.
func (r *report) row(now transfer.Result, err error) copied {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := copied{
		Files: now.Files, Same: now.Same, Dirs: now.Dirs, Links: now.Links, Bytes: now.Bytes,
		Skipped: r.skipped, SkippedTotal: now.Skipped, Errors: r.failed, ErrorsTotal: now.Failed,
	}
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "transfer: ")
		c.Error = &why
	}
	return c
}
