package keeper

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/wire"
)

// journal is a file of the commands that came with an id of their caller's own, a line for each that
// is about to run, and one for how it ended:
//
//	key HEX .          of the hashes; the first line
//	asked ID HASH .    it may have run from now on
//	ended ID CODE .
//	void ID .          nothing ran, and it may be asked for again
//
// Each line is appended by one write, without a sync: the page cache survives every process, and a session
// does not survive the machine. A line without the dot was not written whole, and is none: bash had not seen
// the command, or nobody knows how it ended.
// Scripts may hold secrets: there is a hash of each, with a key that is another one in each journal, to tell one
// from another. The next keeper of the name gets the journal before it starts. There is no file before
// the first such command. Its methods are safe for concurrent use.
type journal struct {
	path string

	mu    sync.Mutex
	f     *os.File // nil before the first line
	torn  bool     // the last write failed, maybe in the middle of a line
	lines int
	noted
}

// noted is what a journal says.
type noted struct {
	key   []byte
	order []string // as they were asked for
	asked map[string]*asked
}

type asked struct {
	hash    string
	code    int  // -1: it is not known whether it has ended
	running bool // in this keeper, or waiting for its turn
}

// mostAsked is how many commands are remembered, but for those that run. The file has at most so many lines for
// each before it is written anew.
const (
	mostAsked = 4096
	mostLines = 4 * mostAsked
)

// lineEnd ends a line that was written whole.
const lineEnd = " .\n"

// mostJournal bounds the bytes of a file that is read.
const mostJournal = 8 << 20

// openJournal reads the journal of a keeper's directory, if there is one.
func openJournal(dir string) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalFile)}
	var err error
	if j.noted, err = readJournal(dir); err == nil && len(j.order) > 0 {
		err = j.rewrite()
	}
	return j, err
}

// inherit writes a journal of what those of other directories say, the oldest first.
func inherit(dir string, from []string) error {
	var all noted
	for _, one := range from {
		n, err := readJournal(one)
		if err != nil {
			return fmt.Errorf("what commands the last session of that name was asked for cannot be read: %w", err)
		}
		all.add(n)
	}
	if len(all.order) == 0 {
		return nil
	}
	return statedir.Write(filepath.Join(dir, journalFile), all.text())
}

func readJournal(dir string) (noted, error) {
	var n noted
	b, err := statedir.Read(filepath.Join(dir, journalFile), mostJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	for line := range strings.Lines(string(b)) {
		if line, whole := strings.CutSuffix(line, lineEnd); whole {
			n.read(strings.Fields(line))
		}
	}
	return n, err
}

// read takes note of a line. One that makes no sense is skipped.
func (n *noted) read(words []string) {
	switch {
	case len(words) == 2 && words[0] == "key":
		n.key, _ = hex.DecodeString(words[1]) // Without a key each script is another one.
	case len(words) == 3 && words[0] == "asked":
		n.put(words[1], &asked{hash: words[2], code: -1})
	case len(words) == 3 && words[0] == "ended" && n.asked[words[1]] != nil:
		if code, err := strconv.ParseUint(words[2], 10, 8); err == nil {
			n.asked[words[1]].code = int(code)
		}
	case len(words) == 2 && words[0] == "void":
		n.drop(words[1])
	}
}

// add takes over what another one says, which is younger.
func (n *noted) add(from noted) {
	if len(from.order) > 0 {
		n.key = from.key // It is the same: the other has it from here.
	}
	for _, id := range from.order {
		n.put(id, from.asked[id])
	}
}

func (n *noted) put(id string, one *asked) {
	if n.asked == nil {
		n.asked = make(map[string]*asked)
	}
	if n.asked[id] == nil {
		n.order = append(n.order, id)
	}
	n.asked[id] = one
}

func (n *noted) drop(id string) {
	if n.asked[id] != nil {
		delete(n.asked, id)
		n.order = slices.DeleteFunc(n.order, func(one string) bool { return one == id })
	}
}

// text is all of it in lines.
func (n *noted) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "key %x"+lineEnd, n.key)
	for _, id := range n.order {
		one := n.asked[id]
		fmt.Fprintf(&b, "asked %s %s"+lineEnd, id, one.hash)
		if one.code >= 0 {
			fmt.Fprintf(&b, "ended %s %d"+lineEnd, id, one.code)
		}
	}
	return b.Bytes()
}

// Ask implements [wire.Journal].
func (j *journal) Ask(id string, what []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.key == nil {
		j.key = make([]byte, sha256.Size)
		_, _ = rand.Read(j.key) // It does not fail.
	}
	mac := hmac.New(sha256.New, j.key)
	_, _ = mac.Write(what) // As above.
	hash := hex.EncodeToString(mac.Sum(nil))
	if one := j.asked[id]; one != nil {
		switch {
		case one.hash != hash:
			return wire.ErrOtherCommand
		case one.code >= 0:
			return &wire.EndedError{Code: one.code}
		}
		return wire.ErrMayHaveRun
	}
	if err := j.forget(); err != nil {
		return err
	}
	if err := j.write("asked " + id + " " + hash); err != nil {
		return err
	}
	j.put(id, &asked{hash: hash, code: -1, running: true})
	return nil
}

// End implements [wire.Journal]. If it cannot be written, it is as if it was not known.
func (j *journal) End(id string, code int, ran bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := j.asked[id]
	switch {
	case one == nil:
	case !ran:
		j.drop(id)
		_ = j.write("void " + id) // See above.
	default:
		one.running = false
		if code >= 0 && code <= 255 {
			one.code = code
			_ = j.write("ended " + id + " " + strconv.Itoa(code)) // See above.
		}
	}
}

// forget makes room for one more. The caller holds mu.
func (j *journal) forget() error {
	for i := 0; i < len(j.order) && len(j.order) >= mostAsked; {
		if id := j.order[i]; j.asked[id].running {
			i++
		} else {
			delete(j.asked, id)
			j.order = slices.Delete(j.order, i, i+1)
		}
	}
	if j.lines < mostLines && j.f != nil {
		return nil
	}
	return j.rewrite()
}

// rewrite writes the file anew, without what is forgotten. The caller holds mu, or has the journal alone.
func (j *journal) rewrite() error {
	if err := statedir.Write(j.path, j.text()); err != nil {
		return fmt.Errorf("noting what commands were asked for: %w", err)
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("noting what commands were asked for: %w", err)
	}
	j.close()
	j.f, j.torn, j.lines = f, false, 2*len(j.order)
	return nil
}

// write appends a line. The caller holds mu.
func (j *journal) write(line string) error {
	if j.torn {
		line = "\n" + line
	}
	_, err := j.f.WriteString(line + lineEnd)
	j.torn = err != nil
	j.lines++
	if err != nil {
		return fmt.Errorf("noting that a command was asked for: %w", err)
	}
	return nil
}

func (j *journal) close() {
	if j.f != nil {
		_ = j.f.Close() // Each write has said how it went.
		j.f = nil
	}
}
