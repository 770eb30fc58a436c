//go:build !linux

package askpass_test

import (
	"os"
	"testing"
)

// echoes is not asked where there is no server.
func echoes(*testing.T, *os.File) bool { return false }
