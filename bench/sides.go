package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// side is one way to run a command and to get what it wrote. A new one goes
// into the list of a workload, and nowhere else.
type side interface {
	name() string
	open(b *bench, dir string) error // dir is where commands start
	run(ctx context.Context, script string) (output, error)
	close() error
}

// output is what a side has of a command.
type output struct {
	code   int
	stdout []byte // its head and tail, if there was too much
	total  int64
}

// limpetSide is the persistent shell. Poll replaces its file events by looking
// every so often, as many a tool does it.
type limpetSide struct {
	as    string              // its name; empty: limpet
	where transport.Transport // nil: here
	poll  time.Duration
	sh    *shell.PersistentShell
}

func (s *limpetSide) name() string {
	if s.poll > 0 {
		return "limpet polled " + s.poll.String()
	}
	return cmp.Or(s.as, limpetName)
}

func (s *limpetSide) open(b *bench, dir string) (err error) {
	opts := b.shellOptions()
	opts.Dir, opts.Poll, opts.Transport = dir, s.poll, s.where
	s.sh, err = shell.Start(b.ctx, opts)
	return err
}

func (s *limpetSide) run(ctx context.Context, script string) (output, error) {
	return outputOf(s.sh.Run(ctx, script))
}

func (s *limpetSide) close() error { return s.sh.Close() }

func outputOf(res command.Result, err error) (output, error) {
	return output{res.ExitCode, res.Stdout.Bytes(), res.Stdout.Total}, err
}

// oneshotSide is limpet's own fresh bash per command, with the limits and the
// stop of the persistent shell.
type oneshotSide struct{ r *oneshot.Runner }

func (s *oneshotSide) name() string { return "oneshot.Runner" }

func (s *oneshotSide) open(b *bench, dir string) error {
	s.r = oneshot.New(&oneshot.Options{Bash: b.bash, Dir: dir, Env: b.env, RuntimeDir: b.files})
	return nil
}

func (s *oneshotSide) run(ctx context.Context, script string) (output, error) {
	return outputOf(s.r.Run(ctx, script))
}

func (s *oneshotSide) close() error { return s.r.Close() }

// bashSide is os/exec with bash -c or bash -lc. The output goes to two files
// that are kept open and emptied after each command: that is faster than two
// pipes with a goroutine each, which exec makes for a bytes.Buffer, and it is
// on the file system that limpet uses. This is the strongest form of one-shot
// that we know of.
type bashSide struct {
	flag           string
	b              *bench
	dir            string
	stdout, stderr *os.File
}

func (s *bashSide) name() string { return "bash " + s.flag }

func (s *bashSide) open(b *bench, dir string) (err error) {
	s.b, s.dir = b, dir
	if s.stdout, err = os.CreateTemp(b.files, "stdout-"); err != nil {
		return err
	}
	s.stderr, err = os.CreateTemp(b.files, "stderr-")
	return err
}

func (s *bashSide) run(_ context.Context, script string) (output, error) {
	cmd := exec.Command(s.b.bash, s.flag, script) // A context would cost it a goroutine.
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.b.env, s.stdout, s.stderr
	return s.took(cmd)
}

// took runs a command that writes to the files, and takes what it wrote.
func (s *bashSide) took(cmd *exec.Cmd) (out output, err error) {
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			return out, err
		}
		out.code = exit.ExitCode()
	}
	if out.stdout, err = take(s.stdout); err != nil {
		return out, err
	}
	out.total = int64(len(out.stdout))
	_, err = take(s.stderr)
	return out, err
}

// take returns what is in the file and empties it.
func take(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return nil, err
	}
	text := make([]byte, st.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, 0) // The child shares the offset.
	return text, err
}

func (s *bashSide) close() error { return errors.Join(s.stdout.Close(), s.stderr.Close()) }

// interpSide is a shell in Go, in this process: no bash at all, and no fork
// for a builtin.
type interpSide struct {
	runner         *interp.Runner
	parser         *syntax.Parser
	stdout, stderr bytes.Buffer
}

func (s *interpSide) name() string { return "mvdan interp" }

func (s *interpSide) open(b *bench, dir string) (err error) {
	s.parser = syntax.NewParser()
	s.runner, err = interp.New(interp.StdIO(nil, &s.stdout, &s.stderr), interp.Dir(dir), interp.Env(expand.ListEnviron(b.env...)))
	return err
}

func (s *interpSide) run(ctx context.Context, script string) (out output, err error) {
	file, err := s.parser.Parse(strings.NewReader(script), "")
	if err != nil {
		return out, err
	}
	s.stdout.Reset()
	s.stderr.Reset()
	for _, stmt := range file.Stmts { // A File would start anew; statements go on.
		err = s.runner.Run(ctx, stmt)
	}
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		out.code, err = int(status), nil
	}
	out.stdout, out.total = bytes.Clone(s.stdout.Bytes()), int64(s.stdout.Len())
	return out, err
}

func (s *interpSide) close() error { return nil }
