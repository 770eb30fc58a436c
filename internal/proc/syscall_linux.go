package proc

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What a process waits for, by the system call that it sleeps in.

// AwaitsInput reports whether the process sleeps in a read of its descriptor 0
// while that is stdin, as a shell does that waits for its next line. A shell
// that runs "read <fifo" has another file there.
func AwaitsInput(pid int, stdin string) bool {
	call, arg, ok := systemCall(pid)
	return ok && call == unix.SYS_READ && arg == "0x0" && stdin != "" && Stdin(pid) == stdin
}

// AwaitsChild reports whether the process sleeps in a wait for a child, or in a
// read of what one prints. A process that was stopped there still is there. It
// errs on the side of yes where the kernel does not say.
func AwaitsChild(pid int) bool {
	call, _, ok := systemCall(pid)
	return !ok || call == unix.SYS_WAIT4 || call == unix.SYS_READ
}

// AwaitsAny reports whether the process sleeps until one of several descriptors is ready, or a time is
// over, as "read -t" does. It errs on the side of no.
func AwaitsAny(pid int) bool {
	call, _, ok := systemCall(pid)
	return ok && (call == unix.SYS_PSELECT6 || call == unix.SYS_PPOLL)
}

// Waits reports whether the process sleeps in a wait for a child. It errs on the side
// of no.
func Waits(pid int) bool {
	call, _, ok := systemCall(pid)
	return ok && call == unix.SYS_WAIT4
}

// Kills reports whether the process is about to return from a kill(2) of its own. It
// errs on the side of no.
func Kills(pid int) bool {
	call, _, ok := systemCall(pid)
	return ok && call == unix.SYS_KILL
}

// systemCall reads which system call the process sleeps in, -1 for none, and
// its first argument. It needs the right to trace the process (proc(5),
// /proc/PID/syscall).
func systemCall(pid int) (number int, arg string, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) == 0 {
		return 0, "", false
	}
	number, err = strconv.Atoi(fields[0])
	if err != nil || len(fields) < 2 {
		return -1, "", true // "running"
	}
	return number, fields[1], true
}
