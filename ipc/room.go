package ipc

import (
	"errors"
	"fmt"
	"syscall"
)

// What a command writes to a full disk is lost, and few commands say so: bash's
// echo says it on the stream that is full. So limpet looks for room itself, before
// a command and behind it, and while its output grows.
const (
	// plenty of free bytes and there is no more to be asked.
	plenty = 64 << 20

	// roomStep is what must be had where there is less.
	roomStep = 64 << 10

	// roomAt is how far behind the end of a file it is tried: no writer is there.
	roomAt = 1 << 30
)

// noRoom reports whether the error means that the disk, or a quota, is used up.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Room returns an error if the disk of the captures is full, or a quota of theirs.
func (o Outputs) Room() error { return room(o.stdout.f) }

// Full returns a [*DiskError] if the disk was found full: while the command ran, or
// now. Something may be missing from the output then. Call it when the command has
// ended, and before anything is given back.
func (m *Monitor) Full() error {
	m.lookForRoom()
	if m.full == nil {
		return nil
	}
	return &DiskError{
		Dir: m.o.pool.root.Name(),
		Err: fmt.Errorf("it was full while the command ran, whose output may be incomplete: %w", m.full),
	}
}

func (m *Monitor) lookForRoom() {
	if m.full == nil {
		m.full = m.o.Room()
	}
}
