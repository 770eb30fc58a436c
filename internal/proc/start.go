package proc

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

var starting sync.Mutex

// Start starts cmd with SIGINT as it is by default, whatever this program does
// with it. A program that was started in the background of a script, or ignores
// SIGINT for another reason, would pass that on to its children (execve(2)), for
// which a stop would then be no more than a wait for SIGTERM. Bash cannot undo
// it: what was ignored when it started, its children ignore.
//
// Go resets in a child what the program handles, so the signal is handled for
// as long as the start takes, by nobody, which to the program is the same as
// ignoring it. A signal.Notify for SIGINT by somebody else in that instant would
// be lost.
func Start(cmd *exec.Cmd) error {
	starting.Lock() // First: while another one starts it is not ignored.
	if !signal.Ignored(syscall.SIGINT) {
		starting.Unlock()
		return cmd.Start()
	}
	defer starting.Unlock()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	defer signal.Ignore(syscall.SIGINT) // It also ends the Notify.
	return cmd.Start()
}
