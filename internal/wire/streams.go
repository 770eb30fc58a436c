package wire

import (
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
)

// Of each stream of a command that runs, leastKept bytes are kept, and up to mostKept for who
// reads more slowly than the command prints, with leastKept of what they were sent: it may not
// have arrived. A reader whose connection breaks off is waited for so long, unless its request says how long (Away). Behind its end the Result has the output.
const (
	leastKept = 256 << 10
	mostKept  = 16 << 20
	waitedFor = 30 * time.Second

	// mostAway bounds the readers of a command that are waited for: the one that broke off first is given up for another.
	mostAway = 64
)

// streams keep what a command prints, for any number of readers. The command waits for none.
type streams struct {
	mu      sync.Mutex
	of      [2]tape // stdout, stderr
	readers map[*reader]struct{}
	news    chan struct{}   // closed when there are some
	res     *command.Result // once the command has ended
	away    time.Duration   // how long a reader is waited for that breaks off
	broken  []*reader       // those that are, as they broke off
	behind  *behind         // has these from the end of the command on, for as long as there are readers; it may be shared

	deserted func() // is called when those who read are gone for good, before the end; may be nil
}

// tape is the end of a stream, in blocks of at most mostChunk bytes. Blocks end between two runes, if the writes did. Bytes
// that are in a block are never changed, so readers have them without a copy.
type tape struct {
	from   int64 // the offset of the first byte
	size   int64 // the bytes of all blocks
	blocks [][]byte
}

func (t *tape) end() int64 { return t.from + t.size }

// write appends a copy of p.
func (t *tape) write(p []byte) {
	for len(p) > 0 {
		var b []byte
		if i := len(t.blocks) - 1; i >= 0 && len(t.blocks[i])+len(p) <= mostChunk {
			t.blocks[i], b = append(t.blocks[i], p...), p
		} else {
			b = append(b, piece(p)...)
			t.blocks = append(t.blocks, b)
		}
		t.size += int64(len(b))
		p = p[len(b):]
	}
}

// drop gives up the blocks that end at an offset or before it.
func (t *tape) drop(to int64) {
	for len(t.blocks) > 0 && t.from+int64(len(t.blocks[0])) <= to {
		n := int64(len(t.blocks[0]))
		t.from, t.size = t.from+n, t.size-n
		t.blocks[0], t.blocks = nil, t.blocks[1:]
	}
}

// at returns what one block has from an offset on, or nil if the tape does not have that.
func (t *tape) at(offset int64) []byte {
	start := t.end()
	for _, b := range slices.Backward(t.blocks) { // Most readers are near the end.
		if start -= int64(len(b)); start <= offset {
			return b[min(offset-start, int64(len(b))):]
		}
	}
	return nil
}

// reader is where somebody is who reads.
type reader struct {
	at   [2]int64 // what is to come next
	want [2]bool
	gone *time.Timer // ends the wait for one that broke off
}

func newStreams(away time.Duration, behind *behind) *streams {
	return &streams{away: away, behind: behind, readers: make(map[*reader]struct{}), news: make(chan struct{})}
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
	w.s.of[w.i].write(p)
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
	from := t.end() - leastKept
	for r := range s.readers {
		if r.want[i] {
			from = min(from, r.at[i]-leastKept)
		}
	}
	t.drop(max(from, t.end()-mostKept))
}

// end says what came of the command. Who still reads gets the rest.
func (s *streams) end(res command.Result) {
	s.mu.Lock()
	s.res = &res
	s.behind.add(s, s.kept())
	s.drop()
	s.told()
	s.mu.Unlock()
	s.behind.shed()
}

// kept is how many bytes the tapes have. The caller holds mu.
func (s *streams) kept() int64 { return s.of[0].size + s.of[1].size }

// drop gives up the tapes of a command that has ended, when nobody reads. The caller holds mu.
func (s *streams) drop() {
	if s.res != nil && len(s.readers) == 0 {
		s.clear()
	}
}

// abandon gives up the tapes of a command that has ended, unless somebody reads. A reader that comes back gets what the Result has.
func (s *streams) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.res != nil && len(s.readers) == len(s.broken) {
		s.clear()
	}
}

// clear gives up the tapes. The caller holds mu.
func (s *streams) clear() {
	s.behind.remove(s)
	s.of = [2]tape{}
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
	defer s.behind.shed() // Nobody may read any more just now.
	s.mu.Lock()
	if !atEnd {
		s.broken = append(s.broken, r)
		r.gone = time.AfterFunc(s.away, func() { s.leave(r, true) })
		if len(s.broken) <= mostAway {
			s.mu.Unlock()
			return
		}
		r = s.broken[0]
		r.gone.Stop()
	}
	if _, there := s.readers[r]; !there { // It was given up for another one just when its timer ended.
		s.mu.Unlock()
		return
	}
	s.broken = slices.DeleteFunc(s.broken, func(one *reader) bool { return one == r })
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
		f.data = t.at(at)
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
		f.data = t.at(t.from)
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

// piece is what one frame can have of b, without a rune that is cut in two.
func piece(b []byte) []byte {
	if len(b) > mostChunk {
		b = b[:mostChunk]
		if n := runes.Whole(b); n > 0 {
			b = b[:n]
		}
	}
	return b
}
