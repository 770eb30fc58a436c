package wire

import (
	"slices"
	"sync"
)

// mostBehind bounds the output that is kept of commands that have ended, for readers that broke off.
const mostBehind = 64 << 20

// behind has the streams of the commands that have ended and whose output somebody may still read. Its mutex is taken behind
// that of streams. A book abandons the streams of a command that it forgets, so that there are no more of them than commands that it keeps; but for those that
// somebody reads just then, who are as many as there are connections at most, and those that end in that instant. These stay for as long as a reader is waited for.
type behind struct {
	mu   sync.Mutex
	size int64 // bytes of all
	of   []left
}

// left are streams, and the bytes that they had when they were added.
type left struct {
	streams *streams
	size    int64
}

// add takes streams in, with the bytes that they keep.
func (b *behind) add(s *streams, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of = append(b.of, left{s, size})
	b.size += size
}

// remove takes them out, if they are in it.
func (b *behind) remove(s *streams) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.of, func(l left) bool { return l.streams == s }); i >= 0 {
		b.size -= b.of[i].size
		b.of = slices.Delete(b.of, i, i+1)
	}
}

// oldest returns the streams as their commands ended, if they keep too much.
func (b *behind) oldest() []left {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size <= mostBehind {
		return nil
	}
	return slices.Clone(b.of)
}

// shed gives up what nobody reads just now, from the oldest on, while all of it is too much.
func (b *behind) shed() {
	for _, l := range b.oldest() {
		l.streams.abandon()
		if !b.tooMuch() {
			return
		}
	}
}

func (b *behind) tooMuch() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size > mostBehind
}
