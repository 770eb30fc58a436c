package sessions

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// screens shows one session at a time on a person's terminal, with a line above that has all of them, and one below. Its
// methods are safe for concurrent use.
type screens struct {
	mu      sync.Mutex
	pages   []*page // as they came
	shown   int     // which of them is
	empty   string  // what is said while there is none
	changed chan struct{}
}

// page is what is to be seen of a session.
type page struct {
	name   string
	lines  []string
	bytes  int  // that they have
	first  int  // how many lines before them are kept no more
	last   int  // behind the last line on the screen, counted from the first ever; less than 0: it follows
	unseen bool // it has lines that were not on the screen
	state  string
}

// What is kept: so many lines of a session, and bytes, and as many again before any go; and so many sessions, the last that have printed something.
const (
	mostLines = 5000
	mostBytes = 4 << 20
	mostPages = 200
)

func newScreens(empty string) *screens {
	return &screens{empty: empty, changed: make(chan struct{}, 1)}
}

// line adds a line to a session's page.
func (s *screens) line(name, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.page(name)
	text = flat(text)
	p.lines, p.bytes = append(p.lines, text), p.bytes+len(text)
	if len(p.lines) > 2*mostLines || p.bytes > 2*mostBytes {
		more := 0
		for len(p.lines)-more > mostLines || p.bytes > mostBytes {
			p.bytes -= len(p.lines[more])
			more++
		}
		p.lines, p.first = append([]string(nil), p.lines[more:]...), p.first+more
	}
	p.unseen = p != s.pages[s.shown]
	s.tell()
	return nil
}

// tabWidth is how wide tabs are, which are spaces here: a line that has some is as wide as it is measured.
const tabWidth = 8

// flat is a text with spaces for its tabs.
func flat(text string) string {
	before, rest, found := strings.Cut(text, "\t")
	if !found {
		return text
	}
	var b strings.Builder
	col := 0
	for ; found; before, rest, found = strings.Cut(rest, "\t") {
		col += ansi.StringWidth(before)
		gap := tabWidth - col%tabWidth
		b.WriteString(before + strings.Repeat(" ", gap))
		col += gap
	}
	return b.String() + before
}

// state says what a session does.
func (s *screens) state(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page(name).state = flat(text)
	s.tell()
}

// page is that of a session. The caller holds mu.
func (s *screens) page(name string) *page {
	for _, p := range s.pages {
		if p.name == name {
			return p
		}
	}
	p := &page{name: name, last: -1}
	if len(s.pages) == mostPages { // The oldest goes that is not looked at.
		gone := 0
		if s.shown == 0 {
			gone = 1
		} else {
			s.shown--
		}
		s.pages = slices.Delete(s.pages, gone, gone+1)
	}
	s.pages = append(s.pages, p)
	return p
}

func (s *screens) tell() {
	select {
	case s.changed <- struct{}{}:
	default: // It looks anyway.
	}
}

// key does what a key is for, and reports whether that is to leave. Rows are those for lines.
func (s *screens) key(name string, rows int) (leave bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "q" || name == "\x03" || name == "\x04" || name == "\x1c" {
		return true
	}
	if len(s.pages) == 0 {
		return false
	}
	n := len(s.pages)
	switch name {
	case "\t", "n", "l", "\x1b[C", "\x1bOC":
		s.shown = (s.shown + 1) % n
	case "\x1b[Z", "p", "h", "\x1b[D", "\x1bOD":
		s.shown = (s.shown + n - 1) % n
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		if i := int(name[0] - '1'); i < n {
			s.shown = i
		}
	case "k", "\x1b[A", "\x1bOA":
		s.pages[s.shown].scroll(-1, rows)
	case "j", "\x1b[B", "\x1bOB", "\r":
		s.pages[s.shown].scroll(1, rows)
	case "b", "\x1b[5~":
		s.pages[s.shown].scroll(1-rows, rows)
	case " ", "f", "\x1b[6~":
		s.pages[s.shown].scroll(rows-1, rows)
	case "g", "\x1b[H", "\x1bOH", "\x1b[1~":
		s.pages[s.shown].scroll(-2*mostLines, rows)
	case "G", "\x1b[F", "\x1bOF", "\x1b[4~":
		s.pages[s.shown].last = -1
	}
	s.pages[s.shown].unseen = false
	return false
}

// scroll moves by lines. At the end it follows.
func (p *page) scroll(by, rows int) {
	end := p.first + len(p.lines)
	last := end
	if p.last >= 0 {
		last = max(p.last, p.first)
	}
	p.last = max(last+by, p.least(rows))
	if p.last >= end {
		p.last = -1
	}
}

// least is what last is at least: the first lines are on the screen then, as many as have room if none of them is wider than it.
func (p *page) least(rows int) int { return p.first + min(rows, len(p.lines)) }

