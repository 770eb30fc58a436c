//go:build !linux

package ipc

import (
	"os"
	"time"
)

// changeTime is not asked for here: each look is a thorough one.
func changeTime(*os.File) (changed time.Time, linked bool) { return time.Time{}, false }
