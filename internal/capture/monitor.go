package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/limpet-sh/limpet/internal/files"
)

// Monitor looks after the output of a command while it runs: it streams it to
// Writers, keeps it bounded, and knows when there was some last. The output
// files raise no events, so that a chatty command costs nothing; they are
// looked at now and then, more often while they grow.
type Monitor struct {
	o       Outputs
	streams []*stream
	poke    chan struct{} // asks the copier to look; closed by Finish
	copied  chan struct{} // closed when the copier has ended
	err     error         // of the Writers; read it when copied is closed

	size  int64     // of both streams, at the last look
	grown time.Time // when it had last grown
	pause time.Duration
	full  error // that the disk was found full
}

// The pauses between two looks at the output.
const (
	firstLook = 2 * time.Millisecond
	slowLook  = 50 * time.Millisecond
	liveLook  = 10 * time.Millisecond // with a Writer that waits for it
)

// fastGrowth between two looks makes the next one come as soon as possible.
const fastGrowth = 256 << 10

// NewMonitor starts to look after o. Writers may be nil. Call Finish.
func NewMonitor(o Outputs, stdout, stderr io.Writer) *Monitor {
	m := &Monitor{o: o, grown: time.Now(), pause: firstLook}
	if stdout != nil {
		m.streams = append(m.streams, &stream{c: o.stdout, w: stdout})
	}
	if stderr != nil && o.stderr != nil {
		m.streams = append(m.streams, &stream{c: o.stderr, w: stderr})
	}
	if len(m.streams) > 0 {
		m.poke, m.copied = make(chan struct{}, 1), make(chan struct{})
		go m.copy()
	}
	return m
}

// From leaves out of each stream what comes before these offsets, because the Writers
// have it already. Call it before the first Look.
func (m *Monitor) From(stdout, stderr int64) {
	for _, s := range m.streams {
		s.mu.Lock()
		if s.offset = stdout; s.c != m.o.stdout {
			s.offset = stderr
		}
		s.mu.Unlock()
	}
}

// copy is the one goroutine that writes to the Writers.
func (m *Monitor) copy() {
	defer close(m.copied)
	copyAll := func(last bool) {
		for _, s := range m.streams {
			if err := s.copy(last); err != nil && m.err == nil {
				m.err = err
			}
		}
	}
	for range m.poke {
		copyAll(false)
	}
	copyAll(true)
}

// Look does what is to be done now and returns when to look again.
func (m *Monitor) Look() (again time.Duration) {
	stdout, stderr := m.o.Sizes()
	size := stdout + stderr
	growth := size - m.size
	slowest := slowLook
	if len(m.streams) > 0 {
		slowest = liveLook
	}
	switch {
	case growth == 0:
		m.pause = min(m.pause*2, slowest)
	case growth >= fastGrowth:
		m.pause = time.Millisecond
	default:
		m.pause = min(2*firstLook, slowest)
	}
	if growth != 0 { // Negative: ">/dev/stderr" in a script cuts the file, as it does any file.
		m.size, m.grown = size, time.Now()
		select {
		case m.poke <- struct{}{}: // Never ready where there is no copier.
		default:
		}
		m.lookForRoom() // Before some is given back.
		m.bound()
	}
	return m.pause
}

// bound gives back to the file system what nobody needs any more: the middle
// of each capture, as far as it was streamed.
func (m *Monitor) bound() {
	for _, c := range []*capture{m.o.stdout, m.o.stderr} {
		if c == nil {
			continue
		}
		size := c.size()
		limit := size
		for _, s := range m.streams {
			if s.c == c {
				limit = s.needs(size)
			}
		}
		c.bound(size, limit)
	}
}

// Quiet returns for how long there has been no output.
func (m *Monitor) Quiet() time.Duration { return time.Since(m.grown) }

// ErrWriterStuck means that a Writer did not return from Write, although the
// command was stopped or its caller has given up. The goroutine that called it ends when it does.
var ErrWriterStuck = errors.New("ipc: the writer of a command did not return from Write, and what was left of its output was dropped")

// Finish writes what is still to be written, and returns the first error of a
// Writer. It waits for the Writers for as long as it takes; but when ctx has
// ended, or the command was stopped, for patience at most: then the error is
// [ErrWriterStuck], and the captures must be abandoned.
func (m *Monitor) Finish(ctx context.Context, stopped bool, patience time.Duration) error {
	if len(m.streams) == 0 {
		return nil
	}
	close(m.poke)
	if !stopped {
		select {
		case <-m.copied:
			return m.err
		case <-ctx.Done():
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-m.copied:
		return m.err
	case <-timer.C:
		return ErrWriterStuck
	}
}

// Full returns a [*files.DiskError] if the disk was found full: while the command ran, or
// now. Something may be missing from the output then. Call it when the command has
// ended, and before anything is given back.
func (m *Monitor) Full() error {
	m.lookForRoom()
	if m.full == nil {
		return nil
	}
	return &files.DiskError{
		Dir: m.o.pool.root.Name(),
		Err: fmt.Errorf("it was full while the command ran, whose output may be incomplete: %w", m.full),
	}
}

func (m *Monitor) lookForRoom() {
	if m.full == nil {
		m.full = m.o.room()
	}
}
