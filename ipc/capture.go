package ipc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/command"
)

// capture is the file that takes one stream of one command. Limpet creates it
// and keeps its descriptor, bash opens it by name for appending. As long as
// anybody else has it open, say a background job, it is never given to another
// command.
type capture struct {
	root *os.Root
	name string // in root
	f    *os.File

	// keep is the number of bytes at each end that stay on disk; what lies
	// between them is given back to the file system.
	keep    int64
	punched int64 // end of what was given back
}

// usage says who has a capture open besides limpet.
type usage int

const (
	unknown usage = iota // there are no leases here (macOS, NFS): the file is not used again
	nobody
	others
)

func newCapture(root *os.Root, name string, keep int64, owner *Owner) (*capture, error) {
	f, err := owner.createCapture(root, name)
	if err != nil {
		return nil, err
	}
	return &capture{root: root, name: name, f: f, keep: keep}, nil
}

// path is what bash opens it by.
func (c *capture) path() string { return filepath.Join(c.root.Name(), c.name) }

func (c *capture) size() int64 {
	size, _ := c.stat()
	return size
}

// punchStep is the least that is given back at a time, so that a steady
// writer costs few system calls.
const punchStep = 256 << 10

// bound gives the middle of the file back, up to limit at most: what is still
// to be streamed stays.
func (c *capture) bound(size, limit int64) {
	if size < c.punched {
		c.punched = 0 // A script has cut the file.
	}
	from := max(c.keep, c.punched)
	to := min(size-c.keep, limit) &^ 4095 // Whole pages: a partial one is zeroed, not freed.
	if from%4096 != 0 {
		from += 4096 - from%4096
	}
	if to-from < punchStep {
		return
	}
	if err := punch(c.f, from, to-from); err == nil {
		c.punched = to
	}
}

// output reads what is kept, at most limit bytes.
func (c *capture) output(limit int64) (command.Output, error) {
	size := c.size()
	out := command.Output{Total: size}
	if size <= limit {
		head, err := readRange(c.f, 0, size)
		out.Head = head
		return out, err
	}
	half := limit / 2
	head, err := readRange(c.f, 0, limit-half)
	if err != nil {
		return out, err
	}
	tail, err := readRange(c.f, size-half, half)
	out.Head, out.Tail = head[:wholeRunes(head)], tail[brokenStart(tail):]
	return out, err
}

func readRange(r io.ReaderAt, off, n int64) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	b := make([]byte, n)
	m, err := r.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil // A job may have cut the file just now; what is there is right.
	}
	if err != nil {
		err = fmt.Errorf("ipc: reading output: %w", err)
	}
	return b[:m], err
}

// wholeRunes returns how much of b ends on a rune's border: a sequence that
// the end cuts short is left out, bytes that are no UTF-8 stay.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if first := b[len(b)-back]; utf8.RuneStart(first) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// brokenStart returns how many bytes at the start of b continue a rune that
// began before it.
func brokenStart(b []byte) int {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	if len(b) < utf8.UTFMax {
		return len(b) // The end of one rune, and nothing else.
	}
	return 0 // No UTF-8 at all.
}

// reset makes the file fit for another command. It reports false when somebody
// still has it open, or when it is gone from its directory.
func (c *capture) reset() bool {
	if users(c.f) != nobody {
		return false
	}
	// Only now: a writer may have been there until a moment ago.
	size, linked := c.stat()
	if !linked {
		return false
	}
	if size > 0 {
		if err := c.f.Truncate(0); err != nil {
			return false
		}
	}
	c.punched = 0
	return true
}

// drop removes the file's name and closes the descriptor. A job that still
// writes keeps the inode until it ends.
func (c *capture) drop() {
	_ = c.root.Remove(c.name) // Its directory may be gone already.
	_ = c.f.Close()           // Nothing was written through it.
}
