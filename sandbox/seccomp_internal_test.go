package sandbox

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateSeccomp = flag.Bool("update-seccomp", false, "write testdata/seccomp-*.golden")

var seccompArches = []archInfo{archAMD64, archARM64, arch386}

// nativeOf is the architecture that runs programs of the other.
func nativeOf(arch archInfo) archInfo {
	if arch.name == arch386.name {
		return archAMD64
	}
	return arch
}

func seccompCode(t *testing.T, p Policy, arch archInfo) []sockFilter {
	t.Helper()
	native := nativeOf(arch)
	p.Proc.Allow32Bit = native.name != arch.name
	program, err := seccompFilter(p, native)
	require.NoError(t, err)
	code := make([]sockFilter, len(program)/8)
	n, err := binary.Decode(program, binary.LittleEndian, code)
	require.NoError(t, err)
	require.Equal(t, len(program), n)
	return code
}

func allCalls() []call {
	return slices.Concat(ptraceCalls, epermCalls, enosysCalls, []call{callClone, callIoctl, callSocket, callSocketpair, callSocketcall})
}

// TestSeccompGolden shows the whole program, an instruction a line. After a
// change that is meant: go test ./sandbox -run SeccompGolden -update-seccomp.
func TestSeccompGolden(t *testing.T) {
	for _, arch := range seccompArches {
		if nativeOf(arch).name != arch.name {
			continue // It would show two architectures, with the numbers of one.
		}
		var text strings.Builder
		names := map[string]string{}
		for _, c := range allCalls() {
			names[fmt.Sprintf("if A == %#x", arch.of(c))] = "  ; " + c.name
		}
		for i, in := range seccompCode(t, WorkspaceWrite("/w"), arch) {
			says := map[uint16]string{
				bpfLoad: fmt.Sprintf("A = data[%d]", in.K), bpfAND: fmt.Sprintf("A &= %#x", in.K), bpfRet: "return " + seccompAction(in.K),
				bpfJEQ: fmt.Sprintf("if A == %#x", in.K), bpfJGE: fmt.Sprintf("if A >= %#x", in.K), bpfJSET: fmt.Sprintf("if A & %#x", in.K),
			}[in.Code]
			if in.Code == bpfLoad && in.K != offNr && in.K != offArch {
				clear(names) // what follows compares arguments
			}
			if strings.HasPrefix(says, "if") {
				says = fmt.Sprintf("%s goto %03d%s", says, i+1+int(in.Jt), names[says])
			}
			fmt.Fprintf(&text, "%03d  %02x %02x %02x %08x  %s\n", i, in.Code, in.Jt, in.Jf, in.K, says)
		}
		golden := filepath.Join("testdata", "seccomp-"+arch.name+".golden")
		if *updateSeccomp {
			require.NoError(t, os.WriteFile(golden, []byte(text.String()), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), text.String(), arch.name)
	}
}

// TestSeccompNumbers compares the table with the numbers that x/sys/unix made
// from the kernel's headers. A call must not be left out where there is one.
func TestSeccompNumbers(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	require.NoError(t, err)
	for _, arch := range seccompArches {
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+arch.name+".go"))
		require.NoError(t, err)
		for _, c := range allCalls() {
			nr := none
			if m := regexp.MustCompile(`\bSYS_` + strings.ToUpper(c.name) + `\s+= (\d+)`).FindSubmatch(source); m != nil {
				nr, err = strconv.Atoi(string(m[1]))
				require.NoError(t, err)
			}
			assert.Equal(t, nr, arch.of(c), "%s on %s", c.name, arch.name)
		}
	}
}

// seccompAction names what a filter returns.
func seccompAction(k uint32) string {
	return cmp.Or(map[uint32]string{
		retAllow: "ALLOW", retKill: "KILL_PROCESS",
		retErrno | linuxEPERM: "EPERM", retErrno | linuxENOSYS: "ENOSYS",
		retErrno | linuxEAFNOSUPPORT: "EAFNOSUPPORT", retErrno | linuxESOCKTNOSUPPORT: "ESOCKTNOSUPPORT",
	}[k], fmt.Sprintf("%#x", k))
}

