package approve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

const (
	// mostHashed bounds the bytes of a file that are hashed. Of a longer one the size and the times tell whether it is the same.
	mostHashed = 256 << 20

	// firstLine is how much of a file Linux reads to find its interpreter, in bytes.
	firstLine = 256

	// mostInterpreters bounds how many files are interpreters of each other: Linux runs no more.
	mostInterpreters = 5
)

// content adds to a File what its bytes say: which program runs it, and, where the user can write to it, their hash. A mapping that was written to
// before may change the bytes, and leave the time of the last change as it is.
func content(f *approval.File, st unix.Stat_t, interpreted int) {
	if err := read(f, st, interpreted); err != nil { // Linux may read it all the same: it is not known what runs.
		f.Why, f.State = cmp.Or(f.Why, "which limpet cannot read"), ""
	}
}

var errReplaced = errors.New("it is another file now")

func read(f *approval.File, st unix.Stat_t, interpreted int) error {
	fd, err := unix.Open(f.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r := os.NewFile(uintptr(fd), f.Path)
	defer r.Close() // It was read only.
	var opened unix.Stat_t
	if err := unix.Fstat(fd, &opened); err != nil {
		return err
	}
	if opened.Dev != st.Dev || opened.Ino != st.Ino {
		return errReplaced
	}
	start := make([]byte, firstLine)
	n, err := io.ReadFull(r, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	interpret(f, start[:n], interpreted)
	if f.Why == "" || st.Size > mostHashed {
		return nil
	}
	sum := sha256.New()
	sum.Write(start[:n])
	if _, err := io.Copy(sum, io.LimitReader(r, mostHashed)); err != nil {
		return err
	}
	f.State += fmt.Sprintf("-%x", sum.Sum(nil)[:16])
	return nil
}

// interpret adds what the first line of a script says, if it is one.
func interpret(f *approval.File, start []byte, interpreted int) {
	line, script := bytes.CutPrefix(start, []byte("#!"))
	if !script {
		return
	}
	if interpreted == mostInterpreters {
		f.Why = cmp.Or(f.Why, "which is run by too many interpreters")
		return
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' }) // As Linux parts it, and env -S: a carriage return is a part of a word.
	if len(words) == 0 {
		return // sh runs it.
	}
	by, why := words[0], ""
	if filepath.Base(by) == "env" {
		f.Program, why = sought(words[1:])
		if filepath.IsAbs(f.Program) {
			by, f.Program = f.Program, "" // It is looked for nowhere.
		}
	}
	if f.Why = cmp.Or(f.Why, why); !filepath.IsAbs(by) {
		f.Why = cmp.Or(f.Why, "which "+by+" runs, in the directory that it is run in")
		return
	}
	runs := file(by, interpreted+1)
	if f.Program = cmp.Or(f.Program, runs.Program); runs.Why == "" {
		return
	}
	f.Why = cmp.Or(f.Why, "which "+by+" runs, "+runs.Why)
	if f.State += "-" + runs.State; runs.State == "" {
		f.State = ""
	}
}

// plainWord is an argument that env takes as it is.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_.+=:,@%-]+$|^/[A-Za-z0-9_.+/:,@%-]+$`)

// sought is the program that env looks for, by its arguments in a first line, or its path, or why that cannot be told.
func sought(args []string) (program, why string) {
	for _, arg := range args {
		switch arg = strings.TrimPrefix(arg, "-S"); {
		case arg == "":
		case arg[0] == '-', strings.HasPrefix(arg, "PATH="), !plainWord().MatchString(arg):
			return "", fmt.Sprintf("which env runs with %q", arg)
		case !strings.Contains(arg, "="):
			return arg, ""
		}
	}
	return "", ""
}
