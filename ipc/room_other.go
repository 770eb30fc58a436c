//go:build !linux

package ipc

import "os"

// room is not asked for here.
func room(*os.File) error { return nil }
