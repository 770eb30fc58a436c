package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/sandbox"
)

// processProbes try to get at other processes, and at rights.
var processProbes = append([]probe{
	{name: "a process is seen", setup: victim, script: `[[ -e /proc/$VICTIM ]] && echo bites`},
	{name: "its arguments", setup: victim, script: `cat /proc/$PROCESSES/cmdline | tr '\0' ' '`},
	{name: "its environment", setup: victim, script: `cat /proc/$PROCESSES/environ | tr '\0' ' '`},
	{name: "its memory", setup: victim, script: `(exec 3<>/proc/$VICTIM/mem) && echo bites`},
	{name: "its memory, by the call", setup: victim, script: `$TOOL readv $VICTIM`},
	{name: "its descriptors", setup: victim, script: `$TOOL getfd $VICTIM`},
	{name: "it is traced", setup: victim, script: `$TOOL seize $VICTIM`},
	{name: "it is signalled", setup: victim, script: `kill -CONT $VICTIM && echo bites`},
	{name: "it is killed", setup: victim, try: func(w *world) bool {
		w.do(`kill -KILL $VICTIM; kill -KILL -- -$VICTIM`)
		return w.victimDied()
	}},
	{name: "it gets less of the processor", setup: victim, script: `renice -n 1 -p $VICTIM && echo bites`},
	{name: "it gets a limit", setup: victim, script: `$TOOL prlimit $VICTIM`},
	{name: "it is to be killed first", setup: victim, script: `echo 500 >/proc/$VICTIM/oom_score_adj && echo bites`},
	// What the file is already is what it is set to: the control does that to the host's.
	{name: "the mode of any program that runs", script: `for f in /proc/[0-9]*/exe; do chmod $(stat -Lc %a $f) $f && echo bites && break; done`},
	{name: "the owner of any program that runs", script: `for f in /proc/[0-9]*/exe; do
		[[ -u $f || -g $f ]] && continue # It would be so no longer.
		chown $(stat -Lc %u:%g $f) $f && echo bites && break
	done`},
	{name: "the times of any program that runs", script: `for f in /proc/[0-9]*/exe; do touch -r $f $f && echo bites && break; done`},
	{name: "the mode of what a process has mapped", script: `for f in /proc/[0-9]*/map_files/*; do
		[[ -f $f ]] && chmod $(stat -Lc %a $f) $f && echo bites && break
	done`},
	{name: "the memory of the first process", script: `(exec 3<>/proc/1/mem) && echo bites`},
	{name: "the memory of the first process, by its thread", script: `(exec 3<>/proc/1/task/1/mem) && echo bites`},
	{name: "the program of the first process", script: `[[ -s /proc/1/exe ]] && echo bites`},
	{name: "the descriptors of the first process", script: `[[ $(ls /proc/1/fd) ]] && echo bites`},
	{name: "the root of the first process", script: `[[ $(ls /proc/1/root/ /proc/1/cwd/) ]] && echo bites`},
	{name: "by the root and the directory of any process", setup: victim, script: `for p in /proc/[0-9]*; do cat $p/root$OUT/secret $p/cwd/secret $p/cwd/../outside/secret; done`},
	{name: "the program is seen", script: `for p in /proc/[0-9]*; do [[ $(tr '\0' '\n' <$p/cmdline) == "$TOOL" ]] && echo bites; done`},
	{name: "a variable of the program", own: true, script: `echo $PLAIN`},
	{name: "shared memory of System V", setup: sharedMemory, script: `$TOOL shm $KEY`},
	{name: "a message queue", setup: queue, script: `$TOOL mq $QUEUE`},
	{name: "a child is traced", script: `strace -o trace -f true && echo bites`},

	{name: "rights of its own", script: `grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo bites`},
	{name: "rights to be had", script: `grep -q '^CapBnd:.*[1-9a-f]' /proc/self/status && echo bites`},
	{name: "rights by a program", script: `grep -q '^NoNewPrivs:.*0' /proc/self/status && echo bites`},
	{name: "root by a program", setup: setuid, policy: rights, script: `[[ $($RIGHTS/id -u) == 0 ]] && echo bites`},
	{name: "a capability by a program", setup: setuid, policy: rights, script: `[[ $($RIGHTS/nice -n -5 nice) == -5 ]] && echo bites`},
	{name: "another user", script: `$TOOL call setuid`},
	{name: "a file is given to another user", script: `echo x >file; chown 1:1 file && echo bites`},
	{name: "a namespace of users", script: `unshare -U true && echo bites`},
	{name: "a sandbox in the sandbox", script: `bwrap --ro-bind / / true && echo bites`},
	{name: "a program for 32 bits", setup: i386, script: `./i386 && echo bites`},
	{name: "typing into a terminal", script: `$TOOL sti 0x5412`},
	{name: "typing into a terminal, by a number with high bits", script: `$TOOL sti 0x100005412`},
	{name: "pasting into a terminal", script: `$TOOL sti 0x541c 2>&1 | grep -e bites -e 'inappropriate ioctl' && echo bites`},
}, callProbes()...)