// judge runs the program on a struct seccomp_data, as the kernel would.
func judge(t *testing.T, code []sockFilter, audit uint32, nr int, args ...uint64) string {
	t.Helper()
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], uint32(nr))
	binary.LittleEndian.PutUint32(data[4:], audit)
	for i, arg := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], arg)
	}
	for pc, a := 0, uint32(0); ; pc++ {
		if pc >= len(code) || code[pc].Jf != 0 {
			require.FailNow(t, "the program has no end, or jumps if false", "at %d", pc)
		}
		in := code[pc]
		test := false
		switch in.Code {
		case bpfLoad:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case bpfAND:
			a &= in.K
		case bpfRet:
			return seccompAction(in.K)
		case bpfJEQ:
			test = a == in.K
		case bpfJGE:
			test = a >= in.K
		case bpfJSET:
			test = a&in.K != 0
		default:
			require.FailNow(t, "unknown instruction", "%+v", in)
		}
		if test {
			pc += int(in.Jt)
		}
	}
}

// TestSeccompNames holds every number against the lists: what they name is
// refused, and nothing else is.
func TestSeccompNames(t *testing.T) {
	traced := WorkspaceWrite("/w")
	traced.Proc.AllowPtrace = true
	for _, arch := range seccompArches {
		want := map[int]string{none: "none"}
		add := func(action string, calls ...call) {
			for _, c := range calls {
				want[arch.of(c)] = action
			}
		}
		check := func(p Policy) {
			code := seccompCode(t, p, arch)
			for nr := range 512 {
				assert.Equal(t, cmp.Or(want[nr], "ALLOW"), judge(t, code, arch.audit, nr), "%s: %d", arch.name, nr)
			}
		}
		add("EPERM", epermCalls...)
		add("ENOSYS", enosysCalls...)
		add("EAFNOSUPPORT", callSocket, callSocketpair) // of no family
		check(traced)
		add("EPERM", ptraceCalls...)
		check(WorkspaceWrite("/w"))
	}
}

func TestSeccompArguments(t *testing.T) {
	const high = 1 << 32 // the kernel does not look at these bits
	open := WorkspaceWrite("/w")
	open.Net.Unix = UnixAllowed
	for _, arch := range seccompArches {
		code, unix := seccompCode(t, WorkspaceWrite("/w"), arch), seccompCode(t, open, arch)
		for _, row := range []struct {
			call           call
			want, wantUnix string // wantUnix is with UnixAllowed
			args           [][]uint64
		}{
			// fork(3), pthread_create(3), and a stack that looks like a flag.
			{callClone, "ALLOW", "ALLOW", [][]uint64{{0x11}, {0x3d0f00}, {0x11, 0x10000000}}},
			{callClone, "EPERM", "EPERM", [][]uint64{{0x10000011}, {high | 0x10000011}}},
			// TCGETS; TIOCSTI, TIOCLINUX.
			{callIoctl, "ALLOW", "ALLOW", [][]uint64{{0, 0x5401}, {0x5412, 0x5401, 0x5412}}},
			{callIoctl, "EPERM", "EPERM", [][]uint64{{0, 0x5412}, {0, 0x541c}, {0, high | 0x5412}, {0, 0xffffffff0000541c}}},
			// INET, INET6, NETLINK; PACKET, VSOCK; UNIX.
			{callSocket, "ALLOW", "ALLOW", [][]uint64{{2, 1}, {10, 2}, {16, 3}}},
			{callSocket, "EAFNOSUPPORT", "EAFNOSUPPORT", [][]uint64{{17, 3}, {40, 1}, {high | 17, 3}}},
			{callSocket, "EAFNOSUPPORT", "ALLOW", [][]uint64{{1, 1}, {high | 1, 1}}},
			// SOCKET and SOCKETPAIR; CONNECT.
			{callSocketcall, "EAFNOSUPPORT", "EAFNOSUPPORT", [][]uint64{{1}, {8}, {high | 1}}},
			{callSocketcall, "ALLOW", "ALLOW", [][]uint64{{3}}},
			// STREAM, SEQPACKET with both flags; DGRAM, and RAW, which is the same; TIPC.
			{callSocketpair, "ALLOW", "ALLOW", [][]uint64{{1, 1}, {1, 0x80805}}},
			{callSocketpair, "ESOCKTNOSUPPORT", "ALLOW", [][]uint64{{1, 2}, {1, 0x80803}, {high | 1, high | 2}}},
			{callSocketpair, "EAFNOSUPPORT", "EAFNOSUPPORT", [][]uint64{{30, 1}, {2, 1}}},
		} {
			if arch.of(row.call) == none {
				continue
			}
			for _, args := range row.args {
				nr, what := arch.of(row.call), fmt.Sprintf("%s %s %#x", arch.name, row.call.name, args)
				assert.Equal(t, row.want, judge(t, code, arch.audit, nr, args...), what)
				assert.Equal(t, row.wantUnix, judge(t, unix, arch.audit, nr, args...), what)
			}
		}
		for _, flag := range []uint64{0x80, 1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30} { // CLONE_NEW*
			assert.Equal(t, "EPERM", judge(t, code, arch.audit, arch.of(callClone), 0x11|flag), "%s: %#x", arch.name, flag)
		}
		for _, audit := range []uint32{0x40000003, 0x40000028, archAMD64.audit, archARM64.audit} { // i386, arm
			if audit != arch.audit && audit != nativeOf(arch).audit {
				assert.Equal(t, "KILL_PROCESS", judge(t, unix, audit, 1), "%s: %#x", arch.name, audit)
			}
		}
		for _, nr := range []int{x32Bit, x32Bit | 1, x32Bit | 41, 0x7fffffff, -1} {
			want := map[bool]string{true: "ENOSYS", false: "ALLOW"}[arch.x32] // none of them exists on arm64
			assert.Equal(t, want, judge(t, unix, arch.audit, nr, 1), "%s: %#x", arch.name, nr)
		}
	}
}

