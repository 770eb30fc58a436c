package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// leave puts a person's terminal back into the state that programs expect, whatever it was
// left in: in the middle of a sequence, too.
const leave = "\x1b\\" + // the end of a string that was not ended
	"\x1b[?2026l" + "\x1b[?9;1000;1002;1003;1005;1006;1015l" + "\x1b[?1004;2004l" + // drawing, mouse, focus, paste
	"\x1b[>4m\x1b[<9u" + "\x1b[?1l\x1b>" + // what keys send: xterm's and kitty's ways, arrows, keypad
	"\x1b[?1049l" + "\x1b[<9u" + // the alternate screen, and its own stack of kitty's
	"\x1b[?69l\x1b[r\x1b[?6;5l\x1b[?7;8h\x1b[2;3;4;20l\x1b(B\x1b)B\x0f" + // region, wrapping, the keyboard, character sets
	"\x1b[?45;66;67;1016;1036;2031;2048l" + // reverse wrap, keys, what is reported unasked
	"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b[0\"q" + // palette, protected cells
	"\x1b[m\x1b]8;;\x1b\\" + "\x1b[?25h\x1b[0 q" // colors, links, cursor

// The window's title is kept while a program has its own.
const (
	keepTitle  = "\x1b[22;2t"
	titleAgain = "\x1b[23;2t"
)

// attachment is a person at a terminal. What they type, what they see, and the size of
// what they see it on each have a goroutine, so that none waits for another: the detach
// key works also if the program that has the terminal hangs.
type attachment struct {
	flags  *termAttachFlags
	t      *reached
	detach int // the byte of the key; -1 if there is none
	out    *os.File

	ends  chan parting  // the first one counts
	keys  chan []byte   // that are to be typed; closed behind the last
	typed chan struct{} // closed when they are
	again chan struct{} // has a token if the screen is to be painted anew

	shown atomic.Int64 // the offset behind the output that was shown; less than 0 if the screen was not painted yet
	noted atomic.Bool  // a message is on the screen: see note
}

// parting is how an attachment ended: the program has ended if both are zero.
type parting struct {
	detached bool
	err      error
}

// mostTyped is how many reads of keys wait for a program that does not read.
const mostTyped = 1 << 10

// run returns the exit code, when the person's terminal is as it was before.
func (a *attachment) run(ctx context.Context) (code int, err error) {
	a.ends, a.keys = make(chan parting, 1), make(chan []byte, mostTyped)
	a.typed, a.again = make(chan struct{}), make(chan struct{}, 1)
	a.shown.Store(-1)
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return 0, fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	message := ""
	var work sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer func() { // Also if something panics.
		stop()
		soon(&work) // Nothing is to be shown behind what follows.
		said := a.says(leave + titleAgain + "\x1b[999;1H\r\n")
		_ = term.Restore(fd, before) // There is nobody else to be told.
		if said {
			a.says(message)
		}
	}()
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(winch)
	a.flags.where.console.showBy(a.note)
	defer a.flags.where.console.showBy(nil)                       // Before the deferred function above, which leaves the screen.
	go a.guarded(func() error { return a.watch(ctx, fd, winch) }) // These three may wait for a program that hangs, or for a key, longer than limpet lives.
	go a.guarded(a.read)
	go func() {
		defer close(a.typed)
		a.guarded(func() error { return a.write(ctx) })
	}()
	work.Go(func() { a.guarded(func() error { return a.show(ctx) }) })

	var end parting
	select {
	case end = <-a.ends:
	case <-ctx.Done():
		end.err = context.Cause(ctx)
	}
	id := a.t.info.ID
	switch {
	case gotSignal(ctx) != nil:
		message = fmt.Sprintf("[detached from %s]\n", id)
		return codeOf(gotSignal(ctx)), nil
	case end.detached:
		within(a.typed) // What was typed before the key.
		message = fmt.Sprintf("[detached from %s]\n", id)
		return 0, nil
	}
	if a.t.resumes && errors.Is(end.err, remote.ErrUnreachable) { // The connection could not be dialled again.
		message = fmt.Sprintf("[lost %s]\n", id)
		return 0, &lostError{end.err}
	}
	if info := a.t.ended(); info.State.Ended() { // However the connection went.
		message = a.unseen(info) + fmt.Sprintf("[%s: %s]\n", id, endOf(info))
		return codeOfTerm(info), nil
	}
	if end.err == nil {
		end.err = io.ErrUnexpectedEOF
	}
	message = fmt.Sprintf("[lost %s]\n", id)
	return 0, &lostError{end.err}
}

