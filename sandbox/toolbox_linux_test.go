package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// More tools: those that are about resources, terminals and memory.

// toolCPU computes for as long, on the processor's clock.
func toolCPU(args ...string) error {
	enough, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	for {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
			return err
		}
		if time.Duration(used.Utime.Nano()+used.Stime.Nano()) > enough {
			return nil
		}
	}
}

// toolFork has as many processes at once, and ends them.
func toolFork(args ...string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range n {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Wait()         //nolint:errcheck // It was killed.
		defer cmd.Process.Kill() //nolint:errcheck // It sleeps.
	}
	return nil
}

// toolMemory takes as many MiB, and uses them.
func toolMemory(args ...string) error {
	_, err := memory(args, unix.MAP_POPULATE)
	return err
}

// toolMlock keeps as many MiB from being swapped.
func toolMlock(args ...string) error {
	b, err := memory(args, 0)
	if err != nil {
		return err
	}
	return unix.Mlock(b)
}

func memory(args []string, flags int) ([]byte, error) {
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	return unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|flags)
}

// toolInotify takes all instances that the user may have, says so, and keeps
// them.
func toolInotify(args ...string) error {
	for {
		if _, err := unix.InotifyInit1(0); err != nil {
			fmt.Println("bites")
			time.Sleep(time.Hour)
		}
	}
}

// toolDeep makes directories below one another.
func toolDeep(args ...string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	for range n {
		if err := unix.Mkdir("d", 0o700); err != nil {
			return err
		}
		if err := unix.Chdir("d"); err != nil {
			return err
		}
	}
	return nil
}

// toolSTI types into a terminal of its own. The kernel takes an ioctl's number
// as 32 bits, so a filter must not look at more of them.
func toolSTI(args ...string) error {
	high, err := strconv.ParseUint(args[0], 0, 64)
	if err != nil {
		return err
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if _, err := unix.Setsid(); err != nil {
		return err
	}
	tty, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	char := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(tty), uintptr(high), uintptr(unsafe.Pointer(&char)))
	return orNil(errno)
}

// disarmed is code for amd64 that has the process outlive its parent, and then
// sleep for good: prctl(PR_SET_PDEATHSIG, 0); for (;;) pause().
var disarmed = []byte{
	0xbf, 1, 0, 0, 0, // mov $1, %edi
	0x31, 0xf6, // xor %esi, %esi
	0xb8, 157, 0, 0, 0, // mov $157, %eax
	0x0f, 0x05, // syscall
	0xb8, 34, 0, 0, 0, // mov $34, %eax
	0x0f, 0x05, // syscall
	0xeb, 0xf7, // jmp to the last mov
}

// toolDisarm changes a process that waits for a system call: when it goes on it
// does what disarmed says. Before that, its environment is wiped out, by which
// it would be found. A tracer could do no more, and this needs no ptrace(2).
func toolDisarm(args ...string) error {
	if runtime.GOARCH != "amd64" {
		return errors.ErrUnsupported
	}
	dir := "/proc/" + args[0]
	state, err := os.ReadFile(dir + "/syscall") // NUMBER ARGUMENTS... SP PC
	if err != nil {
		return err
	}
	fields := strings.Fields(string(state))
	pc, err := strconv.ParseInt(fields[len(fields)-1], 0, 64)
	if err != nil {
		return err
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return err
	}
	const envStart, envEnd = 50 - 3, 51 - 3 // proc(5) numbers, behind the name
	fields = strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	from, err := strconv.ParseInt(fields[envStart], 10, 64)
	if err != nil {
		return err
	}
	to, err := strconv.ParseInt(fields[envEnd], 10, 64)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(dir+"/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if _, err := mem.WriteAt(make([]byte, to-from), from); err != nil {
		return err
	}
	_, err = mem.WriteAt(disarmed, pc)
	return err
}

// call is a system call that a sandboxed program has no use for.
type call struct {
	name string
	do   func() error

	// reached are errors that come from the call itself: only who may make it
	// gets that far.
	reached []syscall.Errno
}

// toolCall makes one.
func toolCall(args ...string) error {
	for _, c := range calls {
		if c.name != args[0] {
			continue
		}
		err := c.do()
		for _, errno := range c.reached {
			if errors.Is(err, errno) {
				return nil
			}
		}
		return err
	}
	return errWrong
}

// raw makes a system call by its number.
func raw(nr uintptr, args ...uintptr) func() error {
	var a [6]uintptr
	copy(a[:], args)
	return func() error {
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		return orNil(errno)
	}
}
