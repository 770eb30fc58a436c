//go:build !linux

package supervisor

import "os"

// self is this program's executable.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
