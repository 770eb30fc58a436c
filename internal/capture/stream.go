package capture

import (
	"fmt"
	"io"
	"sync"

	"github.com/limpet-sh/limpet/internal/runes"
)

// stream copies a stream to a Writer while the command writes it.
//
// The command never waits for the Writer. A Writer that falls behind by more
// than maxLag loses what is between, and is told so by a line in the stream.
type stream struct {
	c *capture
	w io.Writer

	mu     sync.Mutex
	offset int64 // up to here it was read
	skipTo int64 // up to here it may be gone
	err    error // of the Writer; nothing is written after it
}

// maxLag bounds what a slow Writer may keep on disk.
const maxLag = 64 << 20

// needs returns the offset below which the stream needs nothing any more.
func (s *stream) needs(size int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return size
	}
	if size-s.offset > maxLag {
		s.skipTo = size - s.c.keep
	}
	return max(s.offset, s.skipTo)
}

// copy writes what came since the last call. Last says that nothing follows:
// without it an incomplete UTF-8 sequence waits for its rest.
func (s *stream) copy(last bool) error {
	buf := make([]byte, 64<<10)
	for {
		n, lost, err := s.read(buf, last)
		if err != nil {
			return err
		}
		if lost > 0 {
			_, err = fmt.Fprintf(s.w, "\n[limpet: %d bytes omitted: the reader is too slow]\n", lost)
		}
		if err == nil && n > 0 {
			var wrote int
			if wrote, err = s.w.Write(buf[:n]); err == nil && wrote < n {
				err = io.ErrShortWrite // As io.Copy does: the rest would be lost without a word.
			}
		}
		if err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return err
		}
		if n == 0 && lost == 0 {
			return nil
		}
	}
}

func (s *stream) read(buf []byte, last bool) (n int, lost int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, 0, s.err
	}
	if s.skipTo > s.offset {
		lost = s.skipTo - s.offset
		s.offset = s.skipTo
	}
	// Stat, and not fstat of the descriptor: an abandoned capture is closed beside this.
	if st, err := s.c.f.Stat(); err == nil && st.Size() < s.offset {
		s.offset, s.skipTo = 0, 0 // A script has cut the file: what is there is new.
	}
	n, err = s.c.f.ReadAt(buf, s.offset)
	if err == io.EOF {
		err = nil
	}
	if broken := runes.BrokenStart(buf[:n]); lost > 0 && broken > 0 {
		lost += int64(broken)
		s.offset += int64(broken)
		n = copy(buf, buf[broken:n])
	}
	if whole := runes.Whole(buf[:n]); !last || n == len(buf) {
		n = whole
	}
	s.offset += int64(n)
	return n, lost, err
}
