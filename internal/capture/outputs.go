package capture

import (
	"errors"
	"math"
	"os"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/proc"
)

// Outputs are the captures of one command.
type Outputs struct {
	pool   *Pool
	stdout *capture
	stderr *capture // nil when merged
}

// Paths returns the names by which bash opens the captures. That of stderr is empty when the
// streams are merged.
func (o Outputs) Paths() (stdout, stderr string) {
	if o.stderr != nil {
		stderr = o.stderr.path()
	}
	return o.stdout.path(), stderr
}

// room returns an error if the disk of the captures is full, or a quota of theirs.
func (o Outputs) room() error { return files.Room(o.stdout.f) }

// Files opens the captures for a process that gets them by descriptor. The
// caller closes them. Both are the same when the streams are merged.
func (o Outputs) Files() (stdout, stderr *os.File, err error) {
	open := func(c *capture) (*os.File, error) {
		return files.OpenRegular(c.root, c.name, os.O_WRONLY|os.O_APPEND)
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

// heldBy reports whether a capture is the stdout or stderr of a process. Linux only.
func (o Outputs) heldBy(pid int) bool {
	for _, c := range []*capture{o.stdout, o.stderr} {
		if c == nil {
			continue
		}
		if st, err := c.f.Stat(); err == nil && proc.Writes(pid, st) {
			return true
		}
	}
	return false
}

// errHeld means that somebody still writes to a capture.
var errHeld = errors.New("ipc: a process that the command left behind still writes to it")

// Move gives the capture of a stream (1 or 2) a new name, under which the
// caller owns it; it is not used again. A capture that somebody still writes
// to is not moved: Release returns it, for the [Tender] to bound.
func (o *Outputs) Move(fd int, path string) error {
	c := &o.stdout
	if fd == 2 {
		c = &o.stderr
	}
	if users((*c).f) == others {
		return errHeld
	}
	(*c).bound((*c).size(), math.MaxInt64) // It may have grown since it was looked at last.
	if err := (*c).move(path); err != nil {
		return err
	}
	if o.pool.owner != nil {
		_ = (*c).f.Chmod(files.FileMode) // It is ours.
	}
	_ = (*c).f.Close() // Nothing was written through it.
	*c = nil
	return nil
}

// Release gives the captures back for other commands. It returns those that
// somebody still writes to, for a [Tender] to tend.
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
