package askpass

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/limpet-sh/limpet/internal/proc"
)

// member is a process of those that led to a question.
type member struct {
	id      proc.ID
	command string
}

// deepest bounds a chain: nobody reads a longer one.
const deepest = 64

// chain returns the process that asks, its parent, and so on up to the first of the shell's. Pid is at the other end of the connection. If
// that is the helper, its parent asks, and else itself.
func (s *Server) chain(pid int) ([]member, error) {
	st, err := proc.Read(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be looked at: %w", pid, err)
	}
	var chain []member
	helper := isThisProgram(pid)
	for range deepest {
		first := s.opts.Shell(st)
		if !helper || first { // A shell may have become the helper: then that asks.
			chain = append(chain, member{st.ID(), proc.Command(st.PID)})
		}
		if first {
			return chain, nil
		}
		helper = false
		parent, err := proc.Read(st.PPID)
		switch {
		case err != nil && st.PPID != 0: // As where /proc is mounted with hidepid, and sudo is root's.
			return nil, fmt.Errorf("process %d, the parent of %d, cannot be looked at: %w", st.PPID, st.PID, err)
		case err != nil, parent.Start > st.Start: // The parent is gone, and its number another's.
			return nil, errNotOurs
		}
		st = parent
	}
	return nil, errNotOurs
}

// exe names the program of a process, whatever its path leads to by now.
func exe(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "exe") }

func isThisProgram(pid int) bool {
	theirs, err1 := os.Stat(exe(pid))
	ours, err2 := os.Stat("/proc/self/exe")
	return err1 == nil && err2 == nil && os.SameFile(theirs, ours)
}

// known are the programs that askpass was made for.
var known = map[string]bool{
	"sudo": true,
	"ssh":  true, "ssh-add": true, "ssh-agent": true, "ssh-keygen": true,
	"git": true, "git-remote-http": true, "git-remote-https": true, "git-http-push": true, "git-imap-send": true,
}

// recognise returns the name of a program that is known, and belongs to root. Those that may not be looked at are privileged: sudo, if
// it says so, as nobody but root can make another program that looks like that.
func recognise(pid int) string {
	if path := proc.Program(pid); path != "" {
		st, err := os.Stat(exe(pid))
		if err != nil || !known[filepath.Base(path)] {
			return ""
		}
		const writable = 0o022
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != 0 || st.Mode()&writable != 0 {
			return ""
		}
		return filepath.Base(path)
	}
	if euid, err := proc.EUID(pid); err == nil && euid == 0 && os.Geteuid() != 0 && proc.Name(pid) == "sudo" {
		return "sudo"
	}
	return ""
}
