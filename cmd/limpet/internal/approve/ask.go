package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/questions"
)

// Modes are the values of --approve.
var Modes = []string{"ask", "deny", "off"}

// Terminal opens the terminal of limpet, if a person can be asked there now; else it returns nil. Close it.
func Terminal() *os.File {
	if within() {
		return nil // The script's author may be the one who types there.
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

// within reports whether limpet runs in a session, a job or a terminal of limpet.
func within() bool {
	return slices.ContainsFunc(environ.Marks, func(name string) bool { return os.Getenv(name) != "" })
}

// Within reports whether limpet runs in a session, a job or a terminal of limpet, also where a process above it has taken that out of its
// environment, as far as it can be seen.
func Within() bool { return within() || questions.Within(os.Getpid()) }

// About is what else a question shows.
type About struct {
	From  string // who asks; empty: this limpet
	File  string // the text of the file that the script runs, if it does no more than that
	Stdin string // what the script reads
	Far   bool   // it is asked on another machine: no rule of this one is for it
	Once  bool   // an answer for later means no more than one for this time
}

// Ask shows a question on a terminal, and waits for a key; of a no with a reason, for a line. What was typed before the question counts
// for nothing. When ctx ends the error is its cause.
func Ask(ctx context.Context, tty *os.File, q approval.Question, about About) (approval.Reply, error) {
	fail := func(err error) (approval.Reply, error) {
		return approval.Reply{}, fmt.Errorf("asking on the terminal: %w", err)
	}
	fd := int(tty.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return fail(err)
	}
	defer term.Restore(fd, before) // Best effort: the terminal may be gone.
	_ = flush(fd)                  // As above.
	rules, lasting := always(q)
	if about.Far {
		rules, lasting = nil, false
	}
	if _, err := io.WriteString(tty, strings.ReplaceAll(asked(q, about)+keysFor(q, rules, about.Once), "\n", "\r\n")); err != nil {
		return fail(err)
	}
	key, err := readKey(ctx, tty)
	if err != nil {
		_, _ = io.WriteString(tty, "\r\n") // As above.
		return approval.Reply{}, err
	}
	answer, said := meaning(q, key)
	if about.Once && answer == approval.Session {
		answer, said = approval.Once, "yes"
	}
	if lasting && (key == 'a' || key == 'A') {
		answer, said = approval.Session, "yes, always"
		if err := remember(ctx, rules); err != nil {
			answer, said = approval.Once, "yes, this time: the rule cannot be written: "+err.Error()
		}
	}
	_, _ = io.WriteString(tty, said) // As above.
	if key != 'r' && key != 'R' {
		_, _ = io.WriteString(tty, "\r\n") // As above.
		return approval.Reply{Answer: answer}, nil
	}
	reason, err := readLine(ctx, tty, true)
	_, _ = io.WriteString(tty, "\r\n") // As above.
	if errors.Is(err, ErrNo) {         // A no all the same.
		err = nil
	}
	return approval.Reply{Reason: strings.TrimSpace(strings.ToValidUTF8(string(reason), ""))}, err
}

// meaning is what a key means, and what is shown for it. Whatever is not yes is no: Enter, Escape and Ctrl-C, too.
func meaning(q approval.Question, key byte) (approval.Answer, string) {
	switch key {
	case 'y', 'Y':
		return approval.Once, "yes"
	case 's', 'S':
		return approval.Session, cmp.Or(yesAgain(q), "yes")
	case 'r', 'R':
		return approval.No, "no, because: "
	}
	return approval.No, "no"
}

// readKey waits for a key; ctx ends that.
func readKey(ctx context.Context, tty *os.File) (byte, error) {
	w, err := newWait(ctx)
	if err != nil {
		return 0, err
	}
	defer w.close()
	var keys [16]byte
	n, err := w.read(tty, keys[:])
	if err != nil || n > 1 {
		return 0, err // More than one byte is a paste or a special key, and no answer.
	}
	return keys[0], nil
}

// wait is for what is typed, until a context ends. Close it.
type wait struct {
	ctx        context.Context
	ended, end *os.File // of a pipe: poll sees its end
	stop       func() bool
}

func newWait(ctx context.Context) (*wait, error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("asking on the terminal: %w", err)
	}
	w := &wait{ctx: ctx, ended: ended, end: end}
	w.stop = context.AfterFunc(ctx, func() { _ = end.Close() }) // Nothing was written.
	return w, nil
}

func (w *wait) close() {
	if w.stop() {
		_ = w.end.Close() // As above.
	}
	_ = w.ended.Close() // Nothing was read.
}

// read reads what was typed, a byte at least.
func (w *wait) read(tty *os.File, keys []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(tty.Fd()), Events: unix.POLLIN}, {Fd: int32(w.ended.Fd())}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("asking on the terminal: %w", err)
		case fds[1].Revents != 0:
			return 0, context.Cause(w.ctx)
		}
		n, err := unix.Read(int(tty.Fd()), keys)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n == 0:
			return 0, fmt.Errorf("asking on the terminal: it is gone: %w", errors.Join(err, io.EOF))
		}
		return n, nil
	}
}

