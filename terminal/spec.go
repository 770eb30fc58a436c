package terminal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/terminal/screen"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Size is that of a terminal, in characters.
type Size = screen.Size

// DefaultSize is that of a terminal whose Spec names none.
var DefaultSize = Size{Cols: 80, Rows: 24}

// MaxSize is that of the largest terminal that there can be.
var MaxSize = Size{Cols: 1000, Rows: 500}

// Spec is a program to start. It wants either Argv or Line.
type Spec struct {
	// Argv is a program with its arguments. One without a slash is looked for in the
	// PATH of its environment.
	Argv []string `json:"argv,omitempty"`

	// Line is a line for bash -c.
	Line string `json:"line,omitempty"`

	// Dir is where it runs; empty means that of the registry. A relative one is taken
	// from there.
	Dir string `json:"dir,omitempty"`

	// Env is added to the registry's environment, and wins.
	Env []string `json:"env,omitempty"`

	// Size is that of the screen; zero means DefaultSize.
	Size Size `json:"size,omitzero"`

	// Session is the caller's name for what the terminal belongs to, of 1 KiB at most.
	Session string `json:"session,omitempty"`

	// BufferLimit is as in Options; 0 means that of the registry.
	BufferLimit int64 `json:"buffer_limit,omitempty"`

	// Transport is where it runs; nil means that of the registry. A policy comes with
	// it: a sandbox is a Transport.
	Transport transport.Transport `json:"-"`

	// Record is a file to be made, for an asciicast v2 of all that is printed. It is an
	// error if there is one already. A relative one is taken from the program's directory.
	Record string `json:"record,omitempty"`

	path string   // of the program
	own  []string // Env as it was given: a sandbox passes it on
}

const longestName = 1 << 10

func checkSize(s Size) error {
	if s.Cols < 1 || s.Rows < 1 || s.Cols > MaxSize.Cols || s.Rows > MaxSize.Rows {
		return fmt.Errorf("%w: %d columns and %d rows; there can be 1 to %d columns, and 1 to %d rows", ErrSize, s.Cols, s.Rows, MaxSize.Cols, MaxSize.Rows)
	}
	return nil
}

// resolve checks a Spec and fills in what it leaves open, as far as it gets.
func (r *Registry) resolve(s Spec) (Spec, error) {
	if s.Size == (Size{}) {
		s.Size = DefaultSize
	}
	if s.Transport == nil {
		s.Transport = r.opts.Transport
	}
	setDefault(&s.BufferLimit, r.opts.BufferLimit)
	dir := r.opts.Dir
	if s.Dir != "" {
		if dir = s.Dir; !filepath.IsAbs(dir) {
			dir = filepath.Join(r.opts.Dir, dir)
		}
	}
	var err error
	if s.Dir, err = transport.AbsDir(dir); err != nil {
		return s, err
	}
	if s.Record != "" {
		if s.Record, err = filepath.Abs(s.Record); err != nil {
			return s, err
		}
	}
	if s.Argv, err = argv(s); err != nil {
		return s, err
	}
	if err := checkSize(s.Size); err != nil {
		return s, err
	}
	if len(s.Session) > longestName {
		return s, fmt.Errorf("a session's name of %d bytes: there can be %d", len(s.Session), longestName)
	}
	if err := environ.Check(s.Env); err != nil {
		return s, err
	}
	s.own, s.Env = withoutMarks(s.Env), r.environ(s)
	if _, here := s.Transport.(local.Transport); here {
		if err := transport.CheckDir(s.Dir); err != nil {
			return s, err
		}
		s.path, err = lookPath(s.Argv[0], s.Dir, s.Env)
	}
	return s, err
}

