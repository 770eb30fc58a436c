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
	"os"
	"os/exec"
	"sync"
	"syscall"
)

//go:embed guard.bash
var script string

// guard is the process, while there is something to guard.
var (
	mu    sync.Mutex
	users int
	pipe  *os.File // the lifeline
	cmd   *exec.Cmd
	told  map[string]bool // directories
)

// Watch puts a session under guard: processes that have entry in their
// environment, and the program's directory. The first session starts the
// guard, with bash. Every successful Watch wants one [Forget].
func Watch(bash, entry, dir string) error {
	mu.Lock()
	defer mu.Unlock()
	if users == 0 {
		if err := start(bash); err != nil {
			return err
		}
	}
	users++
	line := "+" + entry + "\n"
	if !told[dir] {
		told[dir] = true
		line = "d" + dir + "\n" + line
	}
	return tell(line)
}

// Forget ends the guard of a session that was closed in good order. The last
// one ends the guard itself, and waits for that.
func Forget(entry string) {
	mu.Lock()
	defer mu.Unlock()
	_ = tell("-" + entry + "\n") // A dead guard has nothing to forget.
	if users--; users > 0 {
		return
	}
	_ = pipe.Close() // Everything was told.
	_ = cmd.Wait()   // It has nothing left to do, and how it ended changes nothing.
	pipe, cmd = nil, nil
}

func start(bash string) error {
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
	pipe, cmd, told = w, c, make(map[string]bool)
	return nil
}

func tell(line string) error {
	_, err := pipe.WriteString(line)
	return err
}
