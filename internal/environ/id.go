package environ

import (
	"crypto/rand"
	"encoding/hex"
)

// idBytes of randomness make an ID that no command can guess.
const idBytes = 12

// NewID returns an unguessable name: of a command, of a file, or the value of a mark.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand aborts the program instead.
	return hex.EncodeToString(b[:])
}
