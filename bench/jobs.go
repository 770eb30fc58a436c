package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/jobs"
)

// execName is what jobs are compared with: a process of the program's own, whose output
// it reads from a pipe. It is gone when the program is, with its output.
const execName = "os/exec"

// durable makes a directory where the jobs of a user are by default, or as near as there
// is one: a file system that survives a crash of the machine, for which limpet syncs.
func durable() (string, error) {
	dir, err := jobs.DefaultDir()
	if err != nil {
		return "", err
	}
	for dir != filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	return os.MkdirTemp(dir, "limpet-bench-")
}

// withJobs has something done with a registry, and closes it: that ends its jobs. limit
// is how much of the output of each is kept, 0 what is usual.
func (b *bench) withJobs(limit int64, do func(*jobs.Registry) error) error {
	dir, err := durable()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // Best effort: it is a temporary directory.
	return b.withJobsIn(dir, limit, do)
}

func (b *bench) withJobsIn(dir string, limit int64, do func(*jobs.Registry) error) error {
	r, err := jobs.Open(filepath.Join(dir, "jobs"), &jobs.Options{Bash: b.bash, Env: b.env, OutputLimit: limit})
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// jobStart measures the time until the first byte that a job prints is there.
func (b *bench) jobStart() error {
	return b.withJobs(0, func(r *jobs.Registry) error {
		return b.withJobsIn(b.files, 0, func(there *jobs.Registry) error {
			const script = "echo hi"
			all, err := b.contest("first byte of a job", script, b.usual(80), []entrant{
				{limpetName, b.firstByteOfJob(r, script, "hi\n")},
				{"limpet, jobs where limpet has its sessions", b.firstByteOfJob(there, script, "hi\n")},
				{execName, b.firstByteOfExec(script, "hi\n")},
			})
			if err != nil {
				return err
			}
			limpet, other, plain := all[0], all[1], all[2]
			b.report.note("jobs are on %s, as they are by default", fileSystem(r.Dir()))
			b.report.compare([]series{limpet, plain})
			if where := fileSystem(there.Dir()); where != fileSystem(r.Dir()) { // Where a sync costs something else.
				other.Workload, other.Side = "first byte of a job, jobs on "+where, limpetName
				b.report.compare([]series{other, plain})
			}
			return nil
		})
	})
}

// firstByteOfJob follows a job to its end, so that nothing of it is left for the next go.
func (b *bench) firstByteOfJob(r *jobs.Registry, script, want string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		job, err := r.Start(ctx, jobs.Spec{Command: script})
		if err != nil {
			return 0, err
		}
		var said []byte
		for chunk, err := range r.Follow(ctx, job.ID, 0) {
			if err != nil {
				return 0, err
			}
			if said == nil {
				took = time.Since(began)
			}
			said = append(said, chunk.Data...)
		}
		if string(said) != want {
			return 0, fmt.Errorf("%q: %q, not %q", script, said, want)
		}
		return took, r.Forget(job.ID)
	}
}

func (b *bench) firstByteOfExec(script, want string) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) {
		began := time.Now()
		cmd := exec.Command(b.bash, "-c", script) // A context would cost it a goroutine.
		cmd.Env = b.env
		out, err := cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		said := make([]byte, 64)
		n, err := out.Read(said)
		took := time.Since(began)
		rest, errRest := io.ReadAll(out)
		if err := errors.Join(err, errRest, cmd.Wait()); err != nil {
			return 0, err
		}
		if said = append(said[:n], rest...); string(said) != want {
			return 0, fmt.Errorf("%q: %q, not %q", script, said, want)
		}
		return took, nil
	}
}

// process is a background process of os/exec's.
type process struct {
	stdin io.WriteCloser
	done  chan struct{} // closed when it has ended, and all that it has printed was copied
}

// startProcess starts one that prints to out.
func (b *bench) startProcess(script string, out io.Writer) (process, error) {
	cmd := exec.Command(b.bash, "-c", script)
	cmd.Env, cmd.Stdout, cmd.Stderr = b.env, out, out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return process{}, err
	}
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	p := process{stdin, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // Nobody asks how it ended.
		close(p.done)
	}()
	return p, nil
}

// close lets it read end-of-file, which ends those that are used here.
func (p process) close() {
	_ = p.stdin.Close() // All was written.
	<-p.done
}

// buffered is a background process as most programs have it: what it prints is copied
// into a buffer by a goroutine, behind a mutex.
type buffered struct {
	process

	mu   sync.Mutex
	out  bytes.Buffer
	told int // up to where poll has returned it
}

// Write implements io.Writer. The goroutine of exec calls it.
func (p *buffered) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// poll returns what is new, the last lines, and whether it runs.
func (p *buffered) poll() (text string, last []string, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = string(p.out.Bytes()[p.told:])
	p.told = p.out.Len()
	select {
	case <-p.done:
	default:
		running = true
	}
	return text, lastLines(p.out.Bytes(), jobs.DefaultPollLines), running
}

// lastLines are the last lines of b.
func lastLines(b []byte, count int) (lines []string) {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	start := len(b)
	for range count {
		if start = bytes.LastIndexByte(b[:start], '\n'); start < 0 {
			break
		}
	}
	for line := range bytes.SplitSeq(b[start+1:], []byte{'\n'}) {
		lines = append(lines, string(line))
	}
	return lines
}

func (p *buffered) printed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.out.Len())
}

// pollable is something that runs: it can be looked at, and prints what it is given.
type pollable struct {
	name    string
	poll    func() (string, error) // what is new
	give    func(line string) error
	printed func() int64 // how much, without a poll
}

