package approve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/approval"
)

const (
	// mostHashed bounds the bytes of a file that are hashed. Of a longer one the size and the times tell whether it is the same.
	mostHashed = 256 << 20

	// firstLine is how much of a file Linux reads to find its interpreter, in bytes.
	firstLine = 256

	// mostInterpreters bounds how many files are interpreters of each other, as Linux does.
	mostInterpreters = 5
)

// content adds to a File what its bytes say: which program runs it, and, where the user can write to it, their hash. A mapping that was written to
// before may change the bytes, and leave the time of the last change as it is.
func content(f *approval.File, st unix.Stat_t, interpreted int) {
	fd, err := unix.Open(f.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return // Then no interpreter can read it: it is no script.
	}
	r := os.NewFile(uintptr(fd), f.Path)
	defer r.Close()
	var opened unix.Stat_t
	if unix.Fstat(fd, &opened) != nil || opened.Dev != st.Dev || opened.Ino != st.Ino {
		f.Why = "which was replaced just now"
		return
	}
	start := make([]byte, firstLine)
	n, _ := io.ReadFull(r, start) // A file that cannot be read has no first line.
	interpret(f, start[:n], interpreted)
	if f.Why == "" || st.Size > mostHashed {
		return
	}
	sum := sha256.New()
	sum.Write(start[:n])
	if _, err := io.Copy(sum, io.LimitReader(r, mostHashed)); err == nil {
		f.State += fmt.Sprintf("-%x", sum.Sum(nil)[:16])
	}
}

// interpret adds what the first line of a script says, if it is one.
func interpret(f *approval.File, start []byte, interpreted int) {
	line, script := bytes.CutPrefix(start, []byte("#!"))
	if !script || interpreted == mostInterpreters {
		return
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return // sh runs it.
	}
	var why string
	if filepath.Base(words[0]) == "env" {
		f.Program, why = sought(words[1:])
		f.Why = cmp.Or(f.Why, why)
	}
	switch by := file(words[0], interpreted+1); {
	case !filepath.IsAbs(words[0]):
		f.Why = "which " + words[0] + " runs, in the directory that it is run in"
	case by.Why == "":
	case f.Why == "":
		f.Why = "which " + words[0] + " runs, " + by.Why
		fallthrough
	default:
		f.State += "-" + by.State
	}
}

// sought is the program that env looks for, by its arguments in a first line, or why that cannot be told.
func sought(args []string) (program, why string) {
	for _, arg := range args {
		switch arg = strings.TrimPrefix(arg, "-S"); {
		case arg == "":
		case arg[0] == '-', strings.HasPrefix(arg, "PATH="):
			return "", "which env runs with " + arg
		case !strings.Contains(arg, "="):
			return arg, ""
		}
	}
	return "", ""
}