func TestSeccompErrors(t *testing.T) {
	p := WorkspaceWrite("/w")
	p.Proc.Allow32Bit = true
	_, err := seccompFilter(p, archARM64)
	require.ErrorIs(t, err, ErrSeccomp)
	assert.ErrorContains(t, err, `policy "workspace-write" allows 32-bit programs, for which there is no seccomp filter on arm64`)
	if _, err := seccompProgram(WorkspaceWrite("/w")); nativeArch == nil {
		require.ErrorIs(t, err, ErrUnsupported)
	} else {
		require.NoError(t, err)
	}
	far := assembler{jumps: map[int]string{0: "far"}, marks: map[string]int{"far": 257}}
	_, err = far.assemble()
	require.ErrorIs(t, err, ErrSeccomp, "a jump of 256 does not fit")
}

// seccompProbes tries each argument in a process of its own.
const seccompProbes = `
import ctypes, errno, fcntl, mmap, os, pty, signal, socket, sys, threading
def call(*args):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(*map(ctypes.c_long, args)) == -1: raise OSError(ctypes.get_errno(), "")
def run(*argv):
    os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
    os.execvp(argv[0], argv)
def int80(nr=20, a=0, b=0): # push %rbx; mov nr, %eax; mov a, %ebx; mov b, %ecx; xor %edx, %edx; int $0x80; pop %rbx; ret
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(b"\x53" + b"".join(op + v.to_bytes(4, "little") for op, v in ((b"\xb8", nr), (b"\xbb", a), (b"\xb9", b))) + b"\x31\xd2\xcd\x80\x5b\xc3")
    rc = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    if rc < 0: raise OSError(-rc, "")
for probe in sys.argv[1:]:
    if (pid := os.fork()) == 0:
        try: exec(probe)
        except OSError as e: os._exit(100 + e.errno)
        os._exit(0)
    rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print("ok" if rc == 0 else signal.Signals(-rc).name if rc < 0 else errno.errorcode[rc - 100] if rc > 100 else "exit %d" % rc)
`

