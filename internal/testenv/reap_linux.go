package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
)

const (
	asReaper = "reaper"
	asTests  = "tests"
)

// lifelineFD is the end of a pipe in the reaper. It reads end-of-file when the process is
// gone that go test has started.
const lifelineFD = 3

// How long what outlives the tests may take to end by itself. A guard has directories to
// remove. If the tests have passed, what does not end is a leak, and makes them fail.
const (
	graceFailed = 2 * time.Second
	gracePassed = 10 * time.Second
)

// reapSignals are passed on to the tests, as go test and people send them: SIGQUIT has the
// tests print their goroutines.
var reapSignals = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// Reap has the rest of this program, its tests, run below a reaper, so that nothing they
// start outlives them, however they end: jobs and terminals are made to outlive their
// program, and a program that panics or is killed cleans nothing up.
//
//	go test ---> this program ---lifeline---> reaper ------> this program, as the tests
//	             waits for it                 a subreaper     ---> all that they start
//
// When the tests have ended, or the lifeline has, the reaper kills what is below it. Reap
// returns in the process that runs the tests; the others exit in it. To run the tests in
// one process, as a debugger wants it, set LIMPET_TEST_REAPER=tests.
func Reap() {
	switch os.Getenv(reaperVar) {
	case asTests: // Or a test binary that the tests have started, which is below their reaper.
		if raceDetector {
			proc.StandIn(os.Getenv(StandInVar))
		}
	case asReaper:
		exitNow(reap())
	default:
		exitNow(awaitReaper())
	}
}

// exitNow exits without a race detector's sleep of a second, and without what a process
// that runs tests has to do at its end.
func exitNow(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv: the reaper of the tests:", err)
		code = 2
	}
	syscall.Exit(code)
}

// self is this program as another of its processes.
const self = "/proc/self/exe"

// awaitReaper starts the reaper and returns the exit code of the tests.
func awaitReaper() (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self)
	cmd.Args, cmd.Env = os.Args, append(os.Environ(), reaperVar+"="+asReaper)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // A signal for the whole group leaves it alone.
	signals := passedOn()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_ = r.Close() // The reaper has its own.
	go func() {
		for sig := range signals {
			_ = cmd.Process.Signal(sig) // It may have ended.
		}
	}()
	err = cmd.Wait()
	runtime.KeepAlive(w) // Until now: closed, it would end the tests.
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// passedOn receives the signals to pass on, but for those that are ignored, as by nohup.
func passedOn() <-chan os.Signal {
	signals := make(chan os.Signal, len(reapSignals))
	for _, sig := range reapSignals {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// reap runs the tests, waits for all that comes to be below this process, and kills what
// remains. It returns the exit code of the tests.
func reap() (code int, err error) {
	runtime.LockOSThread() // The parent-death signal comes when the thread ends that has forked.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	syscall.CloseOnExec(lifelineFD)
	signals := passedOn()
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return entry == reaperVar+"="+asReaper })
	handle := -1 // A pidfd: the tests may have ended when a signal comes.
	tests, err := syscall.ForkExec(self, os.Args, &syscall.ProcAttr{
		Env: append(env, reaperVar+"="+asTests), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, PidFD: &handle},
	})
	if err != nil {
		return 0, err
	}
	tell := func(sig syscall.Signal) { _ = unix.PidfdSendSignal(handle, sig, nil, 0) } // They may have ended.
	go func() {
		for sig := range signals {
			tell(sig.(syscall.Signal))
		}
	}()
	go func() {
		_, _ = syscall.Read(lifelineFD, make([]byte, 1)) // Nothing is written: it is the end.
		tell(syscall.SIGKILL)
	}()
	var rest rest
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: nothing is left.
			if names := rest.names(); len(names) > 0 {
				fmt.Fprintf(os.Stderr, "testenv: the reaper killed what outlived the tests: %q\n", names)
				code = max(code, 1)
			}
			return code, nil
		case pid == tests:
			code = status.ExitStatus()
			grace := gracePassed
			if status.Signaled() {
				const bySignal = 128
				code = bySignal + int(status.Signal())
				fmt.Fprintln(os.Stderr, "testenv: the tests were ended by a signal:", status.Signal())
			}
			if code != 0 {
				grace = graceFailed
			}
			go rest.kill(grace)
		}
	}
}

// rest are the processes that have outlived the tests, and were killed.
type rest struct {
	mu     sync.Mutex
	killed []string
}

// kill kills, after a grace, what is below this process, again and again: a process may
// fork meanwhile. It does not return: this process ends when nothing is left.
func (r *rest) kill(grace time.Duration) {
	time.Sleep(grace)
	seen := make(map[proc.ID]bool)
	self, err := proc.Read(os.Getpid())
	for ; err == nil; time.Sleep(pause) {
		tree, _ := proc.Snapshot() // What can be read is killed.
		for _, st := range tree.Descendants(self.ID()) {
			if !seen[st.ID()] {
				seen[st.ID()] = true
				r.mu.Lock()
				r.killed = append(r.killed, proc.Command(st.PID))
				r.mu.Unlock()
			}
			_ = proc.Signal(st.ID(), syscall.SIGKILL) // It may have ended.
		}
	}
}

func (r *rest) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed
}
