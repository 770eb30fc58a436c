package sandbox

import (
	"encoding/binary"
	"fmt"
	"runtime"
)

// archInfo is what a filter must know of an architecture. It does not depend
// on the machine that limpet was built for, so every filter is tested on each.
type archInfo struct {
	name  string
	audit uint32 // AUDIT_ARCH_*, linux/audit.h
	x32   bool   // calls of the x32 ABI come under the same AUDIT_ARCH
	of    func(call) int
	small *archInfo // of its 32-bit programs; nil if these cannot be allowed
}

var (
	archAMD64 = archInfo{"amd64", 0xc000003e, true, func(c call) int { return c.amd64 }, &arch386}
	archARM64 = archInfo{"arm64", 0xc00000b7, false, func(c call) int { return c.arm64 }, nil}
	arch386   = archInfo{"386", 0x40000003, false, func(c call) int { return c.i386 }, nil}
)

// call is a system call and its numbers: asm/unistd_64.h for amd64,
// asm-generic/unistd.h for arm64, asm/unistd_32.h for i386.
type call struct {
	name               string
	amd64, arm64, i386 int
}

// none is the number of a call that an architecture does not have.
const none = -1

// ptraceCalls reach into other processes. Proc.AllowPtrace lifts them.
var ptraceCalls = []call{
	{"ptrace", 101, 117, 26},
	{"process_vm_readv", 310, 270, 347}, {"process_vm_writev", 311, 271, 348},
	{"pidfd_getfd", 438, 438, 438},
	{"kcmp", 312, 272, 349},
}

// epermCalls are for administrators, or are much kernel that untrusted programs
// need not reach. EPERM is what an ordinary user gets from most of them.
var epermCalls = []call{
	{"bpf", 321, 280, 357},
	{"perf_event_open", 298, 241, 336},
	{"userfaultfd", 323, 282, 374},
	{"keyctl", 250, 219, 288}, {"add_key", 248, 217, 286}, {"request_key", 249, 218, 287},
	{"unshare", 272, 97, 310},
	{"setns", 308, 268, 346},
	{"mount", 165, 40, 21},
	{"umount2", 166, 39, 52},
	{"pivot_root", 155, 41, 217},
	{"chroot", 161, 51, 61},
	{"init_module", 175, 105, 128}, {"finit_module", 313, 273, 350}, {"delete_module", 176, 106, 129},
	{"kexec_load", 246, 104, 283}, {"kexec_file_load", 320, 294, none},
	{"reboot", 169, 142, 88},
	{"acct", 163, 89, 51},
	{"quotactl", 179, 60, 131}, {"quotactl_fd", 443, 443, 443},
	{"swapon", 167, 224, 87}, {"swapoff", 168, 225, 115},
	{"syslog", 103, 116, 103},
	{"open_by_handle_at", 304, 265, 342}, {"name_to_handle_at", 303, 264, 341},
	{"move_pages", 279, 239, 317},
	{"ioperm", 173, none, 101}, {"iopl", 172, none, 110},
	{"modify_ldt", 154, none, 123},
	{"settimeofday", 164, 170, 79}, {"clock_settime", 227, 112, 264},
	{"adjtimex", 159, 171, 124}, {"clock_adjtime", 305, 266, 343},
	{"fanotify_init", 300, 262, 338},
	{"uselib", 134, none, 86},
	{"vhangup", 153, 58, 111},

	// What i386 has besides.
	{"umount", none, none, 22}, {"stime", none, none, 25},
	{"clock_settime64", none, none, 404}, {"clock_adjtime64", none, none, 405},
	{"vm86", none, none, 166}, {"vm86old", none, none, 113},
}

// enosysCalls seem to be missing, so that programs use what was there before
// them. io_uring(7) makes other calls past the filter; clone3(2) has its flags
// in memory, which a filter cannot read, and the C library then uses clone(2).
var enosysCalls = []call{
	{"io_uring_setup", 425, 425, 425}, {"io_uring_enter", 426, 426, 426}, {"io_uring_register", 427, 427, 427},
	{"clone3", 435, 435, 435},
	{"open_tree", 428, 428, 428}, {"open_tree_attr", 467, 467, 467},
	{"move_mount", 429, 429, 429},
	{"fsopen", 430, 430, 430}, {"fsconfig", 431, 431, 431}, {"fsmount", 432, 432, 432}, {"fspick", 433, 433, 433},
	{"mount_setattr", 442, 442, 442},
}

