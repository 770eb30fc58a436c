package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of the times in /proc/PID/stat. USER_HZ is 100 on
// every architecture that Go supports (proc(5), times(2)).
const clockTick = 10 * time.Millisecond

// Read reads /proc/PID/stat.
func Read(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return parseStat(b)
}

// parseStat parses a line of /proc/PID/stat. The second field is the program's
// name in parentheses and may hold anything, so the fields are counted from
// the last ")".
func parseStat(b []byte) (Stat, error) {
	end := bytes.LastIndexByte(b, ')')
	start := bytes.IndexByte(b, ' ')
	if end < 0 || start < 0 {
		return Stat{}, fmt.Errorf("proc: no stat line: %.80q", b)
	}
	fields := strings.Fields(string(b[end+1:]))
	const state, ppid, pgrp, session, utime, starttime, exitCode = 0, 1, 2, 3, 11, 19, 49 // proc(5) numbers minus 3
	if len(fields) <= starttime {
		return Stat{}, fmt.Errorf("proc: short stat line: %.80q", b)
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(s) // The kernel writes numbers.
		return n
	}
	ticks := func(i int) time.Duration { return time.Duration(number(fields[i])) * clockTick }
	began, err := strconv.ParseUint(fields[starttime], 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("proc: start time: %w", err)
	}
	var ended syscall.Signal
	if len(fields) > exitCode && fields[state] == "Z" {
		ended = syscall.Signal(number(fields[exitCode]) & 0x7f) // As in wait(2).
	}
	return Stat{
		Ended: ended,
		PID:   number(string(b[:start])), PPID: number(fields[ppid]),
		PGID: number(fields[pgrp]), SID: number(fields[session]),
		State: fields[state][0], Start: began,
		User: ticks(utime), System: ticks(utime + 1),
		ChildUser: ticks(utime + 2), ChildSystem: ticks(utime + 3),
	}, nil
}

// Now returns the present moment as a start time would have it: in clock ticks
// after boot, suspended time included.
func Now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(time.Duration(ts.Nano()) / clockTick)
}

// List reads the stat of every process there is. One that ends meanwhile is
// left out.
func List() ([]Stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close() // Read only: nothing to lose.
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []Stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := Read(pid); err == nil {
			all = append(all, st)
		}
	}
	return all, nil
}

// HasEnv reports whether the process was started with entry ("NAME=value") in
// its environment. It is false where we may not look.
func HasEnv(pid int, entry string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	want := []byte(entry)
	for len(b) > 0 {
		var one []byte
		one, b, _ = bytes.Cut(b, []byte{0})
		if bytes.Equal(one, want) {
			return true
		}
	}
	return false
}

// Command returns the arguments of the process, joined by spaces and cut
// short, or its name where it has no arguments. It is empty when the process
// is gone.
func Command(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	if len(b) == 0 {
		b, _ = os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // Gone: empty is right.
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	if len(text) > commandMax {
		text = strings.ToValidUTF8(text[:commandMax], "") + "..."
	}
	return text
}

// Ignores reports whether the process ignores the signal.
func Ignores(pid int, sig syscall.Signal) bool { return inMask(pid, "SigIgn", sig) }

// Handles reports whether the process has a handler for the signal.
func Handles(pid int, sig syscall.Signal) bool { return inMask(pid, "SigCgt", sig) }

// inMask looks a signal up in one of the masks of /proc/PID/status.
func inMask(pid int, name string, sig syscall.Signal) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(b, []byte("\n"+name+":\t"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	mask, err := strconv.ParseUint(string(line), 16, 64)
	return err == nil && mask&(1<<(uint(sig)-1)) != 0
}

// Dir returns the working directory of the process.
func Dir(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
}

// AwaitsInput reports whether the process sleeps in a read of its descriptor
// 0, as a shell does that waits for its next line (proc(5), /proc/PID/syscall).
func AwaitsInput(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(b))
	return len(fields) > 1 && fields[0] == strconv.Itoa(unix.SYS_READ) && fields[1] == "0x0"
}

// Cursor tells which pid was given out last in this pid namespace (proc(5),
// /proc/loadavg): if it stands still, nothing was forked. It keeps a descriptor,
// since it is asked after every command. Close it.
type Cursor struct{ f *os.File }

// NewCursor opens a Cursor.
func NewCursor() (*Cursor, error) {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	return &Cursor{f}, nil
}

// Last returns the pid.
func (c *Cursor) Last() (int, error) {
	if c == nil {
		return 0, errors.ErrUnsupported
	}
	var buf [128]byte
	n, err := unix.Pread(int(c.f.Fd()), buf[:], 0)
	if err != nil {
		return 0, err
	}
	text := bytes.TrimSpace(buf[:n])
	return strconv.Atoi(string(text[bytes.LastIndexByte(text, ' ')+1:]))
}

// Close closes the descriptor. A nil Cursor has none.
func (c *Cursor) Close() {
	if c != nil {
		_ = c.f.Close() // Read only: nothing to lose.
	}
}

// ErrGone means that the process has ended; its pid may be another's now.
var ErrGone = errors.New("proc: the process is gone")

// Handle is a reference to one process that no reuse of its pid can mislead.
// Close it.
type Handle struct {
	ID ID
	fd int
}

// Open takes a pidfd for the process and then compares the start time, so that
// what is signalled later is what was seen.
func Open(id ID) (*Handle, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		if err == unix.ESRCH {
			return nil, ErrGone
		}
		return nil, fmt.Errorf("proc: pidfd of %d: %w", id.PID, err)
	}
	h := &Handle{ID: id, fd: fd}
	if st, err := Read(id.PID); err != nil || st.Start != id.Start {
		h.Close()
		return nil, ErrGone
	}
	return h, nil
}

// Signal sends sig. It returns ErrGone when the process has ended.
func (h *Handle) Signal(sig syscall.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

// Close releases the reference.
func (h *Handle) Close() { _ = unix.Close(h.fd) } // A pidfd has nothing to flush.

// Signal signals the process if it still is the one that id names.
func Signal(id ID, sig syscall.Signal) error {
	h, err := Open(id)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Signal(sig)
}

// WaitAny blocks until one of the processes has ended or the time is over. A
// pidfd becomes readable when its process ends (pidfd_open(2)).
func WaitAny(ids []ID, timeout time.Duration) {
	var fds []unix.PollFd
	for _, id := range ids {
		h, err := Open(id)
		if err != nil {
			for _, fd := range fds {
				_ = unix.Close(int(fd.Fd))
			}
			return
		}
		fds = append(fds, unix.PollFd{Fd: int32(h.fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(fds, int(timeout.Milliseconds())) // The caller looks again whatever woke us.
	for _, fd := range fds {
		_ = unix.Close(int(fd.Fd))
	}
}
