//go:build !linux

package supervisor

// There are no names for these here.
func boot() string      { return "" }
func namespace() string { return "" }
