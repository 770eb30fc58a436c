package proc

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Cursor tells which pid was given out last in this pid namespace (proc(5),
// /proc/loadavg): if it stands still, nothing was forked. It keeps a descriptor,
// since it is asked after every command. Close it. A nil Cursor knows nothing;
// any number of goroutines may use one.
type Cursor struct{ f *os.File }

// NewCursor opens a Cursor.
func NewCursor() (*Cursor, error) {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	return &Cursor{f}, nil
}

// Last returns the pid.
func (c *Cursor) Last() (int, error) {
	if c == nil {
		return 0, errors.ErrUnsupported
	}
	var buf [128]byte
	n, err := unix.Pread(int(c.f.Fd()), buf[:], 0)
	if err != nil {
		return 0, err
	}
	text := bytes.TrimSpace(buf[:n])
	return strconv.Atoi(string(text[bytes.LastIndexByte(text, ' ')+1:]))
}

// probeMax is how many pids are looked at one by one; beyond that, reading the
// list of all processes is cheaper.
const probeMax = 64

// Since returns the processes that may have been forked since Last was before,
// others among them, and what Last is now.
func (c *Cursor) Since(before int) (candidates []Stat, last int, err error) {
	return since(before, c.Last, Read, Snapshot)
}

// sinceMost is how many times Since looks again. Where so much is forked that it is never done, more would not help.
const sinceMost = 8

func since(before int, lastPID func() (int, error), read func(pid int) (Stat, error), snapshot func() (Tree, error)) (candidates []Stat, last int, err error) {
	for range sinceMost {
		if last, err = lastPID(); err != nil || last == before {
			return candidates, last, err
		}
		ended := false
		if last < before || last-before > probeMax { // Pids start again at the bottom.
			tree, err := snapshot()
			if err != nil {
				return candidates, last, err
			}
			candidates, ended = slices.Collect(maps.Values(tree.all)), true
		} else {
			for pid := before + 1; pid <= last; pid++ {
				st, err := read(pid)
				if err == nil && !slices.ContainsFunc(candidates, func(c Stat) bool { return c.ID() == st.ID() }) {
					candidates = append(candidates, st)
				}
				ended = ended || err != nil || st.Zombie() || st.Exiting
			}
		}
		if !ended {
			break
		}
		before = last // Who has ended meanwhile may have forked another one after last was read.
	}
	return candidates, last, nil
}

// Close closes the descriptor.
func (c *Cursor) Close() {
	if c != nil {
		_ = c.f.Close() // Read only: nothing to lose.
	}
}