// says writes a text, and reports whether it was taken: a terminal may take nothing for ever, and limpet must end.
func (a *attachment) says(text string) bool {
	said := make(chan struct{})
	go func() { // It may outlive the attachment.
		defer close(said)
		_, _ = a.out.WriteString(text) // A terminal that is gone needs nothing.
	}()
	within(said)
	select {
	case <-said:
		return true
	default:
		return false
	}
}

// unseen is the screen that a program has left, if not all of its output was shown: the process
// that had its terminal may end before the screen is painted, and between that and the follow.
func (a *attachment) unseen(info terminal.Info) string {
	if a.shown.Load() >= info.Bytes {
		return ""
	}
	past, err := a.t.recorded()
	if err != nil {
		return "" // It is forgotten.
	}
	s, err := past.Screen()
	if err != nil {
		return ""
	}
	return lastScreen(s.Screen, terminalSize(a.out))
}

// lostError is no reason to do it once more: a part of it was done.
type lostError struct{ err error }

func (e *lostError) Error() string {
	return fmt.Sprintf("%v; limpet term list says how it is", e.err)
}
func (e *lostError) Unwrap() error { return e.err }

// soon waits, but not for a terminal that takes nothing.
func soon(work *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		work.Wait()
		close(done)
	}()
	within(done)
}

// within waits for a second at most.
func within(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// guarded has a panic end the attachment in good order, and with it limpet.
func (a *attachment) guarded(do func() error) {
	defer func() {
		if p := recover(); p != nil {
			a.end(parting{err: fmt.Errorf("limpet has a bug: %v", p)})
		}
	}()
	if err := do(); err != nil {
		a.end(parting{err: err})
	}
}

func (a *attachment) end(how parting) {
	select {
	case a.ends <- how:
	default: // It ends already.
	}
}

func (a *attachment) resizes() bool { return !a.flags.noResize && !a.flags.readOnly }

// terminalSize is that of the person's terminal.
func terminalSize(f *os.File) terminal.Size {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		return terminal.DefaultSize
	}
	return terminal.Size{Cols: min(cols, terminal.MaxSize.Cols), Rows: min(rows, terminal.MaxSize.Rows)}
}

func (a *attachment) resize() {
	_ = a.t.Resize(terminalSize(a.out)) // If it has ended, its viewer says so.
}