// argv is what is to be started. Only whether it is well formed is looked at.
func argv(s Spec) ([]string, error) {
	switch {
	case s.Line != "" && len(s.Argv) > 0:
		return s.Argv, errors.New("a Spec wants either Argv or Line, and has both")
	case strings.TrimSpace(s.Line) != "":
		if strings.IndexByte(s.Line, 0) >= 0 {
			return nil, errors.New("a line cannot hold a NUL byte")
		}
		if len(s.Line) > longestArg {
			return nil, fmt.Errorf("%w: a line of %d bytes: there can be %d (execve(2)); put it into a file", syscall.E2BIG, len(s.Line), longestArg)
		}
		return []string{"bash", "--noprofile", "--norc", "-c", s.Line}, nil
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return nil, fmt.Errorf("%w: the command is empty; name a program, as in bash", ErrNothingToRun)
	}
	size := 0
	for i, arg := range s.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return nil, fmt.Errorf("the argument %q holds a NUL byte", cut(arg))
		}
		if size += len(arg) + 1; len(arg) > longestArg || size > longestArgs {
			return nil, fmt.Errorf("%w: argument %d, or all up to it, are too long: there can be %d bytes in one and %d in all (execve(2)); put it into a file, or type it", syscall.E2BIG, i, longestArg, longestArgs)
		}
	}
	return slices.Clone(s.Argv), nil
}

// longestArg and longestArgs are below what Linux takes (execve(2): 32 pages, and a quarter
// of the stack).
const (
	longestArg  = 120 << 10
	longestArgs = 1 << 20
)

// cut makes a text short enough to be read, and written down.
func cut(text string) string {
	const most = 1 << 10
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// lookPath finds the program as the shell would that has this directory and environment.
func lookPath(name, dir string, env []string) (string, error) {
	missing := func(err error) (string, error) {
		return "", fmt.Errorf("%w: %q: %w", ErrNoProgram, name, err)
	}
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return missing(err)
		}
		return path, nil
	}
	path, _ := variable(env, "PATH")
	denied := error(nil)
	for _, in := range filepath.SplitList(path) {
		if !filepath.IsAbs(in) { // An empty one is the directory itself (POSIX, 8.3).
			in = filepath.Join(dir, in)
		}
		file := filepath.Join(in, name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return missing(denied)
	}
	return missing(fmt.Errorf("it is not in PATH, which is %q", path))
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			return e.Err // The error names it already.
		}
		return err
	}
	if st.IsDir() {
		return errors.New("it is a directory")
	}
	if _, err := exec.LookPath(path); err != nil { // It asks the kernel where it can.
		return fs.ErrPermission
	}
	return nil
}

func variable(env []string, name string) (value string, ok bool) {
	for _, entry := range slices.Backward(env) {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			return v, true
		}
	}
	return "", false
}

// environ is what the program gets, without the marks of what limpet may run in.
func (r *Registry) environ(s Spec) []string {
	env := append(slices.Clone(r.opts.Env), s.Env...)
	if _, ok := variable(env, "TERM"); !ok {
		env = append(env, "TERM=xterm-256color")
	}
	env = append(env, "PWD="+s.Dir)
	return withoutMarks(env)
}

func withoutMarks(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return environ.Mark(name)
	})
}

const idPrefix = "term-"

// newID makes a name that says what runs, for people who read lists.
func newID(argv []string, line string) string {
	const letters = 8 // 40 random bits.
	words := argv[:min(len(argv), 1)]
	if line != "" {
		words = strings.Fields(line)
	}
	name := "none-"
	for _, word := range words {
		if strings.Contains(word, "=") || word == "exec" { // What prepares a command in a line.
			continue
		}
		if n := plainName(filepath.Base(word)); n != "" {
			name = n + "-"
			break
		}
	}
	return idPrefix + name + strings.ToLower(rand.Text()[:letters])
}

// plainName is what a name has that can stand in one of a file, and is easy to type.
func plainName(name string) string {
	const most = 20
	name = strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(name[:min(len(name), most)], "-")
}

// ValidID reports whether a text can be the ID of a terminal: "term-" and lower-case letters, digits and dashes, fewer than 64 bytes in
// all. It names a file.
func ValidID(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	return ok && rest != "" && len(id) < 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
