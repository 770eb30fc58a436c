package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/mcpserver"
)

// stdio is the doorway for the one client that has started limpet.
type stdio struct {
	in, out *os.File
	person  bool // it is on a terminal
}

// onStdio takes standard input and output for the protocol, and puts others in their place:
// neither what limpet starts nor what prints by mistake can reach a client then.
func onStdio() (*stdio, error) {
	door := &stdio{person: term.IsTerminal(int(os.Stdin.Fd()))}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close() // It is at 0 by then.
	for _, stream := range []struct {
		to    **os.File
		of    *os.File
		stead *os.File
	}{{&door.in, os.Stdin, null}, {&door.out, os.Stdout, os.Stderr}} {
		fd := int(stream.of.Fd())
		moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, int(os.Stderr.Fd())+1)
		if err == nil {
			err = unix.Dup2(int(stream.stead.Fd()), fd)
		}
		if err != nil {
			return nil, fmt.Errorf("moving %s: %w", stream.of.Name(), err)
		}
		*stream.to = os.NewFile(uintptr(moved), stream.of.Name())
	}
	return door, nil
}

// outliveStderr keeps limpet from ending when it says something to nobody: a client that is
// killed takes the other end of stderr along, and what limpet has started is to be ended
// then. To ignore the signal would be passed on to commands.
func outliveStderr() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (d *stdio) serve(ctx context.Context, server *mcpserver.Server, console *console) error {
	if d.person {
		console.notef(`this speaks the Model Context Protocol, and is for an agent host that starts it, as by
  {"mcpServers": {"limpet": {"command": "limpet", "args": ["mcp"]}}}
It waits for messages now. Ctrl-D ends it; limpet mcp --help says more.`)
	}
	return server.ServeStdio(ctx, d.in, d.out)
}

func (d *stdio) close() error { return errors.Join(d.in.Close(), d.out.Close()) }
