// Package guard makes sure that nothing of this program's sessions outlives the
// program, even when it is killed. Bash sees the end of its stdin only when
// its running command ends, and a parent-death signal follows the thread that
// forked, so neither will do. A guard is a small bash script on a pipe of which
// this program holds the only other end: see guard.bash.
//
// The guard has processes to end on Linux alone; elsewhere it only removes
// directories.
package guard

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
)

//go:embed guard.bash
var script string

// The guard, while there is something to guard.
var (
	mu      sync.Mutex
	entries = make(map[string]bool) // of open sessions
	dirs    = make(map[string]bool)
	held    = make(map[proc.ID]bool) // processes besides
	leaders = make(map[proc.ID]bool) // of sessions (setsid(2)) besides
	pipe    *os.File                 // the lifeline
	cmd     *exec.Cmd
)

// Watch puts a session under guard: processes that have entry in their
// environment, and the program's directory, if it has one. The first session starts the
// guard, with bash, and so does one that finds the guard dead.
func Watch(bash, entry, dir string) error {
	mu.Lock()
	defer mu.Unlock()
	news := "+" + entry + "\n"
	if entries[entry] {
		news = "\n" // It says nothing, but to a guard that is dead.
	}
	entries[entry] = true
	known := dir == "" || dirs[dir]
	if !known {
		dirs[dir] = true
		news = "d" + dir + "\n" + news
	}
	if cmd != nil && tell(news) == nil {
		return nil
	}
	stop()
	if err := start(bash); err != nil {
		return err
	}
	var all strings.Builder
	for dir := range dirs {
		all.WriteString("d" + dir + "\n")
	}
	for entry := range entries {
		all.WriteString("+" + entry + "\n")
	}
	for id := range held {
		all.WriteString(line("p", id))
	}
	for id := range leaders {
		all.WriteString(line("s", id))
	}
	return tell(all.String())
}

// Hold has a process ended, too, if the program is gone: one that takes others
// with it, and carries no entry. It is guarded while there is a session.
func Hold(id proc.ID) {
	mu.Lock()
	defer mu.Unlock()
	held[id] = true
	if cmd != nil {
		_ = tell(line("p", id)) // A dead guard is told by the next Watch.
	}
}

// Drop takes back a Hold: the process has ended.
func Drop(id proc.ID) {
	mu.Lock()
	defer mu.Unlock()
	delete(held, id)
	if cmd != nil {
		_ = tell(line("P", id)) // As above.
	}
}

// HoldSession has the leader of a session ended, too, with all of the session: of what
// carries no entry any more, as behind "env -i". They are ended after the carriers, and
// killed: the end of the program has hung their terminal up before.
func HoldSession(leader proc.ID) {
	mu.Lock()
	defer mu.Unlock()
	leaders[leader] = true
	if cmd != nil {
		_ = tell(line("s", leader)) // As above.
	}
}

// DropSession takes back a HoldSession.
func DropSession(leader proc.ID) {
	mu.Lock()
	defer mu.Unlock()
	delete(leaders, leader)
	if cmd != nil {
		_ = tell(line("S", leader)) // As above.
	}
}

func line(word string, id proc.ID) string { return fmt.Sprintf("%s%d %d\n", word, id.PID, id.Start) }

// Forget ends the guard of a session that was closed in good order. The last
// one ends the guard itself, and waits for that. An entry that is not guarded
// is left alone.
func Forget(entry string) {
	mu.Lock()
	defer mu.Unlock()
	if !entries[entry] {
		return
	}
	delete(entries, entry)
	if len(entries) > 0 {
		_ = tell("-" + entry + "\n") // A dead guard has nothing to forget.
		return
	}
	// The directories are another's to remove: a session that is just about
	// to start may use them.
	clear(dirs)
	stop()
}

// stopGrace is how long a guard may take to end: it has nothing left to do.
const stopGrace = time.Second

// stop ends the guard, which then does nothing more, and waits for it. The
// caller holds mu.
func stop() {
	if cmd == nil {
		return
	}
	_ = tell("q\n")  // A dead guard need not be told.
	_ = pipe.Close() // As above.
	process := cmd.Process
	kill := time.AfterFunc(stopGrace, func() { _ = process.Kill() }) // It may have ended by now.
	_ = cmd.Wait()                                                   // How it ended changes nothing.
	kill.Stop()
	pipe, cmd = nil, nil
}

// start starts the guard with the bash of the PATH, since the session's may be a
// wrapper that does who knows what, or with that one if there is no other.
func start(bash string) error {
	if path, err := exec.LookPath("bash"); err == nil {
		bash = path
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close() // The guard has its own.
	c := exec.Command(bash, "--noprofile", "--norc", "-c", script, "limpet-guard")
	c.Stdin = r
	c.Dir = "/"
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		_ = w.Close() // Nothing was written.
		return err
	}
	pipe, cmd = w, c
	return nil
}

func tell(line string) error {
	_, err := pipe.WriteString(line) // A nil pipe is an error.
	return err
}
