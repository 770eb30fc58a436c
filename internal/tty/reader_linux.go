package tty

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
)

// Reader returns which program in the foreground of a terminal waits for what is typed, without Since; false if
// none does, or if the kernel does not say. Root is the process that the program descends from, or is.
//
// A program that waits for something else as well, as a network connection or the end of a time, goes on by
// itself and does not count, unless it wants a password. Of a program that may not be looked into, as another
// user's, only that is known that it sleeps, and how the terminal is set: that is enough for a password.
func Reader(master *os.File, root proc.ID) (w Waiting, found bool) {
	t, ok := readState(master)
	if !ok {
		return w, false
	}
	sleeping, hidden := true, 0
	for _, st := range foreground(t.group, root) {
		sleeping = sleeping && st.State == 'S'
		reads, alone, err := proc.Reads(st.PID, t.device)
		switch {
		case reads && (alone || t.secret()): // Also if another thread could not be looked into.
			return Waiting{For: t.wanted(st.PID), Program: proc.Name(st.PID), PID: st.PID}, true
		case errors.Is(err, fs.ErrPermission) && hidden == 0: // One that has just ended is none.
			hidden = st.PID
		}
	}
	if hidden != 0 && sleeping && t.secret() {
		return Waiting{For: ForPassword, Program: proc.Name(hidden), PID: hidden}, true
	}
	return w, false
}

// state is how a terminal is set.
type state struct {
	group       int    // the process group in its foreground
	device      uint64 // of its slave
	lines, echo bool   // it collects lines; it shows what is typed
}

// secret reports whether the terminal is set as for a password.
func (s state) secret() bool { return s.lines && !s.echo }

func readState(master *os.File) (s state, ok bool) {
	conn, err := master.SyscallConn()
	if err != nil {
		return s, false
	}
	err = conn.Control(func(fd uintptr) {
		group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		if err != nil || group <= 0 {
			return
		}
		number, err := unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		if err != nil {
			return
		}
		t, err := unix.IoctlGetTermios(int(fd), getTermios)
		if err != nil {
			return
		}
		const slaves = 136 // UNIX98_PTY_SLAVE_MAJOR (include/uapi/linux/major.h)
		s, ok = state{group: group, device: unix.Mkdev(slaves, uint32(number)), lines: t.Lflag&unix.ICANON != 0, echo: t.Lflag&unix.ECHO != 0}, true
	})
	return s, ok && err == nil
}

// foreground returns the processes of a group, of those that descend from root; where there are none,
// those of all processes.
func foreground(group int, root proc.ID) []proc.Stat {
	const most = 1000 // A program with more processes is not waiting for a person.
	others := func(st proc.Stat) bool { return st.PGRP != group || st.Zombie() }
	first, err := proc.Read(root.PID)
	if err != nil || first.ID() != root {
		return nil
	}
	all := []proc.Stat{first}
	for i := 0; i < len(all) && len(all) < most; i++ {
		all = append(all, proc.Children(all[i].PID)...)
	}
	if found := slices.DeleteFunc(all, others); len(found) > 0 {
		return found
	}
	all, _ = proc.List() // What can be read is what there is.
	return slices.DeleteFunc(all, others)
}

// wanted says what a process waits for.
func (s state) wanted(pid int) string {
	switch {
	case s.secret():
		return ForPassword
	case controlsJobs(pid) && (s.lines && !editsLines(pid) || !s.lines && !s.echo):
		return ForCommand
	case s.lines:
		return ForLine
	}
	return ForKey
}

// controlsJobs reports whether a process is a shell with job control: such a one is not stopped by its own
// terminal (tcsetpgrp(3)), nor by Ctrl-Z.
func controlsJobs(pid int) bool {
	s := proc.ReadSignals(pid)
	return s.Ignores(syscall.SIGTTOU) && s.Ignores(syscall.SIGTSTP)
}

// editsLines reports whether a shell is one that edits its command line by itself, key by key. When that reads a
// whole line, it is for its builtin read. Others read commands so.
func editsLines(pid int) bool {
	return slices.Contains([]string{"bash", "zsh", "fish", "ksh", "ksh93", "mksh", "tcsh"}, filepath.Base(proc.Program(pid)))
}
