package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of the times in /proc/PID/stat. USER_HZ is 100 on
// every architecture that Go supports (proc(5), times(2)).
const clockTick = 10 * time.Millisecond

// Read reads /proc/PID/stat.
func Read(pid int) (Stat, error) {
	var buf [statMax]byte
	b, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return Stat{}, err
	}
	return parseStat(b)
}

// statMax is more than a line of /proc/PID/stat has: some fifty numbers and a name.
const statMax = 2048

// parseStat parses a line of /proc/PID/stat. The second field is the program's
// name in parentheses and may hold anything, so the fields are counted from
// the last ")".
func parseStat(b []byte) (Stat, error) {
	end := bytes.LastIndexByte(b, ')')
	start := bytes.IndexByte(b, ' ')
	if end < 0 || start < 0 {
		return Stat{}, fmt.Errorf("proc: no stat line: %.80q", string(b))
	}
	fields := strings.Fields(string(b[end+1:]))
	const state, ppid, pgrp, session, flags, cminflt, utime, threads, starttime, exitCode = 0, 1, 2, 3, 6, 8, 11, 17, 19, 49 // proc(5) numbers minus 3
	const startCode, startStack, envStart, envEnd = 23, 25, 47, 48                                                           // the same
	const exiting, forkNoExec, kernelThread = 0x4, 0x40, 0x00200000                                                          // PF_EXITING, PF_FORKNOEXEC, PF_KTHREAD (include/linux/sched.h)
	if len(fields) <= starttime {
		return Stat{}, fmt.Errorf("proc: short stat line: %.80q", string(b))
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
	execed := number(fields[flags])&forkNoExec == 0
	program := image{execed: execed}
	for i, field := range []int{startCode, startStack, envStart, envEnd} {
		if field < len(fields) {
			program.at[i], _ = strconv.ParseUint(fields[field], 10, 64) // The kernel writes numbers.
		}
	}
	return Stat{
		Ended: ended, image: program, kernel: number(fields[flags])&kernelThread != 0,
		PID: number(string(b[:start])), PPID: number(fields[ppid]),
		PGRP: number(fields[pgrp]), SID: number(fields[session]),
		State: fields[state][0], Execed: execed, Threads: number(fields[threads]), Start: began,
		Exiting: number(fields[flags])&exiting != 0 && number(fields[threads]) <= 1,
		User:    ticks(utime), System: ticks(utime + 1),
		ChildUser: ticks(utime + 2), ChildSystem: ticks(utime + 3),
		ChildFaults: number(fields[cminflt]),
	}, nil
}

// Ran returns how long the process was on a processor, its children not
// included: by nanoseconds where the kernel says that (/proc/PID/schedstat), else
// by clock ticks. It is 0 where the process is gone.
func Ran(id ID) time.Duration {
	st, err := Read(id.PID)
	if err != nil || st.ID() != id {
		return 0
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/schedstat")
	ns, _, ok := strings.Cut(string(b), " ")
	if ran, errNumber := strconv.ParseInt(ns, 10, 64); err == nil && ok && errNumber == nil && ran > 0 {
		return time.Duration(ran)
	}
	return st.User + st.System
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
// left out, and so are the kernel's threads: they have no environment and no
// memory, and nobody may signal them.
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
		if st, err := Read(pid); err == nil && !st.kernel {
			all = append(all, st)
		}
	}
	return all, nil
}

// HasEnv reports whether the process was started with entry ("NAME=value") in
// its environment. It is false where we may not look.
func HasEnv(pid int, entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	values, _ := envValues(pid, name) // None where we may not look.
	return slices.Contains(values, value)
}

// envValues returns the values that a variable has in the environment of the process,
// more than one if that names it more than once. It reports false where there is no
// environment, or where we may not look.
func envValues(pid int, name string) (values []string, read bool) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := environ(pid, buf)
	read = len(b) > 0
	for len(b) > 0 {
		var one []byte
		one, b, _ = bytes.Cut(b, []byte{0})
		if v, ok := bytes.CutPrefix(one, []byte(name)); !ok {
			continue
		} else if len(v) == 0 {
			// Bash writes a NUL over the "=" for as long as it takes an entry over
			// (5.2, variables.c, initialize_shell_variables).
			one, _, _ = bytes.Cut(b, []byte{0})
			values = append(values, string(one))
		} else if v[0] == '=' {
			values = append(values, string(v[1:]))
		}
	}
	return values, read
}

