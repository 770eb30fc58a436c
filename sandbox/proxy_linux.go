package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/egress"
)

// askForSocket has the helper run before the program, with a socket pair by which
// it hands out the one that it listens on.
func (l *launching) askForSocket() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.helper = os.NewFile(uintptr(pair[0]), "limpet-helper")
	theirs := l.fd(len(l.files))
	l.files = append(l.files, os.NewFile(uintptr(pair[1]), "limpet-helper"))
	l.wrapper = []string{helperPath, helperListen, theirs}
	return nil
}

// serve takes the socket, serves it, and lets the program begin. Until then
// nothing has run in the sandbox that is not ours.
func (l *launching) serve(ctx context.Context, c *conn) error {
	proxy, err := egress.New(l.policy.Net.rules(), &egress.Options{Denied: l.denied})
	if err != nil {
		return &Error{Code: ErrProxy, Detail: err.Error()}
	}
	c.proxy = proxy
	generic, err := net.FileConn(l.helper)
	_ = l.helper.Close() // The conn has its own.
	l.helper = nil
	if err != nil {
		return &Error{Code: ErrProxy, Detail: err.Error()}
	}
	stop := context.AfterFunc(ctx, func() { _ = generic.SetDeadline(time.Unix(1, 0)) }) // It can.
	listener, err := receive(generic.(*net.UnixConn))                                   // It is one.
	if err == nil {
		go proxy.Serve(listener) // Until Close. What it fails of shows to the clients.
		_, err = generic.Write([]byte{1})
	}
	var said [256]byte
	n := 0
	if err == nil {
		// Its end is close-on-exec: at the end of file it has become the program.
		if n, err = generic.Read(said[:]); errors.Is(err, io.EOF) {
			n, err = 0, nil
		}
	}
	stop()
	_ = generic.Close() // What was to be said was said. A helper that waits for more ends.
	switch {
	case n > 0:
		return explain(string(said[:n]), nil)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.failed(c)
}

// receive takes the socket that the helper listens on.
func receive(helper *net.UnixConn) (net.Listener, error) {
	var word [1]byte
	rights := make([]byte, unix.CmsgSpace(4)) // One descriptor.
	_, n, _, _, err := helper.ReadMsgUnix(word[:], rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errNoSocket)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(err, errNoSocket)
	}
	f := os.NewFile(uintptr(fds[0]), "proxy")
	defer f.Close() // The listener has its own.
	return net.FileListener(f)
}

var errNoSocket = errors.New("the helper sent no socket")
