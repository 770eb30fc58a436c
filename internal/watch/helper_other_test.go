//go:build !linux

package watch_test

import "errors"

// exhaust is about inotify.
func exhaust() error { return errors.ErrUnsupported }
