package host

import (
	"bufio"
	"bytes"
	"crypto/rand"
	_ "embed" // far.sh
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

//go:embed far.sh
var functions string

// farShell is a POSIX sh on another machine, with pipes. It reads scripts from its standard input, and may read ahead: so nothing is
// sent that is not awaited. Each line of an answer begins with a mark, which is drawn at random; all else is noise, as what a login
// prints.
type farShell struct {
	to       *os.File
	out      *os.File
	from     *bufio.Reader // of out
	mark     string
	patience time.Duration // without any sign of life
	onItsWay time.Duration // how much longer that may be, since a piece of a program is on its way
	until    time.Time     // when it must be over, but for a program that is being sent
	asked    string        // the limpet over there that was asked which versions it speaks, until there is another line
	noise    noise
	taught   bool // it has the functions of far.sh
	answered bool // there was a line with the mark
	box      bool // it is in a container, or in a pod
}

// Bounds of what a shell may print.
const (
	mostLine   = 16 << 10
	mostNoise  = 1 << 20 // before there is an answer
	mostAnswer = 1000    // lines
)

// errFunction means that a function of far.sh has failed.
var errFunction = errors.New("a step over there failed")

// hangsError means that the limpet in the PATH over there does not say which versions of the protocol it speaks.
type hangsError struct {
	path string
	in   time.Duration
}

func (e *hangsError) Error() string {
	return fmt.Sprintf("the limpet in the PATH over there does not answer: %s has not said within %v which versions of the protocol it speaks", e.path, e.in)
}

// askPatience is how long that limpet has.
const askPatience = 10 * time.Second

// errEcho means that what was sent came back.
var errEcho = errors.New("it sends back what it is sent, as cat does, and as a terminal does")

var errFlood = errors.New("it printed too much that makes no sense: what is reached there is no POSIX sh, or it prints on its own")

func newFarShell(to, out *os.File, patience time.Duration) *farShell {
	f := &farShell{to: to, out: out, from: bufio.NewReaderSize(out, mostLine), mark: "limpet-" + rand.Text(), patience: patience}
	f.goesOn(0)
	return f
}

// slowest is how many bytes a second must get through. On a way on which packets are lost a piece of a program is on its way for
// longer than patience is: of 300 ms and 5 % a second carries 20 KB, and most of what was written waits in ssh and the kernel.
const slowest = 8 << 10

// goesOn gives it more time, since there is progress; still more if size bytes are on their way.
func (f *farShell) goesOn(size int) {
	f.onItsWay = time.Duration(size) * time.Second / slowest
	f.until = time.Now().Add(2 * (f.patience + f.onItsWay))
}

// deadline is when the next sign of life must have come.
func (f *farShell) deadline() time.Time {
	if soon := time.Now().Add(f.patience + f.onItsWay); soon.Before(f.until) {
		return soon
	}
	return f.until
}

// markIs begins the line that names the mark, and endOfCall is the last command of each call.
const markIs, endOfCall = "m=", `printf '%s end %s\n' "$m" "$?"`

// call runs a function of far.sh with variables, and returns the lines of its answer. The function reads no standard input, unless
// there is something to feed, which is called for each line that is "ready".
func (f *farShell) call(function string, vars map[string]string, feed func() error) (answer, error) {
	var b strings.Builder
	if !f.taught {
		f.taught = true
		// The mark is not in the text as it is in an answer: a terminal that echoes it says nothing.
		half := len(f.mark) / 2
		fmt.Fprintf(&b, "%s\n%s%s''%s\n", functions, markIs, f.mark[:half], f.mark[half:])
	}
	for name, value := range vars {
		fmt.Fprintf(&b, "%s=%s\n", name, quoted(value))
	}
	input := ""
	if feed == nil {
		input = " </dev/null"
	}
	fmt.Fprintf(&b, "%s%s; %s\n", function, input, endOfCall)
	if err := f.send([]byte(b.String())); err != nil {
		return nil, err
	}
	var a answer
	for range mostAnswer {
		word, rest, err := f.line()
		if f.asked != "" {
			if errors.Is(err, errMute) {
				return a, &hangsError{plain([]byte(f.asked)), min(askPatience, f.patience)}
			}
			f.asked = ""
			f.goesOn(0)
		}
		switch {
		case err != nil:
			return a, err
		case word == "asking":
			f.asked = rest
			f.until = time.Now().Add(min(askPatience, f.patience))
		case word == "end":
			if rest != "0" {
				return a, fmt.Errorf("%w with %.20s", errFunction, rest)
			}
			return a, nil
		case word == "ready" && feed != nil:
			if err := feed(); err != nil {
				return a, err
			}
		default:
			a = append(a, [2]string{word, rest})
		}
	}
	return a, errFlood
}

// answer has the lines of one, as the first word and the rest.
type answer [][2]string

// all are the rests of the lines that begin with a word.
func (a answer) all(word string) (rests []string) {
	for _, line := range a {
		if line[0] == word {
			rests = append(rests, line[1])
		}
	}
	return rests
}

// one is the last of them; empty if there is none.
func (a answer) one(word string) string {
	if all := a.all(word); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// quoted is a text as a word for a POSIX sh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// send writes. Each piece must get there in the time that the shell has for a sign of life.
func (f *farShell) send(b []byte) error {
	const piece = 32 << 10
	for len(b) > 0 {
		_ = f.to.SetWriteDeadline(f.deadline()) // A pipe has deadlines.
		n, err := f.to.Write(b[:min(piece, len(b))])
		if err != nil {
			return f.broken(err)
		}
		b = b[n:]
	}
	return nil
}

// sendPiece writes a piece of a program, which the next line must be an answer to.
func (f *farShell) sendPiece(b []byte) error {
	f.goesOn(len(b))
	return f.send(b)
}

// line reads the next line of an answer.
func (f *farShell) line() (word, rest string, err error) {
	for read := 0; read < mostNoise; {
		line, err := f.raw()
		if err != nil {
			return "", "", err
		}
		read += len(line) + 1
		if text, ok := strings.CutPrefix(line, f.mark+" "); ok {
			f.answered = true
			word, rest, _ = strings.Cut(text, " ")
			return word, rest, nil // A path may end in a blank.
		}
		if isEcho(line) {
			return "", "", errEcho
		}
		_, _ = f.noise.Write([]byte(line + "\n")) // It cannot fail.
	}
	return "", "", errFlood
}

// sentLines are the lines that a shell is sent. Those that are long are found in others, too: see isEcho.
var sentLines = sync.OnceValue(func() (sent struct {
	all  map[string]bool
	long []string
}) {
	const long = 20
	sent.all = make(map[string]bool)
	sent.long = []string{markIs + "limpet-", endOfCall}
	for line := range strings.Lines(functions) {
		line = strings.TrimSpace(line)
		if sent.all[line] = true; len(line) >= long {
			sent.long = append(sent.long, line)
		}
	}
	return sent
})

// sentVariable is a line that sets a variable of a call.
var sentVariable = lazyregexp.New(`^[a-z]+='[^']*'$`)

// isEcho reports whether a line has one in it that was sent, and which nothing else prints.
func isEcho(line string) bool {
	return slices.ContainsFunc(sentLines().long, func(long string) bool { return strings.Contains(line, long) })
}

// raw reads a line without its newline. A terminal puts a carriage return before that.
func (f *farShell) raw() (string, error) {
	_ = f.out.SetReadDeadline(f.deadline()) // As above.
	b, err := f.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil // It is noise, or a lie.
	}
	if err != nil {
		_, _ = f.noise.Write(b) // It cannot fail.
		return "", f.broken(err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// rest reads what is left to read, when there is no answer any more.
func (f *farShell) rest() {
	_ = f.out.SetReadDeadline(time.Now().Add(time.Second))      // As above.
	_, _ = io.Copy(&f.noise, io.LimitReader(f.from, mostNoise)) // It is for people.
}

// errMute means that nothing comes from the other side.
var errMute = errors.New("nothing was heard from there")

// errEnded means that the other side has closed its output.
var errEnded = errors.New("it ended")

func (f *farShell) broken(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w for %v", errMute, f.patience+f.onItsWay)
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), isBroken(err):
		return errEnded
	}
	return err
}

// noise keeps the end of what is printed. Its methods are safe for concurrent use. The zero value is empty.
type noise struct {
	mu sync.Mutex
	b  []byte
}

func (n *noise) Write(p []byte) (int, error) {
	const most = 2000
	n.mu.Lock()
	defer n.mu.Unlock()
	n.b = append(n.b, p...)
	if len(n.b) > 2*most {
		kept := n.b[len(n.b)-most:]
		if i := bytes.IndexByte(kept, '\n'); i+1 < len(kept) {
			kept = kept[i+1:] // The rest of a line tells nothing.
		}
		n.b = bytes.Clone(kept)
	}
	return len(p), nil
}

// String is that, for people.
func (n *noise) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b []byte
	for line := range bytes.Lines(n.b) { // What was sent tells nothing.
		text := strings.TrimSpace(string(line))
		if !sentLines().all[text] && !isEcho(text) && !sentVariable().MatchString(text) {
			b = append(b, line...)
		}
	}
	return plain(b)
}
