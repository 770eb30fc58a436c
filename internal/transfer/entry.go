package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"time"
)

// Bounds of what is copied, and of a request.
const (
	mostChunk     = 256 << 10
	mostName      = 255
	mostPath      = 4000 // below the root; that of a system call is 4096
	mostDepth     = 200
	mostTarget    = 4095
	mostPage      = 1000      // entries
	mostPageBytes = 128 << 10 // of names and targets
	mostMessage   = 2 << 20   // a request, or an answer, that has a page
)

// mostEntries bounds the entries of one directory. Tests have a smaller one.
var mostEntries = 1 << 20

// Bytes is a path or a name, which is any bytes. In JSON it is base64.
type Bytes string

// MarshalJSON implements [json.Marshaler].
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(b)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var raw []byte
	err := json.Unmarshal(text, &raw)
	*b = Bytes(raw)
	return err
}

// Kind says what an entry of a directory is.
type Kind string

// The kinds. What is of another kind is not copied: a fifo, a socket, a device.
const (
	File  Kind = "file"
	Dir   Kind = "dir"
	Link  Kind = "link"
	Other Kind = "other"
)

// Entry is a file, a directory or a symbolic link.
type Entry struct {
	Name   Bytes  `json:"name,omitempty"` // in its directory
	Kind   Kind   `json:"kind,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`   // the permission bits
	Time   int64  `json:"time,omitempty"`   // of the last change, in nanoseconds since 1970
	Target Bytes  `json:"target,omitempty"` // of a link
	What   string `json:"what,omitempty"`   // of the kind Other: what it is, or why it is not known
}

// Named is what a path leads to, links followed.
type Named struct {
	There bool  `json:"there"` // else nothing has that path
	Entry Entry `json:"entry"`

	// Root is the directory that the entry is in, without links, and Path its name there. A directory is its own root, and
	// Path is empty.
	Root Bytes `json:"root,omitempty"`
	Path Bytes `json:"path,omitempty"`
}

// Page is a part of a directory.
type Page struct {
	Entries []Entry `json:"entries"`
	More    bool    `json:"more,omitempty"` // there are more behind the last one
}

// State is how much of a file there is, and the SHA-256 of that.
type State struct {
	Offset int64  `json:"offset"`
	Sum    []byte `json:"sum,omitempty"`
}

// End is the size and the SHA-256 of a whole file.
type End struct {
	Size int64  `json:"size"`
	Sum  []byte `json:"sum"`
}

// Prepared is what became of an entry that was to be written.
type Prepared struct {
	Same bool   `json:"same,omitempty"` // it is there already
	Part bool   `json:"part,omitempty"` // a part of it is, from an earlier copy
	Why  string `json:"why,omitempty"`  // it cannot be written
	Full bool   `json:"full,omitempty"` // for want of room
}

// entryOf describes what a directory has under a name. The target of a link is left to the caller.
func entryOf(name string, st fs.FileInfo) Entry {
	e := Entry{Name: Bytes(name), Kind: Other, Mode: uint32(st.Mode().Perm()), Time: timeOf(st)}
	switch mode := st.Mode(); {
	case mode.IsRegular():
		e.Kind, e.Size = File, st.Size()
	case mode.IsDir():
		e.Kind = Dir
	case mode&fs.ModeSymlink != 0:
		e.Kind = Link
	case mode&fs.ModeNamedPipe != 0:
		e.What = "a fifo"
	case mode&fs.ModeSocket != 0:
		e.What = "a socket"
	case mode&fs.ModeDevice != 0:
		e.What = "a device"
	default:
		e.What = "no file"
	}
	return e
}

// perm is the mode that a copy has: no setuid, setgid or sticky bit.
func (e Entry) perm() fs.FileMode { return fs.FileMode(e.Mode) & fs.ModePerm }

func (e Entry) time() time.Time { return time.Unix(0, e.Time) }

// timeOf returns when a file was changed, in nanoseconds since 1970. An int64 has those of the years 1677 to 2262, and file systems have
// earlier and later times: timeOf returns the first or the last that it can for them.
func timeOf(st fs.FileInfo) int64 {
	const first, last = math.MinInt64, math.MaxInt64
	switch t := st.ModTime(); {
	case t.Before(time.Unix(0, first)):
		return first
	case t.After(time.Unix(0, last)):
		return last
	default:
		return t.UnixNano()
	}
}

var errListing = errors.New("the listing makes no sense")

// check refuses a page that no directory has, as another machine may send it. After is the name behind which it was asked for.
func (p Page) check(after string) error {
	if len(p.Entries) > mostPage {
		return fmt.Errorf("%w: it has more than %d entries", errListing, mostPage)
	}
	if p.More && len(p.Entries) == 0 {
		return fmt.Errorf("%w: it has no entries, and does not end", errListing)
	}
	for _, e := range p.Entries {
		name := string(e.Name)
		if err := e.check(); err != nil {
			return err
		}
		if name <= after {
			return fmt.Errorf("%w: %.300q comes behind %.300q", errListing, name, after)
		}
		after = name
	}
	return nil
}

// check refuses an entry that there cannot be.
func (e Entry) check() error {
	if !isName(string(e.Name)) {
		return fmt.Errorf("%w: %.300q is no name of a file", errListing, e.Name)
	}
	switch {
	case e.Size < 0:
		return fmt.Errorf("%w: %q has %d bytes", errListing, e.Name, e.Size)
	case e.Kind == Link && !isTarget(string(e.Target)):
		return fmt.Errorf("%w: the link %q leads to %.300q", errListing, e.Name, e.Target)
	}
	return nil
}

// isName reports whether a directory can have an entry of that name.
func isName(name string) bool {
	return name != "" && len(name) <= mostName && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

func isTarget(target string) bool {
	return target != "" && len(target) <= mostTarget && !strings.ContainsRune(target, 0)
}

// checkPath refuses what is not a path below a root: names, with slashes between. The empty one is the root.
func checkPath(below string) error {
	if below == "" {
		return nil
	}
	if len(below) > mostPath {
		return fmt.Errorf("its path has more than %d bytes", mostPath)
	}
	names := strings.Split(below, "/")
	if len(names) > mostDepth {
		return fmt.Errorf("it is in more than %d directories", mostDepth)
	}
	for _, name := range names {
		if !isName(name) {
			return fmt.Errorf("%.300q is no path below a directory", below)
		}
	}
	return nil
}

// in is the path of a name in a directory, both below a root.
func in(dir, name string) string { return path.Join(dir, name) }

// orDot is a path below a root as [os.Root] wants it.
func orDot(below string) string {
	if below == "" {
		return "."
	}
	return below
}
