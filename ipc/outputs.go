package ipc

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/command"
)

// Outputs are the captures of one command.
type Outputs struct {
	pool   *pool
	stdout *capture
	stderr *capture // nil when merged
}

// Pool makes captures, in one directory, and uses them again once nobody else
// has them open. It is used by one goroutine at a time.
type Pool struct{ pool }

// NewPool returns a pool of captures in the directory dir, which exists. keep
// is the number of bytes that stay on disk at each end of a long stream. The
// owner can write to the captures, by /dev/stdout too; nil is this program's user. Then
// nobody but the owner may be able to enter dir.
// Close it. Errors are [*DiskError].
func NewPool(dir string, keep int64, owner *Owner) (*Pool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &DiskError{Dir: dir, Err: err}
	}
	return &Pool{pool{root: root, keep: keep, owner: owner}}, nil
}

// Outputs takes captures for one command; merge wants one for both streams.
// They are given back by [Outputs.Release].
func (p *Pool) Outputs(merge bool) (Outputs, error) {
	o, err := p.outputs(merge)
	if err != nil {
		return o, &DiskError{Dir: p.root.Name(), Err: err}
	}
	return o, nil
}

// Close removes the captures that are not in use.
func (p *Pool) Close() {
	p.close()
	_ = p.root.Close() // Nothing is written by it.
}

// Files opens the captures for a process that gets them by descriptor. The
// caller closes them. Both are the same when the streams are merged.
func (o Outputs) Files() (stdout, stderr *os.File, err error) {
	open := func(c *capture) (*os.File, error) {
		return openRegular(c.root, c.name, os.O_WRONLY|os.O_APPEND)
	}
	if stdout, err = open(o.stdout); err != nil {
		return nil, nil, err
	}
	if o.stderr == nil {
		return stdout, stdout, nil
	}
	if stderr, err = open(o.stderr); err != nil {
		_ = stdout.Close() // Nothing was written.
		return nil, nil, err
	}
	return stdout, stderr, nil
}

// Sizes returns how much the command has written to each stream.
func (o Outputs) Sizes() (stdout, stderr int64) {
	stdout = o.stdout.size()
	if o.stderr != nil {
		stderr = o.stderr.size()
	}
	return stdout, stderr
}

// Read reads what is kept of each stream, at most limit bytes of each.
func (o Outputs) Read(limit int64) (stdout, stderr command.Output, err error) {
	stdout, err = o.stdout.output(limit)
	if err != nil || o.stderr == nil {
		return stdout, stderr, err
	}
	stderr, err = o.stderr.output(limit)
	return stdout, stderr, err
}

// ErrHeld means that somebody still writes to a capture.
var ErrHeld = errors.New("ipc: a process that the command left behind still writes to it")

// Move gives the capture of a stream (1 or 2) a new name, under which the
// caller owns it; it is not used again. A capture that somebody still writes
// to stays with the [Keeper], which bounds it: the error is [ErrHeld].
func (o *Outputs) Move(fd int, path string) error {
	c := &o.stdout
	if fd == 2 {
		c = &o.stderr
	}
	if users((*c).f) == others {
		return ErrHeld
	}
	(*c).bound((*c).size(), math.MaxInt64) // It may have grown since it was looked at last.
	if err := (*c).move(path); err != nil {
		return err
	}
	if o.pool.owner != nil {
		_ = (*c).f.Chmod(fileMode) // It is ours.
	}
	_ = (*c).f.Close() // Nothing was written through it.
	*c = nil
	return nil
}

// Release gives the captures back for other commands. It returns those that
// somebody still writes to, for a [Keeper] to tend.
func (o *Outputs) Release() []*Held {
	var held []*Held
	for _, c := range []*capture{o.stdout, o.stderr} {
		if c != nil && !o.pool.put(c) {
			held = append(held, &Held{c})
		}
	}
	o.stdout, o.stderr = nil, nil
	return held
}

// Abandon gives the captures up while a Writer still copies from them.
func (o *Outputs) Abandon() {
	for _, c := range []*capture{o.stdout, o.stderr} {
		if c != nil {
			c.drop()
		}
	}
	o.stdout, o.stderr = nil, nil
}

// pool hands out captures and takes them back.
type pool struct {
	root  *os.Root
	dir   string // in root, where the captures are; empty: root itself
	keep  int64
	owner *Owner
	free  []*capture
}

func (p *pool) take() (*capture, error) {
	for len(p.free) > 0 {
		last := len(p.free) - 1
		c := p.free[last]
		p.free = p.free[:last]
		if same(c.root, c.name, c.f) == None {
			return c, nil
		}
		c.drop()
	}
	if p.dir != "" {
		if err := p.owner.mkdir(p.root, p.dir); err != nil {
			return nil, err
		}
	}
	return newCapture(p.root, filepath.Join(p.dir, NewID()), p.keep, p.owner)
}

// outputs takes the captures for one command. It refuses them on a disk that is
// full: what the command wrote would be lost.
func (p *pool) outputs(merge bool) (o Outputs, err error) {
	o.pool = p
	if o.stdout, err = p.take(); err != nil {
		return o, err
	}
	if !merge {
		o.stderr, err = p.take()
	}
	if err == nil {
		err = o.Room()
	}
	if err != nil {
		o.Release()
	}
	return o, err
}

// put takes a capture back. It reports false when somebody still writes to it:
// it then is the caller's to bound and to drop.
func (p *pool) put(c *capture) bool {
	if !c.reset() {
		return false
	}
	p.free = append(p.free, c)
	return true
}

func (p *pool) close() {
	for _, c := range p.free {
		c.drop()
	}
	p.free = nil
}
