package wire

import (
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
)

// Of each stream of a command that runs, leastKept bytes are kept, and up to mostKept for who
// reads more slowly than the command prints, with leastKept of what they were sent: it may not
// have arrived. Who breaks off is waited for so long. Behind its end the Result has the output.
const (
	leastKept = 256 << 10
	mostKept  = 16 << 20
	waitedFor = 30 * time.Second
)

// streams keep what a command prints, for any number of readers. The command waits for none.
type streams struct {
	mu      sync.Mutex
	of      [2]tape // stdout, stderr
	readers map[*reader]struct{}
	news    chan struct{}   // closed when there are some
	res     *command.Result // once the command has ended

	deserted func() // is called when those who read are gone for good, before the end; may be nil
}

// tape is the end of a stream.
type tape struct {
	from int64 // the offset of the first byte
	b    []byte
}

func (t *tape) end() int64 { return t.from + int64(len(t.b)) }

// reader is where somebody is who reads.
type reader struct {
	at   [2]int64 // what is to come next
	want [2]bool
}

func newStreams() *streams {
	return &streams{readers: make(map[*reader]struct{}), news: make(chan struct{})}
}

// writer is that of a stream: 0 is stdout, 1 stderr.
type writer struct {
	s *streams
	i int
}

// Write never blocks, and never fails.
func (w writer) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.of[w.i].b = append(w.s.of[w.i].b, p...)
	w.s.trim(w.i)
	w.s.told()
	return len(p), nil
}

// told wakes those who wait for news. The caller holds mu.
func (s *streams) told() {
	close(s.news)
	s.news = make(chan struct{})
}

// trim gives up what nobody needs, or is too much. The caller holds mu.
func (s *streams) trim(i int) {
	t := &s.of[i]
	if len(t.b) < 2*leastKept {
		return
	}
	from := t.end() - leastKept
	for r := range s.readers {
		if r.want[i] {
			from = min(from, r.at[i]-leastKept)
		}
	}
	from = max(from, t.end()-mostKept)
	if from-t.from < max(leastKept, int64(len(t.b)/4)) {
		return // It would be a move of much for little.
	}
	t.b = append([]byte(nil), t.b[from-t.from:]...)
	t.from = from
}

// end says what came of the command. Who still reads gets the rest.
func (s *streams) end(res command.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.res = &res
	s.drop()
	s.told()
}

// drop gives up the tapes of a command that has ended, when nobody reads. The caller holds mu.
func (s *streams) drop() {
	if s.res != nil && len(s.readers) == 0 {
		s.of = [2]tape{}
	}
}

// join begins to read, from an offset of each stream; a negative one means that it is not wanted.
// Call leave.
func (s *streams) join(out, err int64) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reader{at: [2]int64{out, err}, want: [2]bool{out >= 0, err >= 0}}
	s.readers[r] = struct{}{}
	return r
}

// leave ends that. A reader that has not got to the end may come back.
func (s *streams) leave(r *reader, atEnd bool) {
	if !atEnd {
		time.AfterFunc(waitedFor, func() { s.leave(r, true) })
		return
	}
	s.mu.Lock()
	delete(s.readers, r)
	s.drop()
	gone := len(s.readers) == 0 && s.res == nil && s.deserted != nil
	s.mu.Unlock()
	if gone {
		s.deserted()
	}
}

// next returns what is new for a reader, whether that is all that will ever be, and a channel that
// is closed when there is more.
func (s *streams) next(r *reader) (frames []frame, ended bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.of {
		if !r.want[i] {
			continue
		}
		f := s.read(i, r.at[i])
		if len(f.data) == 0 && f.missed == 0 {
			continue
		}
		r.at[i] = f.offset + int64(len(f.data))
		frames = append(frames, f)
	}
	return frames, s.res != nil && len(frames) == 0, s.news
}

// read reads a piece of a stream: from its tape, or from the result. The caller holds mu.
func (s *streams) read(i int, at int64) frame {
	f := frame{stream: i + 1, offset: at}
	t := &s.of[i]
	if at >= t.from && at < t.end() {
		f.data = piece(t.b[at-t.from:])
		return f
	}
	if s.res != nil {
		o := s.res.Stdout
		if i == 1 {
			o = s.res.Stderr
		}
		return kept(f, o)
	}
	if at < t.from { // It came too fast.
		f.offset, f.missed = t.from, t.from-at
		f.data = piece(t.b)
	}
	return f
}

// kept reads from what is kept of a stream that has ended.
func kept(f frame, o command.Output) frame {
	if f.offset >= o.Total {
		return f
	}
	from, to := o.Kept(f.offset)
	b := make([]byte, min(to-from, mostChunk))
	n, err := o.ReadAt(b, from)
	if n == 0 && err != nil && from < to && o.Path != "" {
		o.Path = "" // The file went just now: what is in memory counts.
		return kept(f, o)
	}
	f.missed, f.offset, f.data = from-f.offset, from, b[:n]
	if from+int64(n) < o.Total {
		f.data = piece(f.data)
	}
	return f
}

// piece is a copy of what one frame can have, without a rune that is cut in two.
func piece(b []byte) []byte {
	if len(b) > mostChunk {
		b = b[:mostChunk]
		if n := runes.Whole(b); n > 0 {
			b = b[:n]
		}
	}
	return append([]byte(nil), b...)
}
