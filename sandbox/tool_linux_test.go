package sandbox_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tools do what bash cannot, for scripts: "$TOOL NAME ARGUMENT...". One that
// returns nil has worked, and prints "bites".
var tools = map[string]func(args ...string) error{
	"call": toolCall, "victim": toolVictim,
	"connect": toolConnect, "stream": toolStream, "datagram": toolDatagram, "families": toolFamilies, "lo": toolLoopback, "bind": toolBind,
	"setns": toolSetns, "readv": toolReadv, "getfd": toolGetfd, "seize": toolSeize, "prlimit": toolPrlimit,
	"shm": toolShm, "mq": toolQueue, "handle": toolHandle, "exchange": toolExchange, "xattr": toolXattr,
	"sti": toolSTI, "cpu": toolCPU, "fork": toolFork, "mlock": toolMlock, "memory": toolMemory, "inotify": toolInotify, "deep": toolDeep, "disarm": toolDisarm,
}

var errWrong = errors.New("wrong arguments")

func toolHelper() (err error) {
	if len(os.Args) < 2 || tools[os.Args[1]] == nil {
		return fmt.Errorf("no tool: %q", os.Args)
	}
	defer func() {
		if recover() != nil { // An argument is missing.
			err = errWrong
		}
	}()
	if err := tools[os.Args[1]](os.Args[2:]...); err != nil {
		return fmt.Errorf("%q: %w", os.Args[1:], err)
	}
	fmt.Println("bites")
	return nil
}

// toolVictim is a process of the host's, with the secret wherever it can have
// one: in its arguments, its environment, its memory, its directory, and behind
// descriptor 9.
func toolVictim(args ...string) error {
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(f.Fd()), 9, 0); err != nil {
		return err
	}
	if _, err := unix.Mmap(9, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // Where Yama has a say (prctl(2)).
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return errWrong
}

// toolConnect connects as often, says so, and keeps the connections.
func toolConnect(args ...string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	kept := make([]net.Conn, n)
	for i := range kept {
		if kept[i], err = net.Dial("tcp", args[0]); err != nil {
			break // As many as there may be.
		}
	}
	fmt.Println("bites")
	time.Sleep(time.Hour)
	runtime.KeepAlive(kept)
	return err
}

// toolStream connects to a Unix socket: a path, or @NAME.
func toolStream(args ...string) error {
	c, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	_, err = c.Write([]byte("out\n"))
	return err
}

// toolDatagram sends to a Unix socket by one end of a pair.
func toolDatagram(args ...string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("out\n"), 0, &unix.SockaddrUnix{Name: args[0]})
}

// toolFamilies makes a socket of any family but the usual ones.
func toolFamilies(...string) error {
	for family := range 48 {
		switch family {
		case unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			if _, err := unix.Socket(family, kind, 0); err == nil {
				return nil
			}
		}
	}
	return errors.New("none")
}

// toolLoopback sets the flags of the loopback device to what they are.
func toolLoopback(...string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// toolBind listens on a port that is for root alone.
func toolBind(...string) (err error) {
	for port := 700; port < 1024; port++ {
		if _, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return nil
		}
	}
	return err
}

// toolSetns enters the network of each process that it sees.
func toolSetns(...string) error {
	files, err := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, file := range files {
		var f *os.File
		if f, err = os.Open(file); err == nil {
			if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err == nil {
				return nil
			}
		}
	}
	return err
}

// toolReadv reads the memory of a process.
func toolReadv(args ...string) error {
	maps, err := os.ReadFile("/proc/" + args[0] + "/maps")
	if err != nil {
		return err
	}
	start, _, _ := strings.Cut(string(maps), "-")
	at, err := strconv.ParseUint(start, 16, 64)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	buf := make([]byte, 4)
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf))
	_, err = unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
	return err
}

// toolGetfd takes a descriptor of a process, and prints what is behind it.
func toolGetfd(args ...string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(pidfd, 9, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), "taken"))
	return err
}

func toolSeize(args ...string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return unix.PtraceSeize(pid)
}

// toolPrlimit lowers a limit of a process.
func toolPrlimit(args ...string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}

// toolShm prints what is in shared memory of System V.
func toolShm(args ...string) error {
	key, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	id, err := unix.SysvShmGet(key, 0, 0)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}

// toolQueue opens a POSIX message queue.
func toolQueue(args ...string) error {
	name, err := unix.BytePtrFromString(args[0])
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY, 0, 0, 0, 0)
	return orNil(errno)
}

// toolHandle opens a file by its handle, on the file system that a directory is
// on, and prints it.
func toolHandle(args ...string) error {
	kind, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b, err := hex.DecodeString(args[1])
	if err != nil {
		return err
	}
	dir, err := os.Open(args[2])
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(int(dir.Fd()), unix.NewFileHandle(int32(kind), b), unix.O_RDONLY)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), "opened"))
	return err
}

// toolExchange swaps two files.
func toolExchange(args ...string) error {
	return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
}

func toolXattr(args ...string) error { return unix.Lsetxattr(args[0], "user.limpet", []byte("x"), 0) }

// orNil makes an error of what a system call returned.
func orNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
