package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Reads reports whether a thread of the process sleeps until the terminal can be read: in a read of a
// descriptor that is the terminal, or in a wait for several descriptors with the terminal among them
// (poll(2), select(2), epoll(7)). Alone says that the thread waits for nothing else, and without a limit in
// time: only what is typed wakes it. Device is that of the terminal; /dev/tty counts for the terminal as
// well, so it has to be the controlling terminal of the process.
//
// The error is that of reading /proc/PID/syscall, which takes the right to trace the process (proc(5)): it is
// fs.ErrPermission then, and fs.ErrNotExist or ESRCH if the process has ended. What was found before it holds.
func Reads(pid int, device uint64) (reads, alone bool, err error) {
	return threadsRead("/proc/"+strconv.Itoa(pid), device)
}

// threadsRead is Reads of the process with that directory.
func threadsRead(dir string, device uint64) (reads, alone bool, err error) {
	const most = 64 // A program that reads its terminal has few threads, or reads in one of the first.
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return false, false, err
	}
	for _, task := range tasks[:min(len(tasks), most)] {
		c, err := readCall(dir + "/task/" + task.Name() + "/syscall")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // The thread has just ended, and waits for nothing.
		}
		if err != nil {
			return reads, alone, err
		}
		fds, forever := c.reads(dir)
		among, all := false, forever
		for _, fd := range fds {
			is := isTerminal(dir+"/fd/"+strconv.Itoa(fd), device)
			among, all = among || is, all && is
		}
		reads, alone = reads || among, alone || among && all
	}
	return reads, alone, nil
}

// call is a system call that a thread sleeps in.
type call struct {
	number int // -1 if it sleeps in none
	args   [6]uint64
}

// readCall reads /proc/PID/task/TID/syscall: a number, six arguments, and two addresses.
func readCall(path string) (call, error) {
	var buf [256]byte
	b, err := readOnce(path, buf[:])
	none := call{number: -1}
	if err != nil {
		return none, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 1+len(none.args) {
		return none, nil // "running"
	}
	c := none
	if c.number, err = strconv.Atoi(fields[0]); err != nil {
		return none, fmt.Errorf("proc: no system call: %.80q", b)
	}
	for i := range c.args {
		c.args[i], _ = strconv.ParseUint(strings.TrimPrefix(fields[1+i], "0x"), 16, 64) // The kernel writes numbers.
	}
	return c, nil
}

// reads returns the descriptors that the call waits for, and whether it waits without a limit in time. Dir is
// that of the process in /proc. A call that waits for no descriptor has none.
func (c call) reads(dir string) (fds []int, forever bool) {
	unlimited := func(milliseconds uint64) bool { return int32(milliseconds) < 0 }
	switch a := c.args; c.number {
	case unix.SYS_READ, unix.SYS_READV:
		return []int{int(a[0])}, true
	case unix.SYS_PPOLL:
		return polled(dir, a[0], a[1]), a[2] == 0
	case unix.SYS_PSELECT6:
		return selected(dir, a[0], a[1:4]), a[4] == 0
	case unix.SYS_EPOLL_PWAIT:
		return registered(dir, a[0]), unlimited(a[3])
	case unix.SYS_EPOLL_PWAIT2:
		return registered(dir, a[0]), a[3] == 0
	case sysPoll:
		return polled(dir, a[0], a[1]), unlimited(a[2])
	case sysSelect:
		return selected(dir, a[0], a[1:4]), a[4] == 0
	case sysEpollWait:
		return registered(dir, a[0]), unlimited(a[3])
	}
	return nil, false
}

// mostPolled bounds how many descriptors are looked at of one call.
const mostPolled = 1024

// polled reads the descriptors of a poll(2) from the memory of the process.
func polled(dir string, at, count uint64) (fds []int) {
	const size = 8 // struct pollfd: an int and two shorts.
	b := memory(dir, at, min(count, mostPolled)*size)
	for ; len(b) >= size; b = b[size:] {
		if fd := int32(binary.NativeEndian.Uint32(b)); fd >= 0 { // Others are skipped.
			fds = append(fds, int(fd))
		}
	}
	return fds
}

// selected reads the descriptors of the sets of a select(2).
func selected(dir string, count uint64, sets []uint64) (fds []int) {
	const word = 8 // A set is made of longs; on machines with longs of four bytes, which have their own order, it is the same if they are little-endian.
	count = min(count, mostPolled)
	for _, at := range sets {
		if at == 0 {
			continue
		}
		b := memory(dir, at, (count+63)/64*word)
		for i := range int(count) {
			if i/64*word+word <= len(b) && binary.NativeEndian.Uint64(b[i/64*word:])&(1<<(i%64)) != 0 && !slices.Contains(fds, i) {
				fds = append(fds, i)
			}
		}
	}
	return fds
}

// registered reads the descriptors of an epoll(7).
func registered(dir string, epoll uint64) (fds []int) {
	b, _ := os.ReadFile(dir + "/fdinfo/" + strconv.FormatUint(epoll, 10)) // Empty: nothing is known.
	for line := range bytes.Lines(b) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "tfd:" && len(fds) < mostPolled {
			fd, err := strconv.Atoi(string(fields[1]))
			if err == nil {
				fds = append(fds, fd)
			}
		}
	}
	return fds
}

// memory reads the memory of a process; nil where that cannot be.
func memory(dir string, at, size uint64) []byte {
	if at > math.MaxInt64 || size == 0 {
		return nil
	}
	f, err := os.Open(dir + "/mem")
	if err != nil {
		return nil
	}
	defer f.Close() // Read only.
	b := make([]byte, size)
	if n, _ := f.ReadAt(b, int64(at)); n < len(b) {
		return nil // It was given back meanwhile.
	}
	return b
}

// isTerminal reports whether a descriptor is the terminal of a device, or /dev/tty.
func isTerminal(path string, device uint64) bool {
	var st unix.Statx_t
	// A file of a server that does not answer is not waited for.
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	const ttyMajor, ttyMinor = 5, 0 // /dev/tty (Documentation/admin-guide/devices.txt)
	return unix.Mkdev(st.Rdev_major, st.Rdev_minor) == device || st.Rdev_major == ttyMajor && st.Rdev_minor == ttyMinor
}
