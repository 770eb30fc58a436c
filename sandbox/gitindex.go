package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gitlinks lists the paths of a repository's index at which other repositories
// are, without running git, which would do as its configuration says. An index
// that is missing has none. Split says that the index is more than one file.
func (r repository) gitlinks() (links []string, split bool, err error) {
	hash := 20 // Of an object's name, in bytes. The index does not say which it is.
	config, err := gitValues(filepath.Join(r.common, "config"))
	if err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(config, func(v gitValue) bool { return v.name == "objectformat" && strings.EqualFold(v.text, "sha256") }) {
		hash = 32
	}
	links, shared, err := readIndex(filepath.Join(r.dir, "index"), hash)
	if err != nil || shared == "" {
		return links, false, err
	}
	// A split index: some of these may have been replaced since, which is no harm.
	more, _, err := readIndex(filepath.Join(r.dir, "sharedindex."+shared), hash)
	return append(links, more...), true, err
}

// readIndex reads an index file (gitformat-index(5)). Shared is the name of the
// one that it changes, if it is a split index.
func readIndex(path string, hash int) (links []string, shared string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if isMissing(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close() // Read only.
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is not a file", path)
	}
	x := index{r: bufio.NewReaderSize(f, 64<<10), left: info.Size(), hash: hash}
	if err := x.read(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return x.links, x.shared, nil
}

// index is the reading of one.
type index struct {
	r      *bufio.Reader
	left   int64     // bytes
	hash   int       // length of an object's name
	buf    [128]byte // of the last take
	name   []byte    // of the last entry
	links  []string
	shared string
}

var errIndex = errors.New("it is not an index that is understood")

// take reads a few bytes, which the next take overwrites.
func (x *index) take(n int) ([]byte, error) {
	if x.left -= int64(n); x.left < 0 {
		return nil, errIndex
	}
	_, err := io.ReadFull(x.r, x.buf[:n])
	return x.buf[:n], err
}

func (x *index) read() error {
	const header = 12
	b, err := x.take(header)
	if err != nil {
		return err
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if string(b[:4]) != "DIRC" || version < 2 || version > 4 {
		return errIndex
	}
	for range count {
		if err := x.entry(version); err != nil {
			return err
		}
	}
	return x.extensions()
}

// entry reads one file's: times, numbers and mode, the object, flags, the name.
func (x *index) entry(version uint32) error {
	const (
		mode     = 24
		object   = 40
		extended = 0x4000
		gitlink  = 0o160000
		kind     = 0o170000
	)
	fixed := object + x.hash + 2
	b, err := x.take(fixed)
	if err != nil {
		return err
	}
	isLink := binary.BigEndian.Uint32(b[mode:])&kind == gitlink
	if flags := binary.BigEndian.Uint16(b[fixed-2:]); flags&extended != 0 {
		if _, err := x.take(2); err != nil || version < 3 {
			return errIndex
		}
		fixed += 2
	}
	if version == 4 { // What the name has in common with the last one is left out.
		drop, err := x.number()
		if err != nil || drop > len(x.name) {
			return errIndex
		}
		x.name = x.name[:len(x.name)-drop]
	} else {
		x.name = x.name[:0]
	}
	rest, err := x.r.ReadSlice(0)
	if x.left -= int64(len(rest)); err != nil || x.left < 0 { // ErrBufferFull: no path is that long.
		return errIndex
	}
	x.name = append(x.name, rest[:len(rest)-1]...)
	if version < 4 { // With the NUL, to a multiple of eight.
		if _, err := x.take((8 - (fixed+len(rest))%8) % 8); err != nil {
			return err
		}
	}
	if isLink {
		x.links = append(x.links, string(x.name))
	}
	return nil
}

// number is an offset as in pack files: seven bits in each byte, and one more
// for each that follows.
func (x *index) number() (int, error) {
	const most = 1 << 24
	n := 0
	for first := true; ; first = false {
		b, err := x.take(1)
		if err != nil || n > most {
			return 0, errIndex
		}
		if !first {
			n++
		}
		if n = n<<7 | int(b[0]&0x7f); b[0]&0x80 == 0 {
			return n, nil
		}
	}
}

// extensions are between the entries and the checksum.
func (x *index) extensions() error {
	const header = 8
	for x.left > int64(x.hash) {
		b, err := x.take(header)
		if err != nil {
			return err
		}
		name, size := string(b[:4]), int64(binary.BigEndian.Uint32(b[4:]))
		if size > x.left-int64(x.hash) {
			return errIndex
		}
		if name == "link" && size >= int64(x.hash) {
			base, err := x.take(x.hash)
			if err != nil {
				return err
			}
			if size -= int64(x.hash); !bytes.Equal(base, make([]byte, x.hash)) {
				x.shared = hex.EncodeToString(base)
			}
		}
		x.left -= size
		if _, err := io.CopyN(io.Discard, x.r, size); err != nil {
			return err
		}
	}
	if x.left != int64(x.hash) {
		return errIndex
	}
	return nil
}