func (b *bench) pollableJob(r *jobs.Registry, script string) (pollable, error) {
	job, err := r.Start(b.ctx, jobs.Spec{Command: script, Stdin: true})
	return pollable{
		name: limpetName,
		poll: func() (string, error) {
			p, err := r.Poll(job.ID, nil)
			if err == nil && p.Job.State != jobs.Running {
				err = fmt.Errorf("it is %s", p.Job.State)
			}
			return p.New, err
		},
		give: func(line string) error {
			_, err := r.Write(job.ID, []byte(line))
			return err
		},
		printed: func() int64 {
			got, _ := r.Get(job.ID) // Whoever waits for more does not wait for ever.
			return got.Output.End
		},
	}, err
}

func (p *buffered) pollable() pollable {
	return pollable{
		name: execName,
		poll: func() (string, error) {
			text, _, running := p.poll()
			if !running {
				return "", errors.New("it has ended")
			}
			return text, nil
		},
		give: func(line string) error {
			_, err := io.WriteString(p.stdin, line)
			return err
		},
		printed: p.printed,
	}
}

// jobPoll measures a look at a job that runs: how it is, what is new, the last lines.
func (b *bench) jobPoll() error {
	return b.withJobs(0, func(r *jobs.Registry) error {
		for _, of := range []struct{ job, prints string }{
			{"a job", ""},
			{"a job whose log is full", "seq 100000 150000; "}, // 350 KB, of which not all is kept.
		} {
			if err := b.polls(r, of.job, of.prints+"echo ready; exec cat"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) polls(r *jobs.Registry, what, script string) error {
	limpet, err := b.pollableJob(r, script)
	if err != nil {
		return err
	}
	var buf buffered
	if buf.process, err = b.startProcess(script, &buf); err != nil {
		return err
	}
	defer buf.close()
	plain := buf.pollable()
	for _, p := range []pollable{limpet, plain} {
		if err := b.upTo(p, "ready\n"); err != nil {
			return err
		}
	}
	for _, line := range []string{"", "a line of output\n"} {
		name := "poll of " + what
		if line != "" {
			name += ", one new line"
		}
		all, err := b.contest(name, script, b.usual(40), []entrant{
			{limpet.name, limpet.timed(line)}, {plain.name, plain.timed(line)},
		})
		if err != nil {
			return err
		}
		b.report.compare(all)
	}
	return nil
}

// echoPatience bounds hangs.
const echoPatience = 10 * time.Second

// upTo polls until the text is there.
func (b *bench) upTo(p pollable, text string) error {
	for began := time.Now(); time.Since(began) < echoPatience; time.Sleep(time.Millisecond) {
		got, err := p.poll()
		if err != nil || strings.HasSuffix(got, text) {
			return err
		}
	}
	return fmt.Errorf("%s: waited in vain for %q", p.name, text)
}

// timed times a poll, when the line that is given has been printed. An empty one is not.
func (p pollable) timed(line string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		if line != "" {
			want := p.printed() + int64(len(line))
			if err := p.give(line); err != nil {
				return 0, err
			}
			const pause = 100 * time.Microsecond
			for began := time.Now(); p.printed() < want; time.Sleep(pause) {
				if ctx.Err() != nil || time.Since(began) > echoPatience {
					return 0, fmt.Errorf("waited in vain for %q", line)
				}
			}
		}
		began := time.Now()
		text, err := p.poll()
		took := time.Since(began)
		if err == nil && text != line {
			err = fmt.Errorf("%q is new, not %q", text, line)
		}
		return took, err
	}
}

// jobFollow measures how fast a log can be followed that keeps all of it.
func (b *bench) jobFollow() error {
	size := int64(b.some(64)) * megabyte
	return b.withJobs(size, func(r *jobs.Registry) error {
		script := fmt.Sprintf("yes | head -c %d", size)
		rounds := rules{rounds: 16, batch: 1, pause: 20 * time.Millisecond}
		if b.quick {
			rounds.rounds = 4
		}
		what := fmt.Sprintf("%d MB of a job, followed", size/megabyte)
		all, err := b.contest(what, script, rounds, []entrant{
			{limpetName, b.followJob(r, script, size)}, {execName, b.followExec(script, size)},
		})
		if err != nil {
			return err
		}
		b.report.compare(all)
		rate := func(s series) float64 { return float64(size) / megabyte / median(s.Samples).Seconds() }
		b.report.fact(what, fmt.Sprintf("%.0f MB/s, from its start to its end; io.Copy from %s's pipe %.0f MB/s", rate(all[0]), execName, rate(all[1])), "", true)
		return nil
	})
}

func (b *bench) followJob(r *jobs.Registry, script string, size int64) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		job, err := r.Start(ctx, jobs.Spec{Command: script})
		if err != nil {
			return 0, err
		}
		var got counter
		for chunk, err := range r.Follow(ctx, job.ID, 0) {
			if err != nil {
				return 0, err
			}
			_, _ = got.Write(chunk.Data) // Always nil. What was dropped is missing in the end.
		}
		took := time.Since(began)
		if int64(got) != size {
			return 0, fmt.Errorf("%q: %d bytes of output, not %d", script, got, size)
		}
		return took, r.Forget(job.ID) // It is large.
	}
}

func (b *bench) followExec(script string, size int64) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) {
		began := time.Now()
		cmd := exec.Command(b.bash, "-c", script)
		cmd.Env = b.env
		out, err := cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		var got counter
		_, err = io.Copy(&got, out)
		err = errors.Join(err, cmd.Wait())
		took := time.Since(began)
		if err == nil && int64(got) != size {
			err = fmt.Errorf("%q: %d bytes of output, not %d", script, got, size)
		}
		return took, err
	}
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