// Env returns the value of a variable in the environment that the process was started
// with. It is not ok where there is none, and where we may not look.
func Env(pid int, name string) (value string, ok bool) {
	values, _ := envValues(pid, name) // None, as said.
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// buffers are larger than most environments.
var buffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

// environ reads the environment of the process. Within an execve there is none
// for an instant, or for as long as no processor is free; the kernel then knows
// no program either. One that was started without an environment is asked more
// than once, for it may exec again and again.
func environ(pid int, buf *[]byte) []byte {
	// In looks, since whoever looks may be the one that no processor is free for.
	const pause, asleep, looks, empty = 100 * time.Microsecond, 200, 10_000, 5
	path := "/proc/" + strconv.Itoa(pid) + "/environ"
	slept, seen := 0, 0
	for range looks {
		b, err := readAtOnce(path, buf)
		if err != nil || len(b) > 0 {
			return b
		}
		state, execed := program(pid)
		if slept++; state == 'R' {
			slept = 0
		}
		if execed {
			seen++
		}
		if state == 0 || seen == empty || slept == asleep {
			return nil
		}
		if execed {
			continue // Its execve is over, or it was started without an environment.
		}
		time.Sleep(pause)
	}
	return nil
}

// program reports the state of a process, and whether it has a program by now:
// an execve sets startcode (proc(5), /proc/PID/stat) behind the environment
// (load_elf_binary, fs/binfmt_elf.c). The state is 0 if it will never have an
// environment: it is gone, a zombie, or the kernel's.
func program(pid int) (state byte, execed bool) {
	const kernelThread = 0x00200000 // PF_KTHREAD, include/linux/sched.h
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	const flags, startCode = 6, 23 // proc(5) numbers minus 3
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) <= startCode {
		return 0, false
	}
	bits, _ := strconv.ParseUint(fields[flags], 10, 64) // The kernel writes numbers.
	if state = fields[0][0]; state == 'Z' || state == 'X' || bits&kernelThread != 0 {
		return 0, false
	}
	return state, fields[startCode] != "0"
}

// readAtOnce reads a file of /proc with a single read(2). Of a process that
// execs between two of them, the second finds nothing.
func readAtOnce(path string, buf *[]byte) ([]byte, error) {
	for {
		b, err := readOnce(path, *buf)
		if len(b) < len(*buf) {
			return b, err
		}
		*buf = make([]byte, 2*len(*buf))
	}
}