// callProbes make each system call that there is no other probe for.
func callProbes() []probe {
	var probes []probe
	for _, name := range strings.Fields(`
		clone clone3 unshare setns ptrace process_vm_writev kcmp keyctl add_key request_key bpf perf_event_open userfaultfd
		fanotify_init name_to_handle_at open_by_handle_at move_pages adjtimex clock_adjtime clock_settime settimeofday
		fsconfig fsopen fsmount fspick move_mount mount_setattr open_tree mount umount2 pivot_root chroot
		init_module finit_module delete_module kexec_load kexec_file_load reboot acct quotactl swapon swapoff syslog vhangup sethostname
		modify_ldt ioperm iopl uselib x32`) {
		probes = append(probes, probe{name: "the call " + name, script: "$TOOL call " + name})
	}
	return probes
}

// sharedMemory has the secret in a segment.
func sharedMemory(w *world) {
	key := 0x6c696d70 + w.who.owner() // The roles run beside each other, two of them as root.
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	require.NoError(w, err)
	b, err := unix.SysvShmAttach(id, 0, 0)
	require.NoError(w, err)
	copy(b, w.secret)
	w.undo = append(w.undo, func() {
		require.NoError(w, unix.SysvShmDetach(b))
		_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		require.NoError(w, err)
	})
	w.set("KEY", key)
}

// queue is a message queue of the host's.
func queue(w *world) {
	name, err := unix.BytePtrFromString(w.mark())
	require.NoError(w, err)
	w.set("QUEUE", w.mark())
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, path(name), unix.O_CREAT|unix.O_RDWR, 0o644, 0, 0, 0)
	if errno == unix.ENOSYS {
		return // The control does not bite then.
	}
	require.NoError(w, orNil(errno))
	w.undo = append(w.undo, func() {
		_ = unix.Close(int(fd)) // Nobody reads it.
		_, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, path(name), 0, 0)
		require.NoError(w, orNil(errno))
	})
}

// setuid makes programs that give rights to who runs them: one is root's, and
// tells who it runs as, the other may take more of the processor. Only the user
// of this world can get at them.
func setuid(w *world) {
	dir := filepath.Join(w.base, "rights")
	w.dir(dir)
	w.set("RIGHTS", dir)
	for _, name := range []string{"id", "nice"} {
		program, err := os.ReadFile("/usr/bin/" + name)
		require.NoError(w, err)
		require.NoError(w, os.WriteFile(filepath.Join(dir, name), program, 0o755))
	}
	require.NoError(w, os.Chmod(filepath.Join(dir, "id"), 0o755|os.ModeSetuid))
	// Struct vfs_cap_data of linux/capability.h: revision 2, effective, and CAP_SYS_NICE.
	capability := []byte{1, 0, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	_ = unix.Setxattr(filepath.Join(dir, "nice"), "security.capability", capability, 0) // Only root may. The control sees that.
}

func rights(w *world, p *sandbox.Policy) {
	p.FS.ExtraRO = append(p.FS.ExtraRO, sandbox.Bind{Src: filepath.Join(w.base, "rights")})
}

// i386 is a program for a system that the kernel still has besides its own. It
// has other numbers for its calls: mov $1, %eax; xor %ebx, %ebx; int $0x80.
func i386(w *world) {
	if runtime.GOARCH != "amd64" {
		w.put(filepath.Join(w.Work, "i386"), "")
		return
	}
	const size = 52 + 32 // the headers of elf(5), for 32 bits
	elf := []byte{
		0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 3, 0, 1, 0, 0, 0, size, 0x80, 0x04, 0x08, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x04, 0x08, 0, 0x80, 0x04, 0x08, size + 9, 0, 0, 0, size + 9, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
		0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80,
	}
	file := filepath.Join(w.Work, "i386")
	w.put(file, string(elf))
	require.NoError(w, os.Chmod(file, 0o700))
}
