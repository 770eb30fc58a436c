package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
)

// NeedProc skips a test that has its facts from /proc where there is none.
func NeedProc(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// FDs counts the descriptors that this program has open.
func FDs(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - 1 // One was the directory's own.
}

// Children returns the processes, living and zombie, that this program is the
// parent of.
func Children() []proc.Stat {
	var children []proc.Stat
	all, _ := proc.List() // Without /proc nobody is found.
	for _, st := range all {
		if st.PPID == os.Getpid() {
			children = append(children, st)
		}
	}
	return children
}

// Zombies counts the children that ended and were not waited for.
func Zombies() int {
	n := 0
	for _, st := range Children() {
		if st.Zombie() {
			n++
		}
	}
	return n
}

// Marked returns the living processes that carry the environment entry
// "NAME=value", wherever they went. The entry is one of this program's making: a
// process that is older is not asked.
func Marked(entry string) []proc.Stat {
	var marked []proc.Stat
	if _, value, _ := strings.Cut(entry, "="); value == "" {
		return nil // Whoever signals these must not reach everybody.
	}
	self, _ := proc.Read(os.Getpid()) // Zero elsewhere: then all are asked.
	all, _ := proc.List()             // As above.
	for _, st := range all {
		if st.Start >= self.Start && !st.Zombie() && proc.HasEnv(st.PID, entry) {
			marked = append(marked, st)
		}
	}
	return marked
}

// PIDHere returns the pid here of the process that carries the entry and has
// the pid there where it runs: a sandbox counts for itself. It is 0 if there is
// none.
func PIDHere(entry string, there int) int {
	if runtime.GOOS != "linux" {
		return there
	}
	for _, st := range Marked(entry) {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/status") // Gone: no line is found.
		_, after, _ := strings.Cut(string(status), "\nNSpid:\t")
		line, _, _ := strings.Cut(after, "\n")
		pids := strings.Fields(line)
		if len(pids) > 0 && pids[len(pids)-1] == strconv.Itoa(there) {
			return st.PID
		}
	}
	return 0
}

// AwaitNone waits until nobody carries the entry, and fails the test, with the
// names of those who do, when that does not come.
func AwaitNone(t testing.TB, entry, when string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		began := time.Now()
		alive := Marked(entry)
		if len(alive) == 0 {
			return
		}
		if began.After(deadline) {
			t.Fatalf("%v after it was %s these live on: %s", Patience, when, Describe(alive))
		}
		pauseSince(began)
	}
}

// Describe names processes, for a failed test.
func Describe(list []proc.Stat) string {
	var names []string
	for _, st := range list {
		names = append(names, proc.Command(st.PID))
	}
	return strings.Join(names, "; ")
}

// Alive reports whether the process runs: a zombie does not.
func Alive(pid int) bool {
	st, err := proc.Read(pid)
	return err == nil && !st.Zombie()
}

// AwaitStopped waits until all threads of a process, which was sent SIGSTOP, stand still. Those that
// are in the kernel, or have no processor, go on for a while. It needs /proc.
func AwaitStopped(t testing.TB, pid int) {
	t.Helper()
	Await(t, fmt.Sprintf("the stop of process %d", pid), func() bool {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // The thread has ended.
			}
			if _, state, ok := strings.Cut(string(b), ") "); !ok || state[0] != 'T' {
				return false
			}
		}
		return len(files) > 0
	})
}
