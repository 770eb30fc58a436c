package capture

import (
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
)

// Pool makes captures, in one directory, and uses them again once nobody else
// has them open. It is used by one goroutine at a time.
type Pool struct {
	root  *os.Root
	dir   string // in root, where the captures are; empty: root itself
	keep  int64
	owner *files.Owner
	free  []*capture
}

// NewPool returns a pool of captures in the directory dir, which exists. keep
// is the number of bytes that stay on disk at each end of a long stream. The
// owner can write to the captures, by /dev/stdout too; nil is this program's user. Then
// nobody but the owner may be able to enter dir.
// Close it. Errors are [*files.DiskError].
func NewPool(dir string, keep int64, owner *files.Owner) (*Pool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &files.DiskError{Dir: dir, Err: err}
	}
	return &Pool{root: root, keep: keep, owner: owner}, nil
}

// NewPoolIn returns a pool of captures in the directory dir of a root of the caller's, which may
// be another one from time to time: call [Pool.Reopen] first. The pool makes dir where it is
// missing. The rest is as in [NewPool], but the caller closes the root: call [Pool.Clear], not
// Close.
func NewPoolIn(dir string, keep int64, owner *files.Owner) *Pool {
	return &Pool{dir: dir, keep: keep, owner: owner}
}

// Reopen has the captures be made in root from now on. Those that are in use stay where they
// are, and are not used again.
func (p *Pool) Reopen(root *os.Root) { p.root = root }

// Outputs takes captures for one command; merge wants one for both streams. It refuses them
// on a disk that is full: what the command wrote would be lost.
// They are given back by [Outputs.Release]. Errors are [*files.DiskError].
func (p *Pool) Outputs(merge bool) (Outputs, error) {
	o, err := p.Take(merge)
	if err != nil {
		return o, &files.DiskError{Dir: p.root.Name(), Err: err}
	}
	return o, nil
}

// Take is Outputs for a caller that says by itself whose directory it is: the error is the bare
// one.
func (p *Pool) Take(merge bool) (o Outputs, err error) {
	o.pool = p
	if o.stdout, err = p.capture(); err != nil {
		return o, err
	}
	if !merge {
		o.stderr, err = p.capture()
	}
	if err == nil {
		err = o.room()
	}
	if err != nil {
		o.Release()
	}
	return o, err
}

// capture returns one that nobody uses: an old one, or a new one.
func (p *Pool) capture() (*capture, error) {
	for len(p.free) > 0 {
		last := len(p.free) - 1
		c := p.free[last]
		p.free = p.free[:last]
		if c.named() {
			return c, nil
		}
		c.drop()
	}
	if p.dir != "" {
		if err := p.owner.Mkdir(p.root, p.dir); err != nil {
			return nil, err
		}
	}
	return newCapture(p.root, filepath.Join(p.dir, environ.NewID()), p.keep, p.owner)
}

// put takes a capture back. It reports false when somebody still writes to it:
// it then is the caller's to bound and to drop.
func (p *Pool) put(c *capture) bool {
	if !c.reset() {
		return false
	}
	p.free = append(p.free, c)
	return true
}

// Clear removes the captures that are not in use.
func (p *Pool) Clear() {
	for _, c := range p.free {
		c.drop()
	}
	p.free = nil
}

// Close removes the captures that are not in use, and lets go of the directory that NewPool has
// opened.
func (p *Pool) Close() {
	p.Clear()
	_ = p.root.Close() // Nothing is written by it.
}
