package sandbox_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// fileProbes try to see and to change what is not in the workspace.
var fileProbes = []probe{
	{name: "write beside the workspace", script: `echo x >$OUT/new`},
	{name: "read beside the workspace", script: `cat $OUT/secret`},
	{name: "delete beside the workspace", script: `rm -f $OUT/secret`},
	{name: "list what is beside the workspace", script: `[[ $(ls -A $OUT) ]] && echo bites`},
	{name: "up by two dots", script: `cat ../../outside/secret; cd ..; cd ..; cat outside/secret`},
	{name: "a symlink that leads out", script: `ln -s $OUT out; cat out/secret; echo x >out/new`},
	{name: "a hard link to a file outside", script: `ln $OUT/secret hard && cat hard`},
	{name: "the home directory", script: `cat ~/.ssh/id_rsa ${W%/*}/.ssh/id_rsa`},
	{name: "the home directory is written", script: `echo x >>~/.ssh/authorized_keys`},
	{name: "by the root of a process", setup: victim, script: `for p in /proc/$PROCESSES; do cat $p/root$OUT/secret; done`},
	{name: "by the directory of a process", setup: victim, script: `cat /proc/$PROCESSES/cwd/secret`},
	{name: "by a descriptor of a process", setup: victim, script: `for f in /proc/$PROCESSES/fd/9; do [[ -f $f ]] && cat $f; done`},
	{name: "by what a process has mapped", setup: victim, script: `grep -aho 'secret-[0-9A-Z]*' /proc/$PROCESSES/map_files/*`},
	{name: "by the handle of a file", setup: handle, script: `$TOOL handle $HANDLE $W`},

	{name: "temporary files", setup: shared("/tmp"), script: `cat $THERE`},
	{name: "temporary files that stay", setup: shared("/var/tmp"), script: `cat $THERE`},
	{name: "shared memory", setup: shared("/dev/shm"), script: `cat $THERE`},
	{name: "what runs on the host", script: `[[ $(ls -A /run) ]] && echo bites`},
	{name: "/sys", script: `[[ $(ls -A /sys) ]] && echo bites`},
	{name: "a device of the host", script: `for d in /dev/*; do
		[[ -h $d ]] && continue
		case $d in */null | */zero | */full | */random | */urandom | */tty | */console | */ptmx) continue ;; esac
		[[ -c $d || -b $d ]] && echo bites
	done`},
	{name: "a device is made", script: `mknod full c 1 7 && { echo x >full; } 2>&1 | grep -q 'No space' && echo bites`},
	{name: "the mode of a device", script: `chmod $(stat -c %a /dev/full) /dev/full && echo bites`}, // What it is already.
	{name: "a terminal of the host", setup: terminal, try: func(w *world) bool {
		w.do(`echo x >$TTY`)
		return w.typed()
	}},

	{name: "/etc is written", script: `: >/etc/limpet.$$ && rm /etc/limpet.$$ && echo bites`},
	{name: "/usr is written", script: `: >/usr/lib/limpet.$$ && rm /usr/lib/limpet.$$ && echo bites`},
	{name: "a file of the system is opened for writing", script: `(exec 3>>/etc/passwd) && echo bites`},
	{name: "the top directory is written", script: `for d in / /run /dev /srv /mnt; do : >$d/limpet.$$ && rm $d/limpet.$$ && echo bites; done`},
	{name: "the passwords", script: `[[ $(cat /etc/shadow) ]] && echo bites`},
	{name: "the passwords, with all of the root shown", policy: all, script: `[[ $(cat /etc/shadow) ]] && echo bites`},
	{name: "/sys is written, with all of the root shown", policy: all, script: `for f in $(find /sys/kernel -maxdepth 2 -type f -perm -200); do
		(exec 3<>$f) && echo bites && break
	done`},

	// Nothing is written: to open a file is enough to see whether one may.
	{name: "the kernel's core pattern", script: `(exec 3>>/proc/sys/kernel/core_pattern) && echo bites`},
	{name: "a setting of the network", script: `(exec 3>>/proc/sys/net/ipv4/ip_forward) && echo bites`},
	{name: "any setting of the kernel", script: `[[ $(find /proc/sys -type f -writable) ]] && echo bites`},
	{name: "the kernel's magic keys", script: `(exec 3>/proc/sysrq-trigger) && echo bites`},
	// Of /proc/pressure one's own processes may be told.
	{name: "anything else of the kernel's", script: `for f in $(find /proc -maxdepth 3 -name '[0-9]*' -prune -o -path '*self' -prune -o -type f -writable -print); do
		[[ -f $f ]] && echo bites && break
	done`},
	{name: "the kernel's memory", script: `[[ $(head -c 4 /proc/kcore | tr -d '\0') ]] && echo bites`},
	{name: "the kernel's messages", script: `(exec 3</proc/kmsg) && echo bites`},
	{name: "the kernel's addresses", script: `grep -qm 1 -v '^00000000' /proc/kallsyms && echo bites`},
	{name: "the keys in the kernel", script: `[[ $(cat /proc/keys) ]] && echo bites`},
	{name: "what of the kernel only root may read", script: `for f in $(find /proc -maxdepth 1 -type f -perm 0400); do
		(exec 3<$f) && head -c 8 $f >/dev/null && echo bites
	done`},

	{name: "a file system is mounted", script: `mkdir m && mount -t tmpfs none m && umount m && echo bites`},
	{name: "a namespace to mount in", script: `mkdir m; unshare -Urm mount -t tmpfs none m && echo bites`},
	{name: "bubblewrap itself", setup: idleProgram, try: func(w *world) bool {
		if !w.control {
			w.set("EXE", "/proc/1/exe")
		}
		return w.says(`(exec 3<>$EXE) && echo bites`, "bites")
	}},
}

