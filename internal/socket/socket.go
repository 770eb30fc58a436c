// Package socket lets other programs of the same user reach this one by HTTP, at a unix
// socket: names of any length, peers that are checked, and a server whose goroutines all end.
package socket

import (
	"context"
	"net"
	"os"
	"path/filepath"
)

// Mode is that of a socket's file: where peers cannot be asked who they are, it is what
// refuses others.
const Mode = 0o600

// NewExt is behind the name of a socket until it is as it should be. One that was left by
// a program that was killed just then can be removed.
const NewExt = ".new"

// Listen makes a socket, which must not be there, in a directory. Closing the listener does
// not remove it. It has another name first: at its own somebody always listens.
func Listen(dir, name string) (*net.UnixListener, error) {
	var l *net.UnixListener
	err := short(dir, name+NewExt, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // It would remove the name that it knows.
	path := filepath.Join(dir, name)
	err = os.Chmod(path+NewExt, Mode)
	if err == nil {
		err = os.Rename(path+NewExt, path)
	}
	if err != nil {
		_ = l.Close()                // Nobody knows it.
		_ = os.Remove(path + NewExt) // As above.
		return nil, err
	}
	return l, nil
}

// Dial connects to a socket in a directory.
func Dial(ctx context.Context, dir, name string) (conn net.Conn, err error) {
	err = short(dir, name, func(path string) error {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// short calls a function with a name of the socket that fits into an address: at most
// longestPath bytes (unix(7)).
func short(dir, name string, do func(path string) error) error {
	path := filepath.Join(dir, name)
	if len(path) <= longestPath {
		return do(path)
	}
	return shortened(dir, name, do)
}
