package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/statedir"
)

// replay is what it takes, besides the log, to see again what was on the screen, and when.
type replay struct {
	Offset  int64    `json:"offset"`            // of the first byte of the log
	Restore []byte   `json:"restore,omitempty"` // what a terminal has to be told before it gets the log from From on
	From    int64    `json:"from"`
	History timeline `json:"history"`
}

// load reads what a program has printed that is not in memory any more. Whatever became of
// the replay, the log can be read: what makes no sense is left out, and said to the Logger.
func (r *Registry) load(info Info) (*display, error) {
	data, skipped, err := statedir.Tail(r.path(info.ID, logExt), logMax)
	var (
		again replay
		wrong []string
	)
	switch {
	case errors.Is(err, fs.ErrNotExist) && info.Bytes == 0:
		// It never ran, or was lost: nothing was written.
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("what it has printed is not there any more: %w", ErrNotFound)
	case err != nil:
		return nil, err
	default:
		if err := r.readJSON(info.ID, replayExt, &again); err != nil {
			wrong = append(wrong, err.Error())
			again = replay{Offset: info.offsetOf(skipped + int64(len(data)))}
			again.From = again.Offset
		}
	}
	wrong = append(wrong, again.mend(info, int64(len(data)), skipped)...)
	if len(wrong) > 0 {
		r.opts.Logger.Warn("limpet: what is known of the output of a terminal is damaged, and left out in part", "id", info.ID, "why", strings.Join(wrong, "; "))
	}
	d := newDisplay(ringOf(again.Offset, data), &history{timeline: again.History}, r.opts.Scrollback)
	d.first = &beginning{offset: again.From, restore: again.Restore}
	return d, nil
}

// What a replay can have: offsets that can be counted on from, and no more to tell a terminal
// than its modes take.
const (
	farthest    = 1 << 62
	mostRestore = 1 << 10
	clockOff    = 24 * time.Hour // Clocks are set, but not by more than that.
)

// offsetOf is where a log of so many bytes begins, as far as the record knows.
func (i Info) offsetOf(log int64) int64 { return min(max(i.Bytes-log, 0), farthest-log) }

// mend makes it fit to the last size bytes of a log, of which others were skipped before them.
// It returns what was wrong.
func (p *replay) mend(info Info, size, skipped int64) (wrong []string) {
	if p.Offset < 0 || p.Offset > farthest-skipped-size {
		wrong = append(wrong, fmt.Sprintf("the log cannot begin at %d", p.Offset))
		p.Offset = info.offsetOf(skipped + size)
	}
	p.Offset += skipped
	end := p.Offset + size
	if skipped > 0 {
		wrong = append(wrong, fmt.Sprintf("the log has %d bytes more than are read", skipped))
	}
	if p.From < p.Offset || p.From > end || len(p.Restore) > mostRestore {
		if skipped == 0 {
			wrong = append(wrong, fmt.Sprintf("the screen cannot begin at %d, with %d bytes before it", p.From, len(p.Restore)))
		}
		p.From, p.Restore = p.Offset, nil
	}
	h := &p.History
	sizes, times := len(h.Sizes), len(h.Times)
	h.Sizes = mended(h.Sizes, end, mostSizes, sized.offset)
	h.Times = mended(h.Times, end, mostTimes, timed.offset)
	early, late := info.Created.Add(-clockOff), time.Now().Add(clockOff)
	sane := func(at time.Time) bool { return at.After(early) && at.Before(late) }
	h.Times = slices.DeleteFunc(h.Times, func(t timed) bool { return !sane(t.At) })
	if n := sizes - len(h.Sizes); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d sizes make no sense", n, sizes))
	}
	if n := times - len(h.Times); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d times make no sense", n, times))
	}
	if len(h.Sizes) == 0 {
		h.Sizes = []sized{{At: info.Created, Size: info.Size}}
	}
	for i := range h.Sizes {
		s := &h.Sizes[i]
		s.Size = s.Size.Clamp() // A start may have failed for it.
		if !sane(s.At) {
			s.At = time.Time{} // It is not known.
		}
	}
	return wrong
}

// mended returns the entries that are in their order and in the log, the last ones if there
// are too many.
func mended[T any](list []T, end int64, most int, of func(T) int64) []T {
	kept, last := list[:0], int64(0)
	for _, e := range list {
		if at := of(e); at >= last && at <= end {
			kept, last = append(kept, e), at
		}
	}
	return kept[max(len(kept)-most, 0):]
}
