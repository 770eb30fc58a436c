package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/kept"
)

// keptTrue measures what it costs that a session is another process's: for a whole program that runs one
// command there, and for the library.
func (b *bench) keptTrue() error {
	program, err := b.limpet()
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp(b.files, "kept-")
	if err != nil {
		return err
	}
	env := append(b.env[:len(b.env):len(b.env)], "XDG_STATE_HOME="+state)
	sides := []side{
		&programSide{as: limpetName, argv: []string{program, "run", "-s", "bench"}, env: env, end: []string{program, "session", "close", "bench"}},
		&programSide{as: "limpet run", argv: []string{program, "run"}, env: env},
		&bashSide{flag: "-c"},
	}
	if tmux, err := exec.LookPath("tmux"); err == nil {
		sides = append(sides, &tmuxSide{tmux: tmux})
	} else {
		b.report.Notes = append(b.report.Notes, "tmux send-keys was not compared: tmux is not here")
	}
	before := b.env
	for _, engine := range b.engines() {
		if b.smoke { // Others start one.
			break
		}
		e, name, err := b.container(engine, "")
		if err != nil {
			return err
		}
		if e != nil {
			defer func() {
				_ = errors.Join(e.Remove(name), e.Close()) // What was measured holds.
				b.env = before
			}()
			sides = append(sides, &programSide{as: engine + " exec", argv: []string{engine, "exec", name, "bash", "-c"}, env: b.env})
		}
	}
	all, err := b.contestOf("`true` by a program of its own: limpet run -s", "true", b.usual(40), sides...)
	if err != nil {
		return err
	}
	b.report.compare(all, under(12*time.Millisecond))
	all, err = b.contestOf("`true` in a kept session, by the library", "true", b.usual(60), &keptSide{}, &limpetSide{as: "shell.PersistentShell"}, &bashSide{flag: "-c"})
	if err != nil {
		return err
	}
	b.report.compare(all, within("shell.PersistentShell", 1.5))
	return b.manyKept(state)
}

// manyKept starts as many as there may be at once, and looks what an idle one has of its own.
func (b *bench) manyKept(state string) error {
	const most = 100
	n := b.some(most)
	opts := &kept.Options{StateDir: filepath.Join(state, "many"), Env: b.env, Bash: b.bash}
	all, errs := make([]*kept.Session, n), make([]error, n)
	began := time.Now()
	var starting sync.WaitGroup
	for i := range n {
		starting.Go(func() {
			if all[i], errs[i] = kept.Open(b.ctx, "s"+strconv.Itoa(i), opts); errs[i] == nil {
				_, errs[i] = all[i].Run(b.ctx, "true")
			}
		})
	}
	starting.Wait()
	took := time.Since(began)
	started, private := 0, int64(0)
	time.Sleep(time.Second) // They save their state when they are idle.
	for i, s := range all {
		if errs[i] != nil {
			continue
		}
		res, err := s.Run(b.ctx, "echo $PPID")
		if err == nil {
			var bytes int64
			if bytes, err = privateBytes(strings.TrimSpace(res.Stdout.String())); bytes > private {
				private = bytes
			}
		}
		errs[i] = errors.Join(err, s.Close())
		s.Disconnect()
		started++
	}
	b.report.Facts = append(b.report.Facts,
		fact{"kept sessions at once", fmt.Sprintf("%d of %d started and ran a command, in %v", started, n, took.Round(10*time.Millisecond)), "all", yes(started == n)},
		fact{"the memory of an idle keeper", fmt.Sprintf("%.1f MB of its own, the largest of them", float64(private)/1e6), "below 12 MB", yes(private < 12e6)})
	return errors.Join(errs...)
}

// privateBytes is what a process shares with no other (proc_pid_smaps(5)).
func privateBytes(pid string) (bytes int64, err error) {
	b, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Private_") && len(fields) > 1 {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, err
			}
			bytes += n << 10
		}
	}
	return bytes, nil
}

// programSide is a program that is executed for each command, which is its last argument.
type programSide struct {
	as   string
	argv []string
	env  []string
	end  []string // what is executed in the end; nil: nothing
	bashSide
}

func (s *programSide) name() string { return s.as }

func (s *programSide) run(_ context.Context, script string) (out output, err error) {
	cmd := exec.Command(s.argv[0], append(s.argv[1:len(s.argv):len(s.argv)], script)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, s.stdout, s.stderr
	return s.took(cmd)
}

func (s *programSide) close() error {
	if s.end == nil {
		return s.bashSide.close()
	}
	cmd := exec.Command(s.end[0], s.end[1:]...)
	cmd.Env = s.env
	return errors.Join(cmd.Run(), s.bashSide.close())
}

// keptSide is a session that is kept, reached by the library.
type keptSide struct{ s *kept.Session }

func (s *keptSide) name() string { return limpetName }

func (s *keptSide) open(b *bench, dir string) (err error) {
	s.s, err = kept.Open(b.ctx, "bench", &kept.Options{StateDir: filepath.Join(dir, "keep"), Dir: dir, Env: b.env, Bash: b.bash})
	return err
}

func (s *keptSide) run(ctx context.Context, script string) (output, error) {
	return outputOf(s.s.Run(ctx, script))
}

func (s *keptSide) close() error {
	defer s.s.Disconnect()
	return s.s.Close()
}

// tmuxSide types each command into a bash of tmux's, and waits until tmux is told that it is over. It has no
// output and no exit code.
type tmuxSide struct {
	tmux, socket string
	b            *bench
}

func (s *tmuxSide) name() string { return "tmux send-keys and wait-for" }

func (s *tmuxSide) open(b *bench, dir string) error {
	s.b, s.socket = b, filepath.Join(dir, "tmux")
	return s.do("-f", os.DevNull, "new-session", "-d", "-s", "bench", b.bash+" --norc --noprofile")
}

func (s *tmuxSide) do(args ...string) error {
	cmd := exec.Command(s.tmux, append([]string{"-S", s.socket}, args...)...)
	cmd.Env = s.b.env
	return cmd.Run()
}

func (s *tmuxSide) run(_ context.Context, script string) (output, error) {
	if err := s.do("send-keys", "-t", "bench", script+"; "+s.tmux+" -S "+s.socket+" wait-for -S over", "Enter"); err != nil {
		return output{}, err
	}
	return output{}, s.do("wait-for", "over")
}

func (s *tmuxSide) close() error { return s.do("kill-server") }
