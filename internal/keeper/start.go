package keeper

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/shell"
)

// The descriptors of a keeper.
const (
	listenerFD = 3 + iota
	lockFD
	givenFD // where the record says so
	claimFD // where the record has a From
)

// newID draws the ID of a keeper.
func newID() string { return strings.ToLower(rand.Text()) }

// start starts a keeper. Whoever asks it waits until it accepts: the socket listens already. The
// caller holds the names. It knows what the last ones of that name, whose directories those are, were
// asked for.
func (r *Registry) start(name string, spec Spec, last []string) (Record, error) {
	return r.startAs(Record{ID: newID(), Name: name, Version: r.Version, Created: time.Now(), Spec: spec}, nil, last)
}

// startAs is start with what the record has. A keeper that comes from another one has the reading end of a
// pipe as its claim.
func (r *Registry) startAs(record Record, claim *os.File, last []string) (Record, error) {
	record.State, record.Given = Starting, record.Spec.State != nil
	dir := filepath.Join(r.dir, record.ID)
	if err := private.Mkdir(dir); err != nil { // Here: another one's must not be removed below.
		return record, err
	}
	pid, err := r.launch(dir, record, claim, last)
	if err != nil {
		_ = os.RemoveAll(dir) // Nobody has it.
		return record, err
	}
	record.PID = pid
	return record, nil
}

func (r *Registry) launch(dir string, record Record, claim *os.File, last []string) (pid int, err error) {
	if err := os.Chmod(dir, statedir.DirMode); err != nil { // Whatever the umask is.
		return 0, err
	}
	// A lock belongs to the open file, which the keeper has from now on: there is no instant in
	// which nobody holds it.
	lock, err := private.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return 0, err
	}
	defer lock.Close()                                   // The keeper has its own.
	if err := flock(lock, syscall.LOCK_EX); err != nil { // Who looks holds it for an instant.
		return 0, err
	}
	if err := inherit(dir, last); err != nil {
		return 0, err
	}
	said, err := private.OpenFile(filepath.Join(dir, saidFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return 0, err
	}
	defer said.Close() // As above.
	l, err := socket.Listen(dir, socketFile)
	if err != nil {
		return 0, err
	}
	defer l.Close() // As above.
	listener, err := l.File()
	if err != nil {
		return 0, err
	}
	defer listener.Close() // As above.
	// From now on it is found, by who does not hold the names, too: that its socket is not there would mean that it ends.
	if err := record.write(dir); err != nil {
		return 0, err
	}

	cmd := r.Execute(dir)
	cmd.Dir, cmd.Env = "/", record.Spec.Env
	if cmd.Env == nil {
		cmd.Env = shell.DefaultEnv()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, said, said
	cmd.ExtraFiles = []*os.File{listener, lock}
	if record.Given {
		given, err := record.Spec.given(dir)
		if err != nil {
			return 0, err
		}
		defer given.Close() // As above.
		cmd.ExtraFiles = append(cmd.ExtraFiles, given)
		if claim != nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, claim)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // No hangup and no Ctrl-C of the caller's terminal is for it.
	if err := proc.Start(cmd); err != nil {
		return 0, fmt.Errorf("executing limpet again: %w", err)
	}
	_ = writePID(lock, cmd.Process.Pid) // The keeper does it, too.
	// While this program lives there is nobody else to reap it.
	go func() { _ = cmd.Wait() }() // What is to be known is in the directory.
	return cmd.Process.Pid, nil
}

// writePID says who is to be killed, if a keeper does not answer. This program may be killed before it
// does, or the keeper stand still: so both write it.
func writePID(lock *os.File, pid int) error {
	_, err := lock.WriteAt(fmt.Appendln(nil, pid), 0)
	return err
}

// pidOf is the pid of the keeper of a directory; 0 if it is not known.
func pidOf(dir string) (pid int) {
	b, err := statedir.Read(filepath.Join(dir, lockFile), 100)
	if err == nil {
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b))) // 0, as said.
	}
	return pid
}

// holds reports whether a process has a file open.
func holds(pid int, path string) bool {
	want, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(st, want) {
			return true
		}
	}
	return false
}
