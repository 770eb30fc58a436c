package terminal

import (
	"slices"
	"sync"
	"time"
)

// history is when things were printed, and at which size of the screen.
type history struct {
	mu sync.Mutex
	timeline
}

// timeline is the data of a history: each entry is about the output from its offset on.
type timeline struct {
	Sizes []sized `json:"sizes"` // never empty
	Times []timed `json:"times"`
}

type sized struct {
	Offset int64     `json:"offset"`
	At     time.Time `json:"at"`
	Size   Size      `json:"size"`
}

type timed struct {
	Offset int64     `json:"offset"`
	At     time.Time `json:"at"`
}

// The bounds of a history. When one is reached, every second entry is dropped of times:
// they become coarser. Of sizes, the oldest ones go.
const (
	mostTimes = 8 << 10
	mostSizes = 1 << 10
	together  = 5 * time.Millisecond // what comes within it counts as one
)

func newHistory(at time.Time, size Size) *history {
	return &history{timeline: timeline{Sizes: []sized{{At: at, Size: size}}}}
}

// printed notes when the output from the offset on has come.
func (h *history) printed(offset int64, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.Times); n > 0 && at.Sub(h.Times[n-1].At) < together {
		return
	}
	if len(h.Times) == mostTimes {
		kept := 0
		for i := 0; i < mostTimes; i += 2 {
			h.Times[kept] = h.Times[i]
			kept++
		}
		h.Times = h.Times[:kept]
	}
	h.Times = append(h.Times, timed{offset, at})
}

// resized notes that what comes from the offset on is for another size.
func (h *history) resized(offset int64, at time.Time, size Size) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.Sizes); n > 1 && h.Sizes[n-1].Offset == offset { // Nothing was printed for that one.
		h.Sizes = h.Sizes[:n-1]
	} else if n == mostSizes {
		h.Sizes = slices.Delete(h.Sizes, 0, 1)
	}
	h.Sizes = append(h.Sizes, sized{offset, at, size})
}

// since returns a copy of what is about the output from the offset on.
func (h *history) since(offset int64) timeline {
	h.mu.Lock()
	defer h.mu.Unlock()
	return timeline{Sizes: slices.Clone(from(h.Sizes, offset, sized.offset)), Times: slices.Clone(from(h.Times, offset, timed.offset))}
}

// size returns the size at the offset, and where the next one begins; -1 if there is none.
func (h *history) size(offset int64) (Size, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := from(h.Sizes, offset, sized.offset)
	if len(list) > 1 {
		return list[0].Size, list[1].Offset
	}
	return list[0].Size, -1
}

// sizedAt returns the size at the offset, and since when.
func (h *history) sizedAt(offset int64) sized {
	h.mu.Lock()
	defer h.mu.Unlock()
	return from(h.Sizes, offset, sized.offset)[0]
}

// at returns when the output at the offset has come, and where what came later begins; -1 if
// nothing did. The time is zero if nothing is known.
func (h *history) at(offset int64) (time.Time, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch list := from(h.Times, offset, timed.offset); len(list) {
	case 0:
		return time.Time{}, -1
	case 1:
		return list[0].At, -1
	default:
		return list[0].At, list[1].Offset
	}
}

func (s sized) offset() int64 { return s.Offset }
func (t timed) offset() int64 { return t.Offset }

// from returns the entry that the offset falls into, and those behind it.
func from[T any](list []T, offset int64, of func(T) int64) []T {
	i, found := slices.BinarySearchFunc(list, offset, func(e T, offset int64) int {
		switch at := of(e); {
		case at < offset:
			return -1
		case at > offset:
			return 1
		}
		return 0
	})
	if !found && i > 0 {
		i--
	}
	// Of several at one offset the last counts.
	for i+1 < len(list) && of(list[i+1]) == of(list[i]) && of(list[i]) <= offset {
		i++
	}
	return list[i:]
}