// watch gives the terminal each new size of the person's. Where limpet was stopped, a shell
// has had the person's terminal meanwhile, and set it as it wants it.
func (a *attachment) watch(ctx context.Context, fd int, signals <-chan os.Signal) error {
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGCONT {
				if _, err := term.MakeRaw(fd); err != nil {
					return fmt.Errorf("switching the terminal to raw mode again: %w", err)
				}
				a.paintAgain()
			}
			if a.resizes() {
				a.resize()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// paintAgain has the screen painted anew.
func (a *attachment) paintAgain() {
	select {
	case a.again <- struct{}{}:
	default: // It is asked for already.
	}
}

// note shows a message, mostly that the connection is lost, in the first line of the screen. When the terminal answers again, the screen is
// painted anew.
func (a *attachment) note(line string) {
	const saved, restored = "\x1b\\\x1b7\x1b[m\x1b[1;1H", "\x1b[m\x1b8"
	if !a.noted.CompareAndSwap(false, true) {
		return
	}
	line = strings.TrimSpace(line)
	if over := ansi.StringWidth(line) - terminalSize(a.out).Cols; over > 0 { // Its end says most.
		const dots = "..."
		line = ansi.TruncateLeft(line, over+len(dots), dots)
	}
	go func() { // Nothing waits for it: the person's terminal may block. It ends when the client is closed.
		_, _ = a.out.WriteString(saved + "\x1b[7m" + line + "\x1b[K" + restored) // Best effort.
		_, err := a.t.current()                                                  // It waits for the connection.
		a.noted.Store(false)
		if err == nil {
			a.paintAgain()
		}
	}()
}

// show paints the screen as it is, and then what comes.
func (a *attachment) show(ctx context.Context) error {
	if _, err := a.out.WriteString(keepTitle + strings.Repeat("\n", terminalSize(a.out).Rows)); err != nil { // What was to be seen can be scrolled back to.
		return err
	}
	if a.resizes() {
		a.resize()
	}
	for {
		s, err := a.t.Screen()
		if err != nil {
			return err
		}
		if _, err := a.out.Write(append([]byte("\x1b\\"), cropped(s.Screen, terminalSize(a.out)).ANSI()...)); err != nil {
			return err
		}
		a.shown.Store(s.Offset)
		v, err := a.t.follow(s.Offset)
		if err != nil {
			return err
		}
		missed, err := a.pass(ctx, v)
		_ = v.Close() // It cannot fail.
		switch {
		case err != nil && errors.Is(err, io.EOF):
			a.end(parting{})
			return nil
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !missed:
			return nil
		}
	}
}

// pass shows what comes, until something was missed, or the screen is to be painted anew
// for another reason.
func (a *attachment) pass(ctx context.Context, v viewer) (missed bool, err error) {
	next, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-a.again:
			stop(errAgain)
		case <-next.Done():
		}
	}()
	var filter screen.QueryFilter
	for {
		c, err := v.Next(next)
		if errors.Is(err, errAgain) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if c.Missed > 0 {
			return true, nil
		}
		if _, err := a.out.Write(filter.Filter(nil, c.Data)); err != nil {
			return false, err
		}
		a.shown.Store(c.Offset + int64(len(c.Data)))
	}
}

var errAgain = errors.New("the screen is to be painted anew")

// read takes the keys. It ends with limpet: nothing frees a read of a terminal.
func (a *attachment) read() error {
	defer func() {
		close(a.keys)
		a.end(parting{detached: true})
	}()
	for {
		b := make([]byte, 32<<10)
		n, err := os.Stdin.Read(b)
		if b = b[:n]; n > 0 {
			at := a.leaves(b)
			if !a.flags.readOnly && at != 0 {
				if at > 0 {
					b = b[:at]
				}
				select {
				case a.keys <- b:
				default: // Nobody has read for long.
					_, _ = a.out.WriteString("\a")
				}
			}
			if at >= 0 {
				return nil
			}
		}
		if err != nil { // The person's terminal is gone.
			return nil
		}
	}
}

// leaves is where the keys are by which a person leaves; -1 if there are none.
func (a *attachment) leaves(b []byte) int {
	at := keyIn(b, a.detach)
	if a.flags.readOnly {
		if ctrlC := keyIn(b, ctrlCByte); at < 0 || ctrlC >= 0 && ctrlC < at {
			at = ctrlC
		}
	}
	return at
}

const ctrlCByte = 3

// keyIn is where Ctrl and a key is in what was typed. Programs may ask terminals to send it
// as a sequence: by xterm's modifyOtherKeys, or by kitty's protocol.
func keyIn(b []byte, key int) int {
	if key < 0 {
		return -1
	}
	code := key | 0x40
	if code >= 'A' && code <= 'Z' {
		code |= 0x20
	}
	first := bytes.IndexByte(b, byte(key))
	for _, form := range []string{"\x1b[27;5;%d~", "\x1b[%d;5u", "\x1b[%d;5:1u"} {
		if at := bytes.Index(b, fmt.Appendf(nil, form, code)); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// write types the keys.
func (a *attachment) write(ctx context.Context) error {
	for {
		select {
		case b, more := <-a.keys:
			if !more {
				return nil
			}
			if _, err := a.t.Write(b); errors.Is(err, terminal.ErrNotRead) || errors.Is(err, terminal.ErrLineTooLong) {
				_, _ = a.out.WriteString("\a")
			} else if a.t.resumes && errors.Is(err, remote.ErrUnreachable) { // It may have been typed. The viewer fails if the connection stays lost.
				_, _ = a.out.WriteString("\a")
			} else if err != nil && !errors.Is(err, terminal.ErrEnded) { // Of that the viewer tells, behind the last output.
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