// frame is what a terminal of a size has to show.
func (s *screens) frame(cols, rows int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, rows)
	lines = append(lines, s.tabs(cols))
	body := max(rows-2, 0)
	below := "Tab next  ↑↓ scroll  q quit"
	var state string
	if len(s.pages) == 0 {
		lines = append(lines, strings.Split(ansi.Wrap(s.empty, cols, ""), "\n")...)
	} else {
		p := s.pages[s.shown]
		last := p.first + len(p.lines)
		if p.last >= 0 {
			p.last = max(p.last, p.least(body)) // Those that were shown may be kept no more.
			below = fmt.Sprintf("%d more lines  G end  q quit", last-p.last)
			last = p.last
		}
		state = p.state
		var shown []string
		for i := last - p.first - 1; i >= 0 && len(shown) < body; i-- {
			wrapped := strings.Split(ansi.Hardwrap(p.lines[i], cols, true), "\n")
			shown = append(wrapped, shown...)
		}
		lines = append(lines, shown[max(len(shown)-body, 0):]...)
	}
	for len(lines) < body+1 {
		lines = append(lines, "")
	}
	lines = lines[:body+1]
	if rows > 1 {
		room := cols - ansi.StringWidth(below) - 1
		if room < 0 {
			room, below = cols, ""
		}
		state = ansi.Truncate(state, room, "…")
		gap := max(cols-ansi.StringWidth(state)-ansi.StringWidth(below), 0)
		lines = append(lines, "\x1b[7m"+state+strings.Repeat(" ", gap)+below+"\x1b[m")
	}
	return lines[:min(len(lines), rows)]
}

// tabs is the line with all sessions, so far as they fit: the one that is shown does.
func (s *screens) tabs(cols int) string {
	if len(s.pages) == 0 {
		return "\x1b[7m" + ansi.Truncate(" limpet watch"+strings.Repeat(" ", cols), cols, "") + "\x1b[m"
	}
	labels := make([]string, len(s.pages))
	for i, p := range s.pages {
		mark := " "
		if p.unseen {
			mark = "*"
		}
		labels[i] = ansi.Truncate(fmt.Sprintf(" %d %s%s", i+1, p.name, mark), max(cols, 1), "…")
	}
	from, width := s.shown, ansi.StringWidth(labels[s.shown])
	for from > 0 && width+ansi.StringWidth(labels[from-1]) <= cols {
		from--
		width += ansi.StringWidth(labels[from])
	}
	var line strings.Builder
	width = 0
	for i := from; i < len(labels); i++ {
		if width += ansi.StringWidth(labels[i]); width > cols {
			break
		}
		if i == s.shown {
			line.WriteString("\x1b[7m" + labels[i] + "\x1b[m")
		} else {
			line.WriteString(labels[i])
		}
	}
	return line.String()
}

// How soon a change is painted after the last one, and how long a terminal that takes nothing is waited for at the end.
const (
	frameTime = 33 * time.Millisecond
	lastWords = time.Second
)

// show has a person look at it, until they leave, or ctx ends. The terminal is then as it was.
func (s *screens) show(ctx context.Context, in, out *os.File) error {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(winch)
	frames, painted := make(chan string, 1), make(chan struct{})
	go func() { // A terminal may take nothing, for ever: nobody else waits for it. One that is gone ends limpet by a signal.
		defer close(painted)
		_, _ = out.WriteString("\x1b[?1049h\x1b[?25l\x1b[?7l") // A line that is wider than it was thought to be is cut.
		for frame := range frames {
			_, _ = out.WriteString(frame)
		}
		_, _ = out.WriteString("\x1b[?7h\x1b[?25h\x1b[?1049l")
	}()
	paint := func(frame string) {
		select {
		case <-frames: // It was not painted yet, and need not be.
		default:
		}
		frames <- frame
	}
	defer func() { // Also if something panics.
		close(frames)
		select {
		case <-painted:
		case <-time.After(lastWords):
		}
		_ = term.Restore(int(in.Fd()), before) // There is nobody else to be told.
	}()
	keys := make(chan string)
	go readKeys(ctx, in, keys) // It may wait for a key longer than limpet lives.
	for {
		cols, rows, err := term.GetSize(int(out.Fd()))
		if err != nil || cols <= 0 || rows <= 0 {
			cols, rows = 80, 24
		}
		// Each line is cleared first: behind its last column there is nothing to clear but that.
		paint("\x1b[?2026h\x1b[H\x1b[K" + strings.Join(s.frame(cols, rows), "\r\n\x1b[K") + "\x1b[?2026l")
		next := time.NewTimer(frameTime)
		var soon <-chan time.Time
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case key, open := <-keys:
				if !open || s.key(key, max(rows-2, 1)) {
					return nil
				}
				again = true
			case <-winch:
				again = true
			case <-s.changed:
				soon = next.C
			case <-soon:
				again = true
			}
		}
		next.Stop()
	}
}

// readKeys sends what is typed, a key at a time, until the terminal is gone or ctx has ended.
func readKeys(ctx context.Context, in *os.File, keys chan<- string) {
	defer close(keys)
	buf := make([]byte, 256)
	for {
		n, err := in.Read(buf)
		if err != nil || n == 0 {
			return
		}
		for text := string(buf[:n]); text != ""; {
			var key string
			key, text = nextKey(text)
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nextKey is the first key of what was read: a character, or a sequence of escape.
func nextKey(text string) (key, rest string) {
	if !strings.HasPrefix(text, "\x1b[") && !strings.HasPrefix(text, "\x1bO") {
		for i := range text {
			if i > 0 {
				return text[:i], text[i:]
			}
		}
		return text, ""
	}
	for i := 2; i < len(text); i++ {
		if text[i] >= 0x40 && text[i] <= 0x7e {
			return text[:i+1], text[i+1:]
		}
	}
	return text, ""
}
