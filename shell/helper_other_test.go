//go:build !linux

package shell_test

import "errors"

// pollHelper is about inotify.
func pollHelper() error { return errors.ErrUnsupported }
