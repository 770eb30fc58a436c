//go:build !linux

package main

// hide does nothing: there is no /proc.
func hide() {}
