//go:build !linux

package sandbox_test

// helpers are about sandboxes, and there are none here.
var helpers map[string]func() error