// These calls are judged by their arguments.
var (
	callClone      = call{"clone", 56, 220, 120}
	callIoctl      = call{"ioctl", 16, 29, 54}
	callSocket     = call{"socket", 41, 198, 359}
	callSocketpair = call{"socketpair", 53, 199, 360}
	callSocketcall = call{"socketcall", none, none, 102}
)

// Arguments that are compared, with the values that they have on both
// architectures.
const (
	cloneNew = 0x7e020080 // CLONE_NEW*, all of them: linux/sched.h

	tiocSTI   = 0x5412 // types on the terminal: ioctl_tty(2)
	tiocLINUX = 0x541c // pastes on a virtual console: ioctl_console(2)

	afUnix    = 1 // sys/socket.h
	afINET    = 2
	afINET6   = 10
	afNetlink = 16

	sockStream    = 1 // linux/net.h
	sockSeqpacket = 5
	sockTypeMask  = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK

	sysSocket     = 1 // socketcall(2): linux/net.h
	sysSocketpair = 8

	x32Bit = 0x40000000 // __X32_SYSCALL_BIT, asm/unistd.h
)

// seccompProgram is the filter of p for the architecture that runs.
func seccompProgram(p Policy) ([]byte, error) {
	if nativeArch == nil {
		return nil, &Error{
			Code:   ErrUnsupported,
			Detail: fmt.Sprintf("there is no seccomp filter for %s/%s", runtime.GOOS, runtime.GOARCH),
			Hint:   "sandboxed sessions need Linux on amd64 or arm64",
		}
	}
	return seccompFilter(p, *nativeArch)
}

// seccompFilter is the seccomp(2) filter of p, as bwrap --seccomp reads it. It
// allows what it does not name. Every comparison is with the low 32 bits of an
// argument: the kernel takes these as int, so the high ones would only serve to
// get past a filter that compares all 64.
//
// The chain of comparisons by number is walked from the start. That costs
// little: Linux keeps a bitmap of the calls that are always allowed (since
// 5.11), and does not run the filter for these.
func seccompFilter(p Policy, arch archInfo) ([]byte, error) {
	small := arch.small
	if !p.Proc.Allow32Bit {
		small = nil
	} else if small == nil {
		return nil, &Error{
			Code: ErrSeccomp, Detail: fmt.Sprintf("policy %q allows 32-bit programs, for which there is no seccomp filter on %s", p.Name, arch.name),
			Hint: "leave Proc.Allow32Bit false",
		}
	}
	a := assembler{jumps: map[int]string{}, marks: map[string]int{}}
	a.load(offArch)
	a.jump(bpfJEQ, arch.audit, arch.name)
	if small != nil {
		a.jump(bpfJEQ, small.audit, small.name)
	}
	a.ret(retKill)
	a.rules(p, arch)
	if small != nil {
		a.rules(p, *small)
	}
	return a.assemble()
}

// rules are those of one architecture, under a mark that is its name.
func (a *assembler) rules(p Policy, arch archInfo) {
	own := func(name string) string { return arch.name + " " + name } // A mark.
	a.mark(arch.name)
	a.load(offNr)
	if arch.x32 {
		a.jump(bpfJGE, x32Bit, own("enosys"))
	}

	deny := func(calls []call, to string) {
		for _, c := range calls {
			if nr := arch.of(c); nr != none {
				a.jump(bpfJEQ, uint32(nr), own(to))
			}
		}
	}
	if !p.Proc.AllowPtrace {
		deny(ptraceCalls, "eperm")
	}
	deny(epermCalls, "eperm")
	deny(enosysCalls, "enosys")
	for _, c := range []call{callClone, callIoctl, callSocket, callSocketpair, callSocketcall} {
		deny([]call{c}, c.name)
	}
	a.ret(retAllow)
	a.mark(own("eperm"))
	a.ret(retErrno | linuxEPERM)
	a.mark(own("enosys"))
	a.ret(retErrno | linuxENOSYS)

	// The flags are the first argument on all of them: clone(2), "C
	// library/kernel differences".
	a.mark(own(callClone.name))
	a.load(offArg(0))
	a.choose(bpfJSET, retErrno|linuxEPERM, retAllow, cloneNew)

	a.mark(own(callIoctl.name))
	a.load(offArg(1))
	a.choose(bpfJEQ, retErrno|linuxEPERM, retAllow, tiocSTI, tiocLINUX)

	if arch.of(callSocketcall) != none {
		// It has its arguments in memory, which a filter cannot read: whoever makes
		// sockets by it, as the C library of Debian's i386 does, makes none.
		a.mark(own(callSocketcall.name))
		a.load(offArg(0))
		a.choose(bpfJEQ, retErrno|linuxEAFNOSUPPORT, retAllow, sysSocket, sysSocketpair)
	}

	families := []uint32{afINET, afINET6, afNetlink}
	if p.Net.Unix == UnixAllowed {
		families = append(families, afUnix)
	}
	a.mark(own(callSocket.name))
	a.load(offArg(0))
	a.choose(bpfJEQ, retAllow, retErrno|linuxEAFNOSUPPORT, families...)

	// Other families have no pairs but would load their modules. One end of a
	// pair of datagram sockets can send to any path and abstract name, as
	// socket(AF_UNIX) can; a stream or seqpacket is connected for good.
	a.mark(own(callSocketpair.name))
	a.load(offArg(0))
	if p.Net.Unix == UnixAllowed {
		a.choose(bpfJEQ, retAllow, retErrno|linuxEAFNOSUPPORT, afUnix)
		return
	}
	a.jump(bpfJEQ, afUnix, own("type"))
	a.ret(retErrno | linuxEAFNOSUPPORT)
	a.mark(own("type"))
	a.load(offArg(1))
	a.and(sockTypeMask)
	a.choose(bpfJEQ, retAllow, retErrno|linuxESOCKTNOSUPPORT, sockStream, sockSeqpacket)
}