// bindProbes try to change what is shown, but read-only.
var bindProbes = []probe{
	{name: "write what is read-only", policy: outside, script: `echo x >$OUT/new; echo x >>$OUT/plain; rm -f $OUT/plain; mv $OUT/plain $OUT/moved`},
	{name: "change what is known of a file", policy: outside, script: `chmod 777 $OUT/plain; touch $OUT/plain; $TOOL xattr $OUT/plain`},
	{name: "link what is read-only", policy: outside, script: `ln $OUT/plain hard; echo x >>hard`},
	{name: "open a descriptor again, to write", policy: outside, script: `exec 3<$OUT/plain; echo x >>/proc/self/fd/3`},
	{name: "link what a descriptor is of", policy: outside, script: `exec 3<$OUT/plain; ln -L /proc/self/fd/3 hard; echo x >>hard`},
	{name: "mount it again, to write", policy: outside, script: `mount -o remount,rw,bind $OUT; echo x >$OUT/new`},
	{name: "mount it again, as root of a namespace", policy: outside, script: `unshare -Urm mount -o remount,rw,bind $OUT; echo x >$OUT/new`},
	{name: "write a read-only workspace", policy: func(w *world, p *sandbox.Policy) {
		p.FS.Access = sandbox.ReadOnlyAccess
		w.put(filepath.Join(w.Work, "file"), "x\n")
		w.guard(w.Work)
	}, script: `echo x >new; echo x >>file; rm -f file; chmod 777 .`},

	{name: "a masked file by another name", policy: masks(".env"), script: `ln .env e; cat e; cp .env c; mv .env m; cat c m; mv -f c .env; rm -f .env; cat .env`},
	{name: "a mask is taken off", policy: masks(".env"), script: `umount .env; umount -l $W/.env; cat .env`},
	{name: "a mask is taken off in a namespace", policy: masks(".env"), script: `unshare -Urm bash -c 'umount .env; cat .env'`},
	{name: "a masked directory by another name", policy: masks("keys/key"), script: `cat keys/key; mv keys k; cat k/key; cp -r keys c; cat c/key`},
	{name: "a mask stays when the directory above it moves", policy: masks("conf/.env"), try: func(w *world) bool {
		w.do(`mv conf moved; cat moved/.env; ` + ending)
		w.do(`cat conf/.env moved/.env`)
		return false
	}},
	{name: "a mask stays when directories are swapped", policy: masks("conf/.env"), try: func(w *world) bool {
		w.do(`mkdir empty; $TOOL exchange conf empty; ` + ending)
		w.do(`cat conf/.env empty/.env`)
		return false
	}},
	{name: "a bind's source becomes a link", policy: func(w *world, p *sandbox.Policy) {
		w.dir(filepath.Join(w.Work, "tools"))
		p.FS.ExtraRO = append(p.FS.ExtraRO, sandbox.Bind{Src: filepath.Join(w.Work, "tools"), Dst: "/mnt/tools"})
	}, try: func(w *world) bool {
		w.do(`rmdir tools; mv tools moved; ln -s $OUT tools; ` + ending)
		w.do(`cat tools/secret /mnt/tools/secret`)
		return false
	}},
}

