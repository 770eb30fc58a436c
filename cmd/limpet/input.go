package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/peterh/liner"
	"golang.org/x/term"
)

// lineReader asks for lines. One read is under way at a time; close may come
// beside it, at the very end.
type lineReader interface {
	// asks reports whether there are prompts. Without a user there are none.
	asks() bool

	// read asks for a line, which comes without its newline. It returns
	// errAborted for a Ctrl-C that was a key to it, and io.EOF at the end.
	read(prompt string) (string, error)

	// ask shows a prompt again, or another one, to a read that is under way.
	ask(prompt string)

	// close gives the terminal back as it was found.
	close()
}

var errAborted = errors.New("aborted")

// newLineReader returns an editor where there is a terminal for it, and else a
// reader of plain lines, whose prompts go to stderr: stdout is the commands'.
// Those want stdin and stderr to be terminals, as bash(1) has it.
func newLineReader() lineReader {
	in, out := term.IsTerminal(int(os.Stdin.Fd())), term.IsTerminal(int(os.Stdout.Fd()))
	if !in || !out || !liner.TerminalSupported() {
		return &plainLines{in: bufio.NewReader(os.Stdin), prompts: in && term.IsTerminal(int(os.Stderr.Fd()))}
	}
	state := liner.NewLiner()
	state.SetCtrlCAborts(true)
	return &editor{state: state}
}

// editor edits lines on a terminal, with a history. While it reads, Ctrl-C is
// a key; in between it is a signal again.
type editor struct {
	state *liner.State

	mu      sync.Mutex
	reading bool
	before  *term.State // that of the terminal when the read began
}

func (e *editor) asks() bool { return true }

func (e *editor) read(prompt string) (string, error) {
	e.begins(true)
	defer e.begins(false)
	line, err := e.state.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		return "", errAborted
	case err == io.EOF:
		fmt.Println()
	case err == nil && strings.TrimSpace(line) != "":
		e.state.AppendHistory(line)
	}
	return line, err
}

func (e *editor) ask(prompt string) { fmt.Print("\n" + prompt) }

func (e *editor) begins(reading bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = reading
	e.before, _ = term.GetState(int(os.Stdin.Fd())) // Nil where the terminal is gone.
}

// close may come when a prompt is shown, and the editor has not made Ctrl-C a key yet: it would do so behind the end.
func (e *editor) close() {
	const patience, pause = 200 * time.Millisecond, time.Millisecond
	for began := time.Now(); time.Since(began) < patience && e.isBeginning(); time.Sleep(pause) {
	}
	_ = e.state.Close() // It has no errors.
}

// isBeginning reports whether a read has not changed the terminal yet.
func (e *editor) isBeginning() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, err := term.GetState(int(os.Stdin.Fd()))
	return e.reading && err == nil && e.before != nil && *now == *e.before
}

// plainLines reads lines from a pipe, a file, or a terminal that cannot do more.
type plainLines struct {
	in      *bufio.Reader
	prompts bool
}

func (p *plainLines) asks() bool { return p.prompts }

func (p *plainLines) read(prompt string) (string, error) {
	p.say(prompt)
	line, err := p.in.ReadString('\n')
	if err == io.EOF && line == "" {
		p.say("\n")
	}
	if err != nil && (err != io.EOF || line == "") {
		return "", err
	}
	return strings.TrimSuffix(line, "\n"), nil
}

func (p *plainLines) ask(prompt string) { p.say("\n" + prompt) }

func (p *plainLines) say(text string) {
	if p.prompts {
		fmt.Fprint(os.Stderr, text)
	}
}

func (p *plainLines) close() {}