// Codes of classic BPF that seccomp takes: linux/bpf_common.h.
const (
	bpfLoad = 0x20 // LD|W|ABS
	bpfAND  = 0x54 // ALU|AND|K
	bpfJEQ  = 0x15 // JMP|JEQ|K
	bpfJGE  = 0x35 // JMP|JGE|K
	bpfJSET = 0x45 // JMP|JSET|K
	bpfRet  = 0x06 // RET|K

	bpfMaxInsns = 4096 // BPF_MAXINSNS
)

// Offsets in struct seccomp_data, and what a filter returns: linux/seccomp.h.
// The errors are Linux's, wherever this is built: asm-generic/errno.h.
const (
	offNr   = 0
	offArch = 4

	retKill  = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	retErrno = 0x00050000
	retAllow = 0x7fff0000

	linuxEPERM           = 1
	linuxENOSYS          = 38
	linuxESOCKTNOSUPPORT = 94
	linuxEAFNOSUPPORT    = 97
)

// offArg is where the low half of an argument is: first, on little-endian
// machines, which both architectures are.
func offArg(i uint32) uint32 { return 16 + 8*i }

// sockFilter is struct sock_filter, linux/filter.h.
type sockFilter struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// assembler collects a program. Jumps go forward, to a mark that is set later.
type assembler struct {
	code  []sockFilter
	jumps map[int]string // where from, and to which mark
	marks map[string]int
}

func (a *assembler) emit(code uint16, k uint32) {
	a.code = append(a.code, sockFilter{Code: code, K: k})
}
func (a *assembler) load(offset uint32) { a.emit(bpfLoad, offset) }
func (a *assembler) and(k uint32)       { a.emit(bpfAND, k) }
func (a *assembler) ret(action uint32)  { a.emit(bpfRet, action) }
func (a *assembler) mark(name string)   { a.marks[name] = len(a.code) }

// jump goes to a mark if the test is true, and to the next instruction if not.
func (a *assembler) jump(test uint16, k uint32, to string) {
	a.jumps[len(a.code)] = to
	a.emit(test, k)
}

// choose returns yes if the test is true for one of ks, and no if for none.
func (a *assembler) choose(test uint16, yes, no uint32, ks ...uint32) {
	end := fmt.Sprintf("yes at %d", len(a.code))
	for _, k := range ks {
		a.jump(test, k, end)
	}
	a.ret(no)
	a.mark(end)
	a.ret(yes)
}

// assemble resolves the jumps, which have 8 bits, and writes the program. It
// fails only if the rules above outgrew it.
func (a *assembler) assemble() ([]byte, error) {
	for from, mark := range a.jumps {
		to, ok := a.marks[mark]
		skip := to - from - 1
		if !ok || skip < 0 || skip > 0xff {
			return nil, &Error{Code: ErrSeccomp, Detail: fmt.Sprintf("the seccomp filter cannot jump from %d to %q", from, mark)}
		}
		a.code[from].Jt = uint8(skip)
	}
	if len(a.code) > bpfMaxInsns {
		return nil, &Error{Code: ErrSeccomp, Detail: fmt.Sprintf("the seccomp filter has %d instructions of at most %d", len(a.code), bpfMaxInsns)}
	}
	return binary.Append(nil, binary.LittleEndian, a.code)
}
