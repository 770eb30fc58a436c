//go:build !linux

package ipc_test

import "errors"

// exhaust is about inotify.
func exhaust() error { return errors.ErrUnsupported }
