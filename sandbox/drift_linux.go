package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

var _ transport.Checker = (*conn)(nil)

// Check implements [transport.Checker]: it compares the mounts of the sandbox
// with those at its start. The kernel drops a mount when somebody on the host
// renames another file over what it is mounted on, as editors and git do to
// save a file: what was masked or read-only is so no longer.
func (c *conn) Check() (lost error, goOn bool) {
	now, err := mounts(c.init)
	if err != nil {
		return nil, true // It has ended, which is noticed elsewhere.
	}
	for _, m := range c.mounts {
		if !slices.Contains(now, m) {
			_, point, _ := strings.Cut(m, " ")
			return &Error{
				Code:   ErrDrift,
				Detail: fmt.Sprintf("protection of %s was lost (file replaced on the host); session restarted", point),
			}, c.drift == DriftRespawn
		}
	}
	return nil, true
}

// mounts lists what is mounted where, "ROOT POINT", in the namespace of a
// process (proc(5), /proc/PID/mountinfo).
func mounts(id proc.ID) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", id.PID))
	if err != nil {
		return nil, err
	}
	if st, err := proc.Read(id.PID); err != nil || st.ID() != id {
		return nil, unix.ESRCH
	}
	const root, point = 3, 4
	var list []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > point {
			list = append(list, fields[root]+" "+fields[point])
		}
	}
	return list, nil
}
