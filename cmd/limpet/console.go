package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
)

// console is limpet's stdout and stderr. Commands write to it while they run,
// and it notes how much came through, and whether the cursor was left in the
// middle of a line, where nobody wants a message or a prompt.
type console struct {
	stdout, stderr consoleStream

	mu      sync.Mutex
	midLine bool
	asking  bool     // a prompt is shown: notes are held
	held    []string // to be told when the prompt is answered

	// turn has a token while a question is asked, or a line is typed: one of them at a time has the terminal. Typing reports that it is a
	// line.
	turn   chan struct{}
	typing bool

	screen sync.Mutex // held while a question is shown: what programs write to the terminal waits. Before mu.

	shown func(line string) // if not nil, shows notes in place of stderr, which has the screen of a program

	unread func() // if not nil, is told that nobody reads stdout, or stderr, any more
}

func newConsole() *console {
	c := &console{turn: make(chan struct{}, 1)}
	c.stdout = consoleStream{console: c, file: os.Stdout, terminal: term.IsTerminal(int(os.Stdout.Fd()))}
	c.stderr = consoleStream{console: c, file: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd()))}
	return c
}

// logger returns a logger whose warnings the user is told.
func (c *console) logger() *slog.Logger { return slog.New(warnings{console: c}) }

// notef tells the user something, on a line of its own on stderr. It may be
// called by several goroutines at once: warnings come when they come.
func (c *console) notef(format string, args ...any) {
	line := harmless(fmt.Sprintf("limpet: "+format+"\n", args...))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown != nil {
		c.shown(line)
		return
	}
	if c.asking {
		c.held = append(c.held, line)
		return
	}
	c.endLine()
	fmt.Fprint(c.stderr.file, line)
}

// showBy has a function show the notes; nil brings them back to stderr. The function must not block.
func (c *console) showBy(show func(line string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = show
}

// asks holds notes back until answered: a prompt is shown, and the user types
// behind it. Bash does the same with the news of its jobs.
func (c *console) asks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = true
}

// answered tells what was held back. The cursor is at the start of a line.
func (c *console) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
	for _, line := range c.held {
		fmt.Fprint(c.stderr.file, line)
	}
	c.held = nil
}

// freshLine ends a line that a command left open.
func (c *console) freshLine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLine()
}

// endLine is freshLine, under the lock.
func (c *console) endLine() {
	if c.midLine {
		fmt.Fprintln(c.stderr.file)
		c.midLine = false
	}
}

// lost returns an error if something of what the command wrote did not reach
// the reader. The library does not make a command wait for a reader that is
// 64 MiB behind, but passes a part of the output over. On a terminal the line
// that says so is enough; in a pipe the data would be wrong, and nobody told.
func (c *console) lost(res command.Result) error {
	var err error
	for _, s := range []struct {
		stream *consoleStream
		name   string
		total  int64
	}{{&c.stdout, "stdout", res.Stdout.Total}, {&c.stderr, "stderr", res.Stderr.Total}} {
		if written := s.stream.restart(); written < s.total && !s.stream.terminal {
			err = fmt.Errorf("a part of %s was lost, where a line in it says so: its reader is too slow; write to a file in the script itself, as in 'cmd >file'", s.name)
		}
	}
	return err
}

// consoleStream is one of the two. Writes come from one goroutine at a time.
type consoleStream struct {
	console  *console
	file     *os.File
	terminal bool
	written  int64 // under console.mu
}

var _ io.Writer = (*consoleStream)(nil)

func (s *consoleStream) Write(p []byte) (int, error) {
	if s.terminal {
		s.console.screen.Lock()
		defer s.console.screen.Unlock()
	}
	n, err := s.file.Write(p)
	if errors.Is(err, syscall.EPIPE) && s.console.unread != nil {
		s.console.unread()
	}
	s.console.mu.Lock()
	defer s.console.mu.Unlock()
	s.written += int64(n)
	if n > 0 && (s.terminal || s == &s.console.stderr) {
		s.console.midLine = p[n-1] != '\n'
	}
	return n, err
}

func (s *consoleStream) restart() int64 {
	s.console.mu.Lock()
	defer s.console.mu.Unlock()
	n := s.written
	s.written = 0
	return n
}
