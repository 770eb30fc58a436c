package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/jobs"
)

// startJobs starts some that are all alike, and returns the supervisor and the bash of
// each. There are none where there is no /proc.
func (b *bench) startJobs(r *jobs.Registry, n int, spec jobs.Spec) (supervisors []proc.Stat, bashes []string, err error) {
	for i := range n {
		job, err := r.Start(b.ctx, spec)
		if err != nil {
			return nil, nil, fmt.Errorf("job %d: %w", i+1, err)
		}
		bashes = append(bashes, strconv.Itoa(job.PID))
		// A supervisor is the parent of its job.
		st, err := proc.Read(job.PID)
		if err == nil {
			st, err = proc.Read(st.PPID)
		}
		if err == nil {
			supervisors = append(supervisors, st)
		}
	}
	return supervisors, bashes, nil
}

func pids(stats []proc.Stat) []string {
	list := make([]string, len(stats))
	for i, st := range stats {
		list[i] = strconv.Itoa(st.PID)
	}
	return list
}

// manyJobs has many jobs that do nothing, and weighs them.
func (b *bench) manyJobs() error {
	n := b.some(64)
	return b.withJobs(0, func(r *jobs.Registry) error {
		goroutines, fds, instances := runtime.NumGoroutine(), len(descriptors()), inotifyInstances()
		heap, rss := liveHeap(), statusField("VmRSS:")
		began := time.Now()
		supervisors, bashes, err := b.startJobs(r, n, jobs.Spec{Command: "read", Stdin: true})
		if err != nil {
			return err
		}
		started := time.Since(began)
		heap, rss = liveHeap()-heap, statusField("VmRSS:")-rss
		goroutines, fds, instances = runtime.NumGoroutine()-goroutines, len(descriptors())-fds, inotifyInstances()-instances
		time.Sleep(jobsSettle) // A supervisor that has just started has more to do.
		before := cpuOf(supervisors)
		began = time.Now()
		time.Sleep(idleFor)
		cpu := before.until(cpuOf(supervisors), time.Since(began))
		supervisorRSS, supervisorOwn := memoryOf(pids(supervisors))
		bashRSS, bashOwn := memoryOf(bashes)

		began = time.Now()
		listed, err := r.List(jobs.Filter{States: []jobs.State{jobs.Running}})
		if err == nil && len(listed) != n {
			err = fmt.Errorf("%d of %d jobs run", len(listed), n)
		}
		if err != nil {
			return err
		}
		list := time.Since(began)
		began = time.Now()
		if _, err := r.StopAll(b.ctx, jobs.Filter{All: true}); err != nil {
			return err
		}
		stopped := time.Since(began)

		what := fmt.Sprintf("%d idle jobs at once", n)
		b.report.fact(what, fmt.Sprintf("started in %s, listed in %s, all stopped in %s; %s", show(started), show(list), show(stopped), cpu), "", true)
		b.report.fact(what+": inotify instances", strconv.Itoa(instances), "at most 1", instances <= 1)
		b.report.fact(what+": memory of one", fmt.Sprintf("%d KB in Go (%d KB of heap); its supervisor %s resident, %s of it not shared; its bash %s resident, %s of it not shared",
			rss/int64(n)>>10, heap/int64(n)>>10, mb(supervisorRSS), mb(supervisorOwn), mb(bashRSS), mb(bashOwn)), "", true)
		b.report.fact(what+": of the program for one", fmt.Sprintf("%s goroutines, %s descriptors", digits(float64(goroutines)/float64(n)), digits(float64(fds)/float64(n))), "", true)
		return nil
	})
}

const (
	jobsSettle = 300 * time.Millisecond
	idleFor    = 2 * time.Second // twice as long as limpet lets pass without a look
)

// liveHeap is what is in use, without what can be collected.
func liveHeap() int64 {
	debug.FreeOSMemory() // It collects first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cpu is the time that was spent on a processor.
type cpu struct {
	program     time.Duration
	supervisors time.Duration // to 10 ms each
	count       int           // of the supervisors
}

func cpuOf(supervisors []proc.Stat) (c cpu) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		c.program = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, st := range supervisors {
		if now, err := proc.Read(st.PID); err == nil && now.ID() == st.ID() {
			c.supervisors += now.User + now.System // Of all its threads, which proc.Ran is not.
			c.count++
		}
	}
	return c
}

// until says how much of one processor they used.
func (c cpu) until(later cpu, took time.Duration) string {
	share := func(from, to time.Duration) string {
		return digits(100*float64(to-from)/float64(took)) + "%"
	}
	text := share(c.program, later.program) + " of a processor for the program"
	if later.count > 0 {
		text += ", " + share(c.supervisors, later.supervisors) + " for the supervisors"
	}
	return text
}

// The bounds of many jobs that print: limpet promises half as much again as is kept,
// and a job has some small files, and directories.
const (
	perJobRate = 10 * megabyte // a second, at most
	perJobDisk = jobs.DefaultOutputLimit*3/2 + 64<<10
)

