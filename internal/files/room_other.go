//go:build !linux

package files

import (
	"errors"
	"os"
)

// Room is not asked for here.
func Room(*os.File) error { return nil }

// Punch is not supported here: a long output takes all of its room on disk.
func Punch(*os.File, int64, int64) error { return errors.ErrUnsupported }