func all(_ *world, p *sandbox.Policy) { p.FS.Root = sandbox.All }

// outside shows what is outside, read-only, without the secret.
func outside(w *world, p *sandbox.Policy) {
	require.NoError(w, os.Remove(filepath.Join(w.Out, "secret")))
	p.FS.ExtraRO = append(p.FS.ExtraRO, sandbox.Bind{Src: w.Out})
}

// masks hides a file with the secret, or the directory keys.
func masks(path string) func(*world, *sandbox.Policy) {
	return func(w *world, p *sandbox.Policy) {
		w.put(filepath.Join(w.Work, path), w.secret+"\n")
		hide := path
		if filepath.Dir(path) == "keys" {
			hide = "keys"
		}
		p.FS.Mask = append(p.FS.Mask, hide)
	}
}

// victim starts a process of the host's: see toolVictim. The control looks at no
// other one.
func victim(w *world) {
	cmd := w.who.command(w.who.tool, "victim", w.secret, filepath.Join(w.Out, "secret"))
	cmd.Dir, cmd.Env = w.Out, append(cmd.Env, helperVar+"=tool", "SECRET="+w.secret)
	out, err := cmd.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, cmd.Start())
	ended := make(chan struct{})
	w.undo = append(w.undo, func() {
		_ = cmd.Process.Kill() // It may have ended.
		<-ended
	})
	w.victimDied = func() bool {
		// It has been sent a signal, or has not: that it stops shows which.
		_ = cmd.Process.Signal(syscall.SIGSTOP) // As above.
		died := false
		testenv.Await(w, "the victim", func() bool {
			st, err := proc.Read(cmd.Process.Pid)
			died = err != nil || st.Zombie()
			return died || st.State == 'T'
		})
		return died
	}
	line := make([]byte, len("ready\n"))
	_, err = out.Read(line)
	go func() {
		defer close(ended)
		_ = cmd.Wait() // It was killed.
	}()
	require.NoError(w, err)
	w.set("VICTIM", cmd.Process.Pid)
	if w.control {
		w.set("PROCESSES", cmd.Process.Pid)
	} else {
		w.set("PROCESSES", "[0-9]*")
	}
}

// handle is one of a file with the secret, by which root can open it wherever
// it is.
func handle(w *world) {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(w.Out, "secret"), 0)
	require.NoError(w, err)
	w.set("HANDLE", fmt.Sprintf("%d %s", h.Type(), hex.EncodeToString(h.Bytes())))
}

// shared makes a file with the secret where everybody has some.
func shared(dir string) func(*world) {
	return func(w *world) {
		file, err := os.CreateTemp(dir, "limpet-world-")
		require.NoError(w, err)
		w.undo = append(w.undo, func() { _ = os.Remove(file.Name()) }) // A probe may have done it.
		defer file.Close()                                             //nolint:errcheck // Nothing is lost.
		_, err = file.WriteString(w.secret + "\n")
		require.NoError(w, err)
		w.own(file.Name())
		w.set("THERE", file.Name())
	}
}

// terminal makes one that the user owns. What is typed there is read by typed.
func terminal(w *world) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	require.NoError(w, err)
	w.undo = append(w.undo, func() { _ = master.Close() }) // Nothing is lost.
	raw, err := master.SyscallConn()
	require.NoError(w, err)
	var n int
	require.NoError(w, raw.Control(func(fd uintptr) {
		require.NoError(w, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	}))
	require.NoError(w, err)
	tty := fmt.Sprintf("/dev/pts/%d", n)
	// While nobody has it open there is nothing to be read from it.
	slave, err := os.OpenFile(tty, os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(w, err)
	w.undo = append(w.undo, func() { _ = slave.Close() }) // As above.
	w.own(tty)
	w.set("TTY", tty)
	w.typed = func() bool {
		var some int
		var err error
		_ = raw.Read(func(fd uintptr) bool {
			some, err = syscall.Read(int(fd), make([]byte, 1))
			return true
		})
		return err == nil && some > 0
	}
}

// idleProgram is a program of the user's that does not run, as EXE.
func idleProgram(w *world) {
	w.put(filepath.Join(w.Out, "program"), "#!/bin/true\n")
	w.set("EXE", filepath.Join(w.Out, "program"))
}