// printer prints the file five times a second, from its first line of input to the end
// of that. Bash's own echo would take most of the processors.
func printer(file string) string {
	return "read; while cat " + script.Quote(file) + "; read -t 0.2; (($? > 128)); do :; done"
}

// printed is what a printer prints: 1 KB lines.
func (b *bench) printed() (file string, err error) {
	line := strings.Repeat("x", 1<<10-1) + "\n"
	file = filepath.Join(b.files, "printed")
	return file, os.WriteFile(file, []byte(strings.Repeat(line, perJobRate/5/len(line))), 0o600)
}

// jobFlood shows that memory and disk stay bounded while many jobs print far more than
// is kept. As many processes of os/exec that print the same say what the machine can
// do at all.
func (b *bench) jobFlood() error {
	n := b.some(64)
	window := time.Duration(b.some(3000)) * time.Millisecond
	file, err := b.printed()
	if err != nil {
		return err
	}
	plain, plainCPU, err := b.floodExec(n, file, window)
	if err != nil {
		return err
	}
	return b.withJobs(0, func(r *jobs.Registry) error {
		debug.FreeOSMemory()
		resetPeak()
		supervisors, _, err := b.startJobs(r, n, jobs.Spec{Command: printer(file), Stdin: true})
		if err != nil {
			return err
		}
		started, err := r.List(jobs.Filter{})
		for _, job := range started {
			err = errors.Join(err, r.Submit(job.ID, ""))
		}
		if err != nil {
			return err
		}
		printed := func() (sum int64, err error) {
			list, err := r.List(jobs.Filter{States: []jobs.State{jobs.Running}})
			if err == nil && len(list) != n {
				err = fmt.Errorf("%d of %d jobs run", len(list), n)
			}
			for _, job := range list {
				sum += job.Output.End
			}
			return sum, err
		}
		ctx, cancel := context.WithCancel(b.ctx)
		peaks := make(chan usage)
		go func() { peaks <- watchUsage(ctx, r.Dir(), 100*time.Millisecond) }()
		rate, used, err := b.rate(printed, supervisors, window)
		cancel()
		peak := <-peaks
		if err != nil {
			return err
		}
		peak.rss = peakRSS()
		var highest, own int64
		for _, pid := range pids(supervisors) {
			highest = max(highest, statusOf(pid, "VmHWM:"))
			_, private := memoryOf([]string{pid})
			own += private
		}
		began := time.Now()
		if _, err := r.StopAll(b.ctx, jobs.Filter{All: true}); err != nil {
			return err
		}
		stopped := time.Since(began)

		what := fmt.Sprintf("%d jobs that print up to %d MB/s each", n, perJobRate/megabyte)
		b.report.fact(what, fmt.Sprintf("%.0f MB/s in all, with %s; all stopped in %s; by %s, and nothing kept: %.0f MB/s, with %s",
			rate, used, show(stopped), execName, plain, plainCPU), "", true)
		b.report.fact(what+": memory", fmt.Sprintf("peak of the program: heap %s, Go in all %s, resident %s; of a supervisor: resident %s; not shared of all supervisors: %s",
			mb(peak.heap), mb(peak.goSys), mb(peak.rss), mb(highest), mb(own)), "Go's under "+mb(floodMemory), peak.goSys < floodMemory)
		bound := int64(n) * perJobDisk
		b.report.fact(what+": disk", "peak "+mb(peak.disk), "under "+mb(bound), peak.disk < bound)
		return nil
	})
}

// rate measures how many MB a second are printed, and what that costs.
func (b *bench) rate(printed func() (int64, error), supervisors []proc.Stat, window time.Duration) (rate float64, used string, err error) {
	time.Sleep(jobsSettle)
	before, began := cpuOf(supervisors), time.Now()
	from, err := printed()
	if err != nil {
		return 0, "", err
	}
	select {
	case <-time.After(window):
	case <-b.ctx.Done():
		return 0, "", context.Cause(b.ctx)
	}
	to, err := printed()
	took := time.Since(began)
	return float64(to-from) / megabyte / took.Seconds(), before.until(cpuOf(supervisors), took), err
}

// floodExec reads what as many processes print, and keeps nothing of it.
func (b *bench) floodExec(n int, file string, window time.Duration) (rate float64, used string, err error) {
	var total tally
	for range n {
		p, err := b.startProcess(printer(file), &total)
		if err != nil {
			return 0, "", err
		}
		defer p.close()
		if _, err := io.WriteString(p.stdin, "\n"); err != nil {
			return 0, "", err
		}
	}
	return b.rate(func() (int64, error) { return total.Load(), nil }, nil, window)
}

// tally counts what many write to it.
type tally struct{ atomic.Int64 }

func (t *tally) Write(p []byte) (int, error) {
	t.Add(int64(len(p)))
	return len(p), nil
}
