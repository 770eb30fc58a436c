//go:build !linux

package shell_test

import "errors"

// pollHelper is about inotify.
func pollHelper() error { return errors.ErrUnsupported }

// startHelper is about namespaces.
func startHelper() error { return errors.ErrUnsupported }
