package capture

import (
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/runes"
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

func newCapture(root *os.Root, name string, keep int64, owner *files.Owner) (*capture, error) {
	f, err := create(root, name, owner)
	if err != nil {
		return nil, err
	}
	return &capture{root: root, name: name, f: f, keep: keep}, nil
}

// create makes a file to which the owner can write, but which stays this
// program's: only its owner can have a lease on a file (fcntl(2), F_SETLEASE), but for
// CAP_LEASE, which root lacks in many containers. Nobody else can enter its directory.
func create(root *os.Root, name string, owner *files.Owner) (*os.File, error) {
	f, err := (*files.Owner)(nil).Create(root, name)
	if err != nil || owner == nil {
		return f, err
	}
	const everybody = 0o666
	if err := f.Chmod(everybody); err != nil {
		_ = f.Close() // Nothing was written.
		return nil, err
	}
	return f, nil
}

// path is what bash opens it by.
func (c *capture) path() string { return filepath.Join(c.root.Name(), c.name) }

// named reports whether the file still has its name: a command may have given that to another.
func (c *capture) named() bool {
	named, err := files.Named(c.root, c.name, c.f)
	return err == nil && named
}

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
	if err := files.Punch(c.f, from, to-from); err == nil {
		c.punched = to
	}
}

// output reads what is kept, at most limit bytes.
func (c *capture) output(limit int64) (command.Output, error) {
	size := c.size()
	out := command.Output{Total: size}
	if size <= limit {
		head, err := files.ReadRange(c.f, 0, size)
		out.Head = head
		return out, err
	}
	half := limit / 2
	head, err := files.ReadRange(c.f, 0, limit-half)
	if err != nil {
		return out, err
	}
	tail, err := files.ReadRange(c.f, size-half, half)
	out.Head, out.Tail = head[:runes.Whole(head)], tail[runes.BrokenStart(tail):]
	return out, err
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
