//go:build !linux

package tty

import (
	"os"

	"github.com/limpet-sh/limpet/internal/proc"
)

// Reader finds nothing: the kernel does not say here what a process waits for.
func Reader(*os.File, proc.ID) (w Waiting, found bool) { return w, false }
