package keeper

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// groupsFile has the control groups of this program. Tests have another one: they cannot be in a service.
var groupsFile = "/proc/self/cgroup"

// within returns the control group of the service that this program is in; empty if it is in none. Systemd ends
// what is in it with the service, a keeper too (systemd.kill(5), KillMode).
func within() string {
	b, err := os.ReadFile(groupsFile)
	if err != nil {
		return "" // There are none here.
	}
	return serviceOf(string(b))
}

// serviceOf finds it in the lines of cgroups(7). The service of a user's manager, which ends with the user's last
// session, is none that a program is started in, and a scope is somebody's login, or a program of a desktop.
func serviceOf(lines string) string {
	for line := range strings.Lines(lines) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[0] != "0" && fields[1] != "name=systemd" {
			continue
		}
		for at := fields[2]; at != "/" && at != "."; at = path.Dir(at) {
			switch unit := path.Base(at); {
			case strings.HasSuffix(unit, ".scope"), strings.HasPrefix(unit, "user@"):
				return ""
			case strings.HasSuffix(unit, ".service"):
				return at
			}
		}
	}
	return ""
}

// unit is the name of a service by its control group.
func unit(group string) string { return path.Base(group) }

// isOver reports whether a service has ended: its control group is not there any more.
func isOver(group string) bool {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + group); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// EndsWith is the name of the service of systemd in which the session was made, and with which it ends; empty if it was
// made in none.
func (r Record) EndsWith() string {
	if r.Within == "" {
		return ""
	}
	return unit(r.Within)
}
