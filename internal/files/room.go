package files

import (
	"github.com/limpet-sh/limpet/internal/errtext"
)

// What a command writes to a full disk is lost, and few commands say so: bash's
// echo says it on the stream that is full. So limpet looks for room itself, before
// a command and behind it, and while its output grows.

// RoomStep is how many bytes a file must have room for, where the disk does not have plenty.
const RoomStep = 64 << 10

// noRoom reports whether the error means that the disk, or a quota, is used up.
func noRoom(err error) bool {
	return errtext.NoRoom(err)
}