// TestSeccompRuns has real programs under bwrap meet the filter. Each probe
// also runs without it, with all capabilities in a user namespace: there it
// succeeds, or fails for another reason.
func TestSeccompRuns(t *testing.T) {
	bwrap := bareBwrap(t)
	outside := filepath.Join(t.TempDir(), "s") // a socket of the host
	listener, err := net.ListenPacket("unixgram", outside)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	// %NAME% is the number of a call.
	rows := [][2]string{ // what it does, and the answer with the filter
		{`call(%ptrace%, 0)`, "EPERM"}, // PTRACE_TRACEME
		{`run("strace", "-o", "/dev/null", "true")`, "exit 1"},
		{`call(%process_vm_readv%, os.getpid(), 0, 0, 0, 0, 0)`, "EPERM"},
		{`call(%unshare%, 0x10000000)`, "EPERM"},
		{`run("unshare", "-U", "true")`, "exit 1"},
		{`call(%clone%, 0x10000200)`, "EPERM"}, // with CLONE_FS: EINVAL
		{`call(%clone3%, 0, 0)`, "ENOSYS"},
		{`call(%setns%, -1, 0)`, "EPERM"},
		{`call(%mount%, 0, 0, 0, 0, 0)`, "EPERM"},
		{`run("mount", "-t", "tmpfs", "none", "/mnt")`, "exit 32"}, // mount(8): mount failure
		{`call(%chroot%, 0)`, "EPERM"},
		{`call(%keyctl%, -1)`, "EPERM"},
		{`call(%userfaultfd%, -1)`, "EPERM"},
		{`call(%perf_event_open%, 0, 0, 0, 0, 0)`, "EPERM"},
		{`call(%io_uring_setup%, 0, 0)`, "ENOSYS"},
		{`call(%fsopen%, 0, -1)`, "ENOSYS"},
		{`call(%mount_setattr%, -1, 0, -1, 0, 0)`, "ENOSYS"},
		{`call(%ioctl%, -1, 0x5412, 0)`, "EPERM"},
		{`call(%ioctl%, -1, 0x5412 | 1 << 32, 0)`, "EPERM"},
		{`call(%ioctl%, -1, 0x541c, 0)`, "EPERM"},
		{`socket.socket(socket.AF_UNIX)`, "EAFNOSUPPORT"},
		{`call(%socket%, 1 << 32 | 1, 1, 0)`, "EAFNOSUPPORT"},
		{`socket.socket(socket.AF_PACKET, socket.SOCK_RAW)`, "EAFNOSUPPORT"},
		{fmt.Sprintf(`socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"out", %q)`, outside), "ESOCKTNOSUPPORT"},
	}
	if nativeArch == &archAMD64 {
		rows = append(rows, [2]string{`int80()`, "SIGSYS"}, [2]string{`call(%modify_ldt%, 0, 0, 0)`, "EPERM"})
	}
	refused := len(rows)
	for _, still := range []string{
		`a, b = socket.socketpair(); a.send(b"x"); b.recv(1)`,
		`socket.socket(socket.AF_INET)`,
		`socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)`,
		`t = threading.Thread(target=print, args=("",), kwargs={"end": ""}); t.start(); t.join()`,
		`pty.openpty(); fcntl.ioctl(pty.openpty()[1], 0x5413, b"12345678")`, // TIOCGWINSZ
		`run("bash", "-c", "set -o pipefail; true | cat <(true) & wait $!")`,
	} {
		rows = append(rows, [2]string{still, "ok"})
	}
	usual, wide := WorkspaceWrite("/w"), WorkspaceWrite("/w")
	wide.Net.Unix, wide.Proc.AllowPtrace = UnixAllowed, true
	without, with, lifted := answers(t, bwrap, rows, nil), answers(t, bwrap, rows, &usual), answers(t, bwrap, rows, &wide)
	for i, row := range rows {
		if without[i] == "ENOENT" && strings.HasPrefix(row[0], "run") {
			t.Logf("not installed: %s", row[0]) // another row makes the same call
			continue
		}
		if row[0] == "int80()" && without[i] == "SIGSEGV" {
			t.Log("this kernel has no calls of 32-bit programs (CONFIG_IA32_EMULATION)")
			continue
		}
		t.Logf("without %s, with %s, lifted %s: %s", without[i], with[i], lifted[i], row[0])
		assert.Equal(t, row[1], with[i], row[0])
		assert.Equal(t, i < refused, row[1] != without[i], "without the filter: %s", row[0])
		want := with[i]
		if regexp.MustCompile(`trace|process_vm|AF_UNIX|%socket%`).MatchString(row[0]) {
			want = without[i]
		}
		assert.Equal(t, want, lifted[i], "with what may be lifted: %s", row[0])
	}
}

// bareBwrap is a bwrap in which a program may do what it likes, in a user namespace.
func bareBwrap(t *testing.T) []string {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil || nativeArch == nil {
		t.Skipf("no sandbox is to be had here: %v", err)
	}
	bare := []string{bwrap, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-net", "--cap-add", "ALL", "--die-with-parent",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/mnt"}
	if said, err := exec.Command(bare[0], append(bare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no sandbox is to be had here: bwrap refuses: %v: %q", err, said)
	}
	return bare
}

// answers are what came of the probes under the filter of the policy; nil is none.
func answers(t *testing.T, bwrap []string, rows [][2]string, p *Policy) []string {
	t.Helper()
	cmd := exec.Command(bwrap[0], bwrap[1:]...)
	if p != nil {
		program, err := seccompProgram(*p)
		require.NoError(t, err)
		name := filepath.Join(t.TempDir(), "filter")
		require.NoError(t, os.WriteFile(name, program, 0o600))
		file, err := os.Open(name)
		require.NoError(t, err)
		defer func() { _ = file.Close() }() // read only
		cmd.ExtraFiles, cmd.Args = []*os.File{file}, append(cmd.Args, "--seccomp", "3")
	}
	cmd.Args = append(cmd.Args, "python3", "-c", seccompProbes)
	for _, row := range rows {
		for _, c := range allCalls() {
			row[0] = strings.ReplaceAll(row[0], "%"+c.name+"%", strconv.Itoa(nativeArch.of(c)))
		}
		cmd.Args = append(cmd.Args, row[0])
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(rows), "%s", out)
	return lines
}
