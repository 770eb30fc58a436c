package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/environ"
)

// Modes are the values of --approve.
var Modes = []string{"ask", "deny", "off"}

// Terminal opens the terminal of limpet, if a person can be asked there now; else it returns nil. Close it.
func Terminal() *os.File {
	for _, name := range []string{environ.SessionVar, environ.CommandVar, environ.JobVar, environ.TerminalVar} {
		if os.Getenv(name) != "" {
			return nil // Whoever types there may be who is to be asked about.
		}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		_ = tty.Close() // It is that of other programs now: to read from it would stop this one.
		return nil
	}
	return tty
}

// Ask shows a question on a terminal, and waits for a key. Note says where the script is from; more is text that belongs to it, as that of
// a file that is run. What was typed before the question counts for nothing.
func Ask(ctx context.Context, tty *os.File, q approval.Question, note, more string) (approval.Answer, error) {
	fd := int(tty.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return approval.No, fmt.Errorf("asking on the terminal: %w", err)
	}
	defer term.Restore(fd, before) // Best effort: the terminal may be gone.
	_ = flush(fd)                  // As above.
	if _, err := io.WriteString(tty, strings.ReplaceAll(asked(q, note, more), "\n", "\r\n")); err != nil {
		return approval.No, fmt.Errorf("asking on the terminal: %w", err)
	}
	key, err := readKey(ctx, tty)
	if err != nil {
		_, _ = io.WriteString(tty, "\r\n") // As above.
		return approval.No, err
	}
	answer, said := meaning(key)
	_, _ = io.WriteString(tty, said+"\r\n") // As above.
	return answer, nil
}

// meaning is what a key means, and what is shown for it. Whatever is not yes is no: Enter, Escape and Ctrl-C, too.
func meaning(key byte) (approval.Answer, string) {
	switch key {
	case 'y', 'Y':
		return approval.Once, "yes"
	case 's', 'S':
		return approval.Session, "yes, and whenever it comes again"
	}
	return approval.No, "no"
}

// look is how often a wait for a key looks whether it is to end.
const look = 100 * time.Millisecond

// readKey waits for a key. A terminal cannot be read with a deadline.
func readKey(ctx context.Context, tty *os.File) (byte, error) {
	fds := []unix.PollFd{{Fd: int32(tty.Fd()), Events: unix.POLLIN}}
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := unix.Poll(fds, int(look.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
			continue
		case err != nil:
			return 0, fmt.Errorf("asking on the terminal: %w", err)
		}
		var keys [16]byte
		n, err = unix.Read(int(tty.Fd()), keys[:])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n == 0:
			return 0, fmt.Errorf("asking on the terminal: it is gone: %w", errors.Join(err, io.EOF))
		case n > 1:
			return 0x1b, nil // A paste, or a key that is none of these.
		}
		return keys[0], nil
	}
}

// asked is the text of a question.
func asked(q approval.Question, note, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "limpet: may this run in %s?", Escape(q.Dir))
	if note != "" {
		fmt.Fprintf(&b, " %s", Escape(note))
	}
	b.WriteString("\n\n")
	lines(&b, q.Script)
	if more != "" {
		b.WriteString("\n")
		lines(&b, more)
	}
	b.WriteString("\n")
	shown := make([]string, 0, len(q.Judgement.Findings))
	for _, f := range q.Judgement.Findings {
		line := Escape(f.Reason) + " (" + f.Rule + ")"
		if f.Kind != approval.KindScript {
			line = Escape(shortened(f.Text)) + ": " + line
		}
		if f.Verdict == q.Judgement.Verdict && f.Verdict != approval.Allow && !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	if len(shown) == 0 {
		shown = append(shown, "a script before it may have changed what names mean")
	}
	for i, line := range shown {
		if i == reasonsMax {
			fmt.Fprintf(&b, "  and %d more; limpet approve explain tells them\n", len(shown)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteString("\ny: yes   s: yes, and whenever it comes again   any other key: no  ")
	return b.String()
}

// reasonsMax bounds the reasons that are shown, and shortMax the part of the script with each, in bytes.
const (
	reasonsMax = 8
	shortMax   = 60
)

func shortened(text string) string {
	if line, _, more := strings.Cut(text, "\n"); more {
		text = line + " ..."
	}
	if len(text) > shortMax {
		text = strings.ToValidUTF8(text[:shortMax], "") + "..."
	}
	return text
}

// lines shows a text, each line behind a margin, so that none can be taken for one of limpet's.
func lines(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "  | %s\n", Escape(strings.TrimSuffix(line, "\n")))
	}
}