// readOnce reads what there is room for, with the three system calls that it takes.
// With [os.ReadFile] it would be seven, for each of all processes, at each of many
// looks in a stop.
func readOnce(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := unix.Read(fd, buf)
	for err == unix.EINTR {
		n, err = unix.Read(fd, buf)
	}
	_ = unix.Close(fd) // Read only: nothing to lose.
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return buf[:n], nil
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

// CommandSoon is [Command] of a process that was forked just now, once it is the program that it is
// to be: until then it has the arguments of its parent, and within its execve none. It waits for
// a processor to be free for it. One that stays a fork soon sleeps, or runs for longer than it
// takes to become a program.
func CommandSoon(st Stat) string {
	const pause, longest, long, looks = 200 * time.Microsecond, 500 * time.Millisecond, 20 * time.Millisecond, 3
	asleep := 0
	for began := time.Now(); time.Since(began) < longest; time.Sleep(pause) {
		now, err := Read(st.PID)
		if err != nil || now.ID() != st.ID() || now.Execed && now.image.at[0] != 0 {
			break
		}
		if asleep++; now.State == 'R' || now.State == 'D' {
			asleep = 0
		}
		if (asleep >= looks || Ran(st.ID()) > long) && (now.State == 'Z' || hasArguments(st.PID)) {
			break
		}
	}
	return Command(st.PID)
}

// hasArguments reports whether a process has any: within its execve, where it may wait for a disk, it has none.
func hasArguments(pid int) bool {
	b, err := readOnce("/proc/"+strconv.Itoa(pid)+"/cmdline", make([]byte, 1))
	return err != nil || len(b) > 0
}

// Program returns the file of the program that the process runs. It is empty where
// it is gone, or somebody else's.
func Program(pid int) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

// ReadSignals reads how the process deals with signals; the zero value where it
// is gone.
func ReadSignals(pid int) Signals {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return Signals{}
	}
	mask := func(name string) uint64 {
		_, after, _ := bytes.Cut(b, []byte("\n"+name+":\t"))
		line, _, _ := bytes.Cut(after, []byte("\n"))
		bits, _ := strconv.ParseUint(string(line), 16, 64) // The kernel writes numbers.
		return bits
	}
	return Signals{
		ignored: mask("SigIgn"), caught: mask("SigCgt"), blocked: mask("SigBlk"), pending: mask("SigPnd") | mask("ShdPnd"),
	}
}

// Children reads the children of the process, zombies included. A process that
// is stopped has the same ones a moment later, but for those that end.
func Children(pid int) []Stat {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var kids []Stat
	for _, task := range tasks {
		b, err := os.ReadFile(dir + "/" + task.Name() + "/children")
		if errors.Is(err, fs.ErrNotExist) {
			return childrenOf(pid) // A kernel without CONFIG_PROC_CHILDREN (proc(5)), or a thread that ended.
		}
		for _, name := range strings.Fields(string(b)) {
			kid, _ := strconv.Atoi(name) // The kernel writes numbers.
			if st, err := Read(kid); err == nil {
				kids = append(kids, st)
			}
		}
	}
	return kids
}

// childrenOf finds the children among all processes.
func childrenOf(pid int) []Stat {
	all, _ := List() // What can be read is what there is.
	return slices.DeleteFunc(all, func(st Stat) bool { return st.PPID != pid })
}

// Dir returns the working directory of the process.
func Dir(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
}

// InDeadDir reports whether the working directory of the process was removed. It errs on the side of
// no, also where a path is as long as it can be.
func InDeadDir(pid int) bool {
	var path [unix.PathMax]byte
	n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/cwd", path[:])
	return err == nil && bytes.HasSuffix(path[:n], []byte(" (deleted)"))
}

// Descriptors returns how many descriptors the process has open.
func Descriptors(pid int) (int, error) {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(names), err
}

// MostDescriptors returns how many descriptors the process may have open (RLIMIT_NOFILE); 0 where
// that is not known.
func MostDescriptors(pid int) int {
	limits, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits") // Empty: it is not known.
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			most, err := strconv.Atoi(soft)
			if err != nil {
				return math.MaxInt // "unlimited"
			}
			return most
		}
	}
	return 0
}

// Stdin names the file that is the process' descriptor 0, a pipe by its inode.
func Stdin(pid int) string {
	name, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/0") // Empty: it is not known.
	return name
}

// ReadsPipe reports whether the stdin of a process is a pipe.
func ReadsPipe(pid int) bool { return strings.HasPrefix(Stdin(pid), "pipe:") }

// Closed reports whether the process does not have the descriptor.
func Closed(pid, fd int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	return errors.Is(err, fs.ErrNotExist)
}

// Writes reports whether the stdout or stderr of a process is the file.
func Writes(pid int, file fs.FileInfo) bool {
	for _, fd := range []string{"1", "2"} {
		if st, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "fd", fd)); err == nil && os.SameFile(st, file) {
			return true
		}
	}
	return false
}
