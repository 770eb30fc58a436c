package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// With an allowlist of hosts there is no network but a loopback device, and on
// that a port where the host's proxy answers. A socket belongs to the network
// namespace that it was made in, so it is made inside, before the program, and
// handed out:
//
//	limpet            bwrap, then this program as helperPath
//	  |  socketpair ------> |  listen on 127.0.0.1:3128
//	  | <----- descriptor - |
//	  |  accept, proxy      |
//	  | - go on ----------> |  exec the program
//
// The helper is this very executable, and is entered by init: a program that
// uses the package need do nothing for it, and nothing else stays in the sandbox.

// helperFailed is an exit code of the helper: it did not get as far as the program.
const helperFailed = 125

func init() {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "__limpet_sandbox_") {
		return
	}
	// Nobody else is meant: elsewhere these are arguments as any other.
	if self, err := os.Readlink("/proc/self/exe"); err != nil || self != helperPath {
		return
	}
	var err error
	switch os.Args[1] {
	case helperListen:
		err = listenAndExec(os.Args[2:])
	case helperConnect:
		err = connectThrough(os.Args[2:])
	default:
		err = errors.New("it is not known here")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "limpet-helper: %s: %v\n", os.Args[1], err)
		os.Exit(helperFailed)
	}
	os.Exit(0)
}

// listenAndExec hands out a listening socket by the descriptor that the first
// argument names, waits for the word, and becomes the program.
func listenAndExec(args []string) error {
	if len(args) < 2 {
		return errors.New("wants FD PROGRAM")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", proxyAddress)
	if err != nil {
		return err
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(fd, []byte{1}, unix.UnixRights(int(socket.Fd())), nil, 0); err != nil {
		return fmt.Errorf("handing out the socket: %w", err)
	}
	var word [1]byte
	if n, err := unix.Read(fd, word[:]); err != nil || n == 0 {
		return fmt.Errorf("nobody serves the socket: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	// The program gets none of these.
	_ = socket.Close() // The host has its own.
	_ = l.Close()      // As above.
	unix.CloseOnExec(fd)
	err = syscall.Exec(args[1], args[1:], os.Environ())
	_, _ = unix.Write(fd, []byte(fmt.Sprintf("execvp %s: %v", args[1], err))) // As bwrap has it. If nobody hears it, nobody waits.
	return err
}

// connectThrough connects stdin and stdout with a host by the proxy, for programs
// that speak to none: it is ssh's ProxyCommand.
func connectThrough(args []string) error {
	if len(args) != 2 {
		return errors.New("wants HOST PORT")
	}
	conn, err := net.Dial("tcp4", proxyAddress)
	if err != nil {
		return err
	}
	defer conn.Close() // What was to be said was said.
	to := net.JoinHostPort(args[0], args[1])
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return err
	}
	answer, err := readHeader(conn)
	if err != nil {
		return err
	}
	if status := strings.Fields(answer); len(status) < 2 || status[1] != "200" {
		_, why, _ := strings.Cut(answer, "\r\n\r\n")
		return fmt.Errorf("%s is refused: %s", to, strings.TrimSpace(why))
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)       // The other side says what it misses.
		_ = conn.(*net.TCPConn).CloseWrite() // It may be closed: then it knows.
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// readHeader reads the header of an answer and no byte more, unless it is a
// refusal, which is read to its end.
func readHeader(r io.Reader) (string, error) {
	const most = 16 << 10
	var text strings.Builder
	var one [1]byte
	for text.Len() < most && !strings.HasSuffix(text.String(), "\r\n\r\n") {
		if _, err := io.ReadFull(r, one[:]); err != nil {
			return "", fmt.Errorf("the proxy hung up: %w", err)
		}
		text.Write(one[:])
	}
	if strings.Contains(text.String(), " 200 ") {
		return text.String(), nil
	}
	rest, _ := io.ReadAll(io.LimitReader(r, most)) // What came is what there is to say.
	return text.String() + string(rest), nil
}