// asked is the text of a question.
func asked(q approval.Question, about About) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", title(q, about.From))
	lines(&b, q.Script)
	if q.Input != "" && strings.HasSuffix(q.Script, "\n") {
		b.WriteString("\nWith Enter at the end.\n")
	}
	for _, more := range []struct{ title, text string }{{"The file has", about.File}, {"It reads", about.Stdin}} {
		if more.text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n", more.title)
			lines(&b, more.text)
		}
	}
	b.WriteString("\n")
	for _, line := range reasons(q) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// title is the first line of a question. From is who asks; empty: this limpet.
func title(q approval.Question, from string) string {
	who := "limpet: "
	if from != "" {
		who += Escape(from) + " asks: "
	}
	if q.Input != "" {
		return fmt.Sprintf("%smay this be typed to %s?", who, Escape(q.Input))
	}
	return fmt.Sprintf("%smay this run in %s?", who, Escape(q.Dir))
}

// reasons are the lines that say why a question is asked.
func reasons(q approval.Question) []string {
	shown := make([]string, 0, len(q.Judgement.Findings))
	for _, f := range q.Judgement.Findings {
		line := Escape(f.Reason) + " (" + Escape(f.Rule) + ")"
		if f.Kind != approval.KindScript {
			line = Escape(shortened(f.Text)) + ": " + line
		}
		if f.Verdict == q.Judgement.Verdict && f.Verdict != approval.Allow && !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	if len(shown) == 0 {
		reason, _ := q.Why()
		shown = append(shown, Escape(reason))
	}
	if extra := len(shown) - reasonsMax; extra > 0 {
		shown = append(shown[:reasonsMax], fmt.Sprintf("and %d more; limpet approve explain tells them", extra))
	}
	return shown
}

// keysFor says which keys answer a question.
func keysFor(q approval.Question, rules []approval.Own, once bool) string {
	keys := "\n"
	for i, rule := range rules {
		if i == 0 {
			keys += fmt.Sprintf("a: %s:\n", alwaysBelow(rule))
		}
		keys += "     " + Escape(rule.String()) + "\n"
	}
	keys += "y: yes   "
	if again := yesAgain(q); again != "" && !once {
		keys += "s: " + again + "   "
	}
	return keys + "r: no, with a reason   any other key: no  "
}

// alwaysBelow says where the rules of an answer hold, and for how long.
func alwaysBelow(rule approval.Own) string {
	return fmt.Sprintf("always below %s, for %d days", Escape(rule.Dir), int(alwaysFor.Hours()/24))
}

// yesAgain is what the answer Session means; empty if it means no more than Once.
func yesAgain(q approval.Question) string {
	switch {
	case q.Input != "":
		return "yes, and whatever else is typed there"
	case q.Changed: // It may be another command by then.
		return ""
	}
	return "yes, and whenever it comes again"
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
