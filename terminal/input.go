package terminal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/tty"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// longestLine is what a terminal in line mode takes of a line before its end
// (N_TTY_BUF_SIZE, drivers/tty/n_tty.c). It drops the rest.
const longestLine = 4095

// writing is the right to write to a terminal, which one has at a time, and what was
// written of the line that has no end yet.
type writing struct {
	turn chan struct{} // has a token as long as somebody writes
	line int
}

// begin waits for the turn, until the deadline.
func (w *writing) begin(deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case w.turn <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (w *writing) end() { <-w.turn }

// Write types b: all of it, or there is an error, and the number says how much. What is
// typed by several at once is not mixed. A program that does not read, and others who
// write, are waited for no longer than Options.WritePatience: then it is ErrNotRead, and
// the rest may be written later. A line that the terminal would cut, with what was typed of
// it before, is ErrLineTooLong, and nothing of b is typed. When the program has ended it
// is ErrEnded.
func (t *Terminal) Write(b []byte) (int, error) {
	const op = "write"
	p, err := t.live(op)
	if err != nil {
		return 0, err
	}
	deadline := time.Now().Add(t.r.opts.WritePatience)
	late := func(n int) error {
		return &Error{
			Op: op, ID: t.id, Err: fmt.Errorf("%w: it took %d of %d bytes in %v", ErrNotRead, n, len(b), t.r.opts.WritePatience),
			Remedy: "look at what it does, and write the rest when it reads",
		}
	}
	if !p.in.begin(deadline) {
		return 0, late(0)
	}
	defer p.in.end()
	mode := tty.ReadLineMode(p.master)
	rest, longest := mode.Count(p.in.line, b)
	defer func() { p.lastInput.Store(int64(time.Since(epoch))) }()
	if longest > longestLine {
		return 0, &Error{
			Op: op, ID: t.id, Err: fmt.Errorf("%w: %d bytes, where it takes %d", ErrLineTooLong, longest, longestLine),
			Remedy: "cut it up, or have the program read without line mode (stty -icanon)",
		}
	}
	_ = p.master.SetWriteDeadline(deadline) // It can have deadlines.
	n, err := p.master.Write(b)
	if n < len(b) {
		rest, _ = mode.Count(p.in.line, b[:n])
	}
	p.in.line = rest
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, late(n)
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EIO):
		return n, &Error{Op: op, ID: t.id, Err: fmt.Errorf("%w: it took %d of %d bytes", ErrEnded, n, len(b))}
	}
	return n, &Error{Op: op, ID: t.id, Err: err}
}

// Send types keys, text and pastes, as the program wants to have them from its terminal:
// see package keys. Errors are those of Write.
func (t *Terminal) Send(inputs ...keys.Input) error {
	p, err := t.live("send")
	if err != nil {
		return err
	}
	p.mu.Lock()
	modes := keys.Modes{AppCursor: p.modes.AppCursor, AppKeypad: p.modes.AppKeypad, BracketedPaste: p.modes.BracketedPaste}
	p.mu.Unlock()
	var b []byte
	for _, in := range inputs {
		b = append(b, in.Encode(modes)...)
	}
	_, err = t.Write(b)
	return err
}

// Resize gives the terminal another size: the program in the foreground gets SIGWINCH. The
// error is ErrSize if there is no such size.
func (t *Terminal) Resize(size Size) error {
	const op = "resize"
	if err := checkSize(size); err != nil {
		return &Error{Op: op, ID: t.id, Err: err}
	}
	p, err := t.live(op)
	if err != nil {
		return err
	}
	p.sizing.Lock()
	defer p.sizing.Unlock()
	_, end := p.out.bounds()
	now, _ := p.display.history.size(end)
	if now == size {
		return nil
	}
	// Noted first: the program may have painted its screen anew before the ioctl returns.
	// What it still prints for the old size, it paints over.
	p.display.history.resized(end, time.Now(), size)
	if err := tty.Resize(p.master, ttySize(size)); err != nil {
		p.display.history.resized(end, time.Now(), now)
		return &Error{Op: op, ID: t.id, Err: err}
	}
	p.resized.Store(&size)
	return nil
}

// Signal signals the program in the foreground, with all of its process group, as the
// terminal itself does for Ctrl-C. Each process is known by its start time: no other
// is signalled that has its pid by now. The error is os.ErrProcessDone if nobody is in the
// foreground, and that of kill(2) if none of the group may be signalled. To end the
// terminal, Close it.
func (t *Terminal) Signal(sig syscall.Signal) error {
	const op = "signal"
	p, err := t.live(op)
	if err != nil {
		return err
	}
	if err := p.signal(sig); err != nil {
		return &Error{Op: op, ID: t.id, Err: err}
	}
	return nil
}

func (p *program) signal(sig syscall.Signal) error {
	all, _ := proc.List()
	group, err := tty.Foreground(p.master)
	if err != nil || group <= 0 || len(all) == 0 { // Without /proc nobody else is known.
		return p.conn.Signal(sig)
	}
	sent, failed := false, os.ErrProcessDone
	for _, st := range all {
		if st.PGRP != group || st.Zombie() {
			continue
		}
		switch err := proc.Signal(st.ID(), sig); {
		case err == nil:
			sent = true
		case !errors.Is(err, proc.ErrGone):
			failed = err
		}
	}
	if sent {
		return nil
	}
	return failed
}
