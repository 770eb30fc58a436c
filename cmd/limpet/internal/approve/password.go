package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
)

// ErrNo is what a person says who gives no password.
var ErrNo = errors.New("the answer was no")

// longestAnswer is in bytes: sudo and ssh take no more.
const longestAnswer = 1023

// Password asks a program's question on a terminal, and returns the answer, which the caller overwrites. Ctrl-C, Ctrl-D, Ctrl-\ and an empty line
// are [ErrNo], as is any key but y where a yes or a no is wanted. What was typed before the question counts for nothing, nor does what
// was typed behind the answer.
func Password(ctx context.Context, tty *os.File, q command.PasswordQuestion) ([]byte, error) {
	fd := int(tty.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("asking on the terminal: %w", err)
	}
	defer func() {
		_ = flush(fd)                // Best effort: the terminal may be gone.
		_ = term.Restore(fd, before) // As above.
	}()
	_ = flush(fd) // As above.
	if _, err := io.WriteString(tty, strings.ReplaceAll(askedFor(q), "\n", "\r\n")); err != nil {
		return nil, fmt.Errorf("asking on the terminal: %w", err)
	}
	var answer []byte
	switch q.Kind {
	case command.AskNothing:
		return nil, nil
	case command.AskConfirm:
		answer, err = readYes(ctx, tty)
	default:
		answer, err = readLine(ctx, tty, q.Kind == command.AskName)
	}
	said := ""
	if errors.Is(err, ErrNo) {
		said = "no"
	} else if q.Kind == command.AskConfirm && err == nil {
		said = "yes"
	}
	_, _ = io.WriteString(tty, said+"\r\n") // As above.
	return answer, err
}

func readYes(ctx context.Context, tty *os.File) ([]byte, error) {
	key, err := readKey(ctx, tty)
	switch {
	case err != nil:
		return nil, err
	case key != 'y' && key != 'Y':
		return nil, ErrNo
	}
	return []byte("yes"), nil
}

// The keys that mean something in a line that is typed.
const (
	keyCtrlC     = 0x03
	keyCtrlD     = 0x04
	keyBackspace = 0x08
	keyCtrlU     = 0x15
	keyCtrlBack  = 0x1c
	keyDelete    = 0x7f
)

// readLine reads a line on a terminal in raw mode, and shows it or not. All copies but the one that it returns are overwritten.
func readLine(ctx context.Context, tty *os.File, shown bool) ([]byte, error) {
	w, err := newWait(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var keys [64]byte
	defer clear(keys[:])
	line := make([]byte, 0, longestAnswer) // It never grows: that would leave a copy.
	refuse := func(err error) ([]byte, error) {
		clear(line[:cap(line)])
		return nil, err
	}
	show := func(text string) {
		if shown {
			_, _ = io.WriteString(tty, text) // The answer counts, also if nobody sees it.
		}
	}
	for {
		n, err := w.read(tty, keys[:])
		if err != nil {
			return refuse(err)
		}
		for i, key := range keys[:n] {
			switch key {
			case '\r', '\n':
				if len(line) == 0 {
					return refuse(ErrNo)
				}
				return line, nil
			case keyCtrlC, keyCtrlD, keyCtrlBack:
				return refuse(ErrNo)
			case keyBackspace, keyDelete:
				if _, size := utf8.DecodeLastRune(line); size > 0 {
					clear(line[len(line)-size:])
					line = line[:len(line)-size]
					show("\b \b")
				}
			case keyCtrlU:
				show(strings.Repeat("\b \b", utf8.RuneCount(line)))
				clear(line)
				line = line[:0]
			default:
				if len(line) == longestAnswer {
					return refuse(fmt.Errorf("the answer has more than %d bytes", longestAnswer))
				}
				line = append(line, key)
				if key >= 0x20 {
					show(string(keys[i : i+1]))
				}
			}
		}
	}
}

// askedFor is the text of a question.
func askedFor(q command.PasswordQuestion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "limpet: %s:\n", wants(q))
	lines(&b, q.Prompt)
	for _, line := range asker(q) {
		fmt.Fprintf(&b, "%s\n", line)
	}
	switch q.Kind {
	case command.AskPassword:
		b.WriteString("Password, which is not shown (Enter alone or Ctrl-C: no): ")
	case command.AskName:
		b.WriteString("Answer (Enter alone or Ctrl-C: no): ")
	case command.AskConfirm:
		b.WriteString("y: yes   any other key: no  ")
	}
	return b.String()
}

// wants says what a program asks for.
func wants(q command.PasswordQuestion) string {
	asker := cmp.Or(Escape(q.Program), "a program")
	switch q.Kind {
	case command.AskConfirm:
		return asker + " asks for a yes, with these words"
	case command.AskName:
		return asker + " asks, with these words"
	case command.AskNothing:
		return asker + " says"
	}
	return asker + " asks for a password, with these words"
}

// asker has the lines that say which program asks.
func asker(q command.PasswordQuestion) []string {
	lines := []string{"It runs as " + chain(q.Chain)}
	if q.Program == "" && q.Kind != command.AskNothing {
		lines = append(lines, "Beware: this is not the system's own sudo, ssh or git, and can do what it likes with the answer.")
	}
	if q.Again {
		lines = append(lines, "It asks again: the last answer was probably wrong.")
	}
	return lines
}

// keptBash is how limpet starts its bash: people need not read that.
const keptBash = "bash --noprofile --norc --noediting -i +H"

// chain tells which processes led to a question, the one that asks first.
func chain(asking []command.AskingProcess) string {
	var words []string
	for _, p := range asking {
		text := p.Command
		if text == keptBash {
			text = "bash"
		}
		words = append(words, fmt.Sprintf("%s [%d]", Escape(shortened(text)), p.PID))
	}
	if extra := len(words) - processesMax; extra > 0 {
		words = append(append(words[:processesMax/2:processesMax/2], fmt.Sprintf("%d more", extra)), words[processesMax/2+extra:]...)
	}
	return strings.Join(words, " <- ")
}

// processesMax bounds the processes that are shown.
const processesMax = 8
