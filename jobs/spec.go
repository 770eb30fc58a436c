package jobs

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/transport"
)

// Lifetime says what becomes of a job when its program ends.
type Lifetime string

// The lifetimes.
const (
	// WithProgram ends the job with the program, also when that is killed, and when
	// the registry is closed. It is the zero value's, too.
	WithProgram Lifetime = "program"

	// Detached lets the job run on. Whoever opens the registry next has it. It is
	// [ErrNotPossible] by another transport than the local one, as in a sandbox: there
	// the program is needed as long as the job runs.
	Detached Lifetime = "detached"
)

// Spec is a job to start. The zero value of each field but Command is a good default.
type Spec struct {
	// Command is a script for bash -c.
	Command string `json:"command"`

	// Dir is where it runs; empty means that of the registry. A relative one is
	// taken from there.
	Dir string `json:"dir,omitempty"`

	// Env is added to the registry's environment, and wins.
	Env []string `json:"env,omitempty"`

	// PTY runs it on a terminal of its own, of Size, which 0 makes 24 by 80. Then it
	// can be written to, and its output is what a terminal gets. TERM is
	// xterm-256color unless Env has one.
	PTY  bool `json:"pty,omitempty"`
	Size Size `json:"size,omitzero"`

	// Stdin lets a job that is on no terminal be written to. Else it reads
	// end-of-file.
	Stdin bool `json:"stdin,omitempty"`

	// Task and Session are the caller's names for what the job belongs to, Labels
	// whatever else it is to be found by.
	Task    string            `json:"task,omitempty"`
	Session string            `json:"session,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`

	// Watch are regular expressions (RE2). A line of output that matches one is an
	// event: see [WatchLimits].
	Watch []string `json:"watch,omitempty"`

	// Notify makes the end of the job an event. With Watch, the end is told and matches
	// are not: the job says so in Warnings.
	Notify bool `json:"notify,omitempty"`

	// Lifetime is WithProgram if it is empty.
	Lifetime Lifetime `json:"lifetime,omitempty"`

	// Timeout stops the job after that time, also when the program is gone by then. 0
	// means never.
	Timeout time.Duration `json:"timeout_ns,omitempty"`

	// OutputLimit is as in Options; 0 means that of the registry.
	OutputLimit int64 `json:"output_limit,omitempty"`

	// Transport is where it runs; nil means that of the registry. A policy comes with
	// it: a sandbox is a Transport. Only the local one has Detached jobs.
	Transport transport.Transport `json:"-"`

	own []string // Env as it was given: a sandbox passes it on
}

// Size is that of a terminal, in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

func (s Size) check() error {
	if s.Rows == 0 || s.Cols == 0 || s.Rows > math.MaxInt16 || s.Cols > math.MaxInt16 {
		return fmt.Errorf("a terminal of %d rows and %d columns: wants 1 to %d of each", s.Rows, s.Cols, math.MaxInt16)
	}
	return nil
}

// stored is what is written down of a Spec. It has no values of the environment: they
// may be secrets.
type stored struct {
	ID          string            `json:"id"`
	Command     string            `json:"command"`
	Dir         string            `json:"dir"`
	PTY         bool              `json:"pty,omitempty"`
	Stdin       bool              `json:"stdin,omitempty"`
	Task        string            `json:"task,omitempty"`
	Session     string            `json:"session,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Watch       []string          `json:"watch,omitempty"`
	Notify      bool              `json:"notify,omitempty"`
	Lifetime    Lifetime          `json:"lifetime"`
	Timeout     time.Duration     `json:"timeout_ns,omitempty"`
	OutputLimit int64             `json:"output_limit"`
	Retain      time.Duration     `json:"retain_ns"` // that of the registry that it was started in
	Ladder      interrupt.Ladder  `json:"ladder,omitempty"`
	Created     time.Time         `json:"created"`
	Mark        string            `json:"mark"`
	Sandboxed   bool              `json:"sandboxed,omitempty"`
	Warnings    []string          `json:"warnings,omitempty"`
	Adopted     bool              `json:"adopted,omitempty"` // it was a foreground command
}

// resolve checks a Spec and fills in what it leaves open.
func (r *Registry) resolve(s Spec) (Spec, error) {
	if err := (command.Request{Script: s.Command}).Validate(); err != nil {
		return s, err
	}
	dir := r.opts.Dir
	if s.Dir != "" {
		dir = s.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(r.opts.Dir, dir)
		}
	}
	var err error
	if s.Dir, err = transport.AbsDir(dir); err != nil {
		return s, err
	}
	if err := transport.CheckDir(s.Dir); err != nil {
		return s, err
	}
	if err := environ.Check(s.Env); err != nil {
		return s, err
	}
	s.own, s.Env = slices.Clone(s.Env), r.environ(s)
	s.Watch, s.Labels = slices.Clone(s.Watch), cloneLabels(s.Labels)
	if _, err := compile(s.Watch); err != nil {
		return s, err
	}
	switch s.Lifetime {
	case "":
		s.Lifetime = WithProgram
	case WithProgram, Detached:
	default:
		return s, fmt.Errorf("lifetime %q: there are %q and %q", s.Lifetime, WithProgram, Detached)
	}
	if s.Size == (Size{}) {
		s.Size = Size{Rows: 24, Cols: 80}
	}
	if s.PTY {
		if err := s.Size.check(); err != nil {
			return s, err
		}
	}
	if s.Timeout < 0 || s.OutputLimit < 0 {
		return s, errors.New("a timeout and an output limit cannot be negative")
	}
	setDefault(&s.OutputLimit, r.opts.OutputLimit)
	if s.Transport == nil {
		s.Transport = r.opts.Transport
	}
	return s, nil
}

// environ is what the job gets, without the marks of what its program may run in, and on a
// terminal of its own without what describes that of the program.
func (r *Registry) environ(s Spec) []string {
	env := slices.Clone(r.opts.Env)
	if s.PTY {
		env = environ.OffTerminal(env)
	}
	env = append(env, s.Env...)
	if s.PTY && !slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, "TERM=") }) {
		env = append(env, "TERM=xterm-256color")
	}
	env = append(env, "PWD="+s.Dir)
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return environ.Mark(name)
	})
}

func cloneLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	clone := make(map[string]string, len(labels))
	for k, v := range labels {
		clone[k] = v
	}
	return clone
}

// compile compiles watch patterns.
func compile(patterns []string) ([]*regexp.Regexp, error) {
	var list []*regexp.Regexp
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		list = append(list, re)
	}
	return list, nil
}

// longestArg is below what Linux takes as one argument (execve(2): 32 pages).
const longestArg = 120 << 10

// argv is bash -c COMMAND. One that is too long for an argument is read from a file.
func argv(dir, script string) ([]string, error) {
	args := []string{"bash", "--noprofile", "--norc", "-c", script}
	if len(script) > longestArg {
		path := filepath.Join(dir, "script")
		if err := private.WriteFile(path, []byte(script)); err != nil {
			return nil, err
		}
		args[len(args)-1] = `eval "$(<` + quote(path) + `)"`
	}
	return args, nil
}

// quote quotes a path for bash.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
