//go:build !linux

package socket

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
)

// longestPath is sun_path of the BSDs without the NUL.
const longestPath = 103

func shortened(dir, name string, _ func(path string) error) error {
	return fmt.Errorf("the path of the socket has %d bytes, where %d are possible: %q; name a directory with a shorter path", len(filepath.Join(dir, name)), longestPath, filepath.Join(dir, name))
}

// peerOf has nothing to check: the modes of the files are what refuses others.
func peerOf(net.Conn) peer { return peer{} }

// CheckServer has nothing to check, as above.
func CheckServer(net.Conn) error { return nil }

// PeerPID cannot tell here.
func PeerPID(net.Conn) (int, error) { return 0, errors.ErrUnsupported }
