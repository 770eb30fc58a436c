//go:build !linux

package testenv

// Reap does nothing: there are no subreapers here.
func Reap() {}
