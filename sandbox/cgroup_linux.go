package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the control group of one sandbox (cgroups(7), version 2).
type cgroup struct {
	dir string

	mu          sync.Mutex
	kills, full uint64 // for want of memory, and forks that were refused, as of the last look
	last        string // what close has found
}

// cgroupFor is newCgroup, but for a test where no limits are to be had.
var cgroupFor = newCgroup

// newCgroup makes a cgroup with the limits, or nil if there are none.
func newCgroup(l Limits) (*cgroup, error) {
	settings := make(map[string]string)
	if l.MemoryMax > 0 {
		settings["memory.max"] = strconv.FormatUint(l.MemoryMax, 10)
		settings["memory.swap.max"] = "0"
	}
	if l.PidsMax > 0 {
		settings["pids.max"] = strconv.FormatUint(l.PidsMax, 10)
	}
	if len(settings) == 0 {
		return nil, nil
	}
	parents, err := cgroupParents()
	if err != nil {
		return nil, noCgroup(err)
	}
	var errs []error
	for _, parent := range parents {
		err := fit(parent)
		if err == nil {
			err = enable(parent, settings)
		}
		if err == nil {
			var c *cgroup
			if c, err = makeCgroup(parent, settings); err == nil {
				return c, nil
			}
		}
		errs = append(errs, err)
	}
	return nil, noCgroup(errors.Join(errs...))
}

func noCgroup(err error) error {
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	return &Error{
		Code: ErrLimits, Detail: "Limits.MemoryMax and PidsMax need a delegated cgroup v2 in a child of which this program runs: " + why,
		Hint: "start it by systemd-run -p Delegate=yes -p DelegateSubgroup=main (systemd 254), see docs/sandbox.md for older ones, or set other limits",
	}
}

// cgroupParents are those in which a cgroup may be made: the one above that of this
// program, if it was given away with it, and that of this program, which is of use
// at the top alone, where processes may be beside cgroups with limits. Other cgroups
// above have limits of their own, which the sandbox must not get away from.
func cgroupParents() ([]string, error) {
	ours, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	dir, top, err := ownCgroup(string(ours), string(mounts))
	if err != nil {
		return nil, err
	}
	if above := filepath.Dir(dir); dir != top && (above == top || delegated(above)) {
		return []string{above, dir}, nil
	}
	return []string{dir}, nil
}

// fit says what keeps a cgroup from having children with limits: processes of its
// own, but at the top ("no internal processes", cgroups(7)). To turn controllers on
// there all the same may make it a threaded one, for good, in which no sandbox can be.
func fit(parent string) error {
	kind, err := os.ReadFile(filepath.Join(parent, "cgroup.type"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The top has none.
	}
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(kind)); text != "domain" {
		return fmt.Errorf("%s is %q, not a domain", parent, text)
	}
	pids, err := os.ReadFile(filepath.Join(parent, "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("%s has processes of its own", parent)
	}
	return nil
}

// ownCgroup finds the directory of this program's cgroup, and that at which its
// hierarchy is mounted (proc(5), /proc/PID/cgroup and mountinfo).
func ownCgroup(ours, mounts string) (dir, top string, err error) {
	path := ""
	for line := range strings.Lines(ours) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = rest
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		const root, point = 3, 4
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) <= point {
			continue
		}
		if path == "" || strings.Contains(path, "/..") || !pathWithin(fields[root], path) {
			return "", "", fmt.Errorf("its own cgroup %q is not below the one that is mounted, %q", path, fields[root])
		}
		return rebase(path, fields[root], fields[point]), fields[point], nil
	}
	return "", "", errors.New("none is mounted")
}

// delegated says whether systemd gave the cgroup away (systemd.resource-control(5),
// Delegate=). That of a user leaves no mark on what it gives away, but all of its units
// are the user's.
func delegated(dir string) bool {
	unit := strings.HasSuffix(dir, ".service") || strings.HasSuffix(dir, ".scope")
	if unit && strings.Contains(filepath.Dir(dir)+"/", "/user@"+strconv.Itoa(os.Geteuid())+".service/") && unix.Access(dir, unix.W_OK) == nil {
		return true
	}
	return slices.ContainsFunc([]string{"user.delegate", "trusted.delegate"}, func(name string) bool {
		var value [8]byte
		n, err := unix.Getxattr(dir, name, value[:])
		return err == nil && string(value[:n]) == "1"
	})
}

// enable has the controllers of the settings in the cgroup's children.
func enable(parent string, settings map[string]string) error {
	have, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	on, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		controller, _, _ := strings.Cut(name, ".")
		if !slices.Contains(strings.Fields(string(have)), controller) {
			return fmt.Errorf("%s has no controller %q, but %q", parent, controller, strings.TrimSpace(string(have)))
		}
		if slices.Contains(strings.Fields(string(on)), controller) {
			continue
		}
		if err := write(filepath.Join(parent, "cgroup.subtree_control"), "+"+controller); err != nil {
			return err
		}
	}
	return nil
}

// makeCgroup makes a cgroup in another one.
func makeCgroup(parent string, settings map[string]string) (*cgroup, error) {
	var random [4]byte
	_, _ = rand.Read(random[:]) // It never fails.
	c := &cgroup{dir: filepath.Join(parent, fmt.Sprintf("limpet-%d-%s", os.Getpid(), hex.EncodeToString(random[:])))}
	const mode = 0o755
	if err := os.Mkdir(c.dir, mode); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.dir, mode); err != nil { // Whatever the umask is.
		c.close()
		return nil, err
	}
	for name, value := range settings {
		err := write(filepath.Join(c.dir, name), value)
		if errors.Is(err, fs.ErrNotExist) && name == "memory.swap.max" {
			continue // The kernel has no swap.
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// write writes to a file that the kernel has made.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// add moves a process into the cgroup. What it starts is in it too.
func (c *cgroup) add(pid int) error {
	return write(filepath.Join(c.dir, "cgroup.procs"), strconv.Itoa(pid))
}

// met says which of its limits the cgroup has met since the last time; "" if none. A
// nil cgroup has none.
func (c *cgroup) met() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.last; why != "" {
		c.last = ""
		return why
	}
	kills, full := counter(filepath.Join(c.dir, "memory.events"), "oom_kill"), counter(filepath.Join(c.dir, "pids.events"), "max")
	defer func() { c.kills, c.full = kills, full }()
	switch {
	case kills > c.kills:
		return "the sandbox ran out of memory (Limits.MemoryMax), and the kernel killed a process; files in a private /tmp or home count too"
	case full > c.full:
		return "the sandbox has as many processes as it may (Limits.PidsMax)"
	}
	return ""
}

// counter reads a line "NAME NUMBER"; 0 if there is none.
func counter(path, name string) uint64 {
	text, _ := os.ReadFile(path) // Without that controller it is not there.
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64) // The kernel writes numbers.
			return n
		}
	}
	return 0
}

// close removes the cgroup, once nothing is in it: its processes were killed.
// It waits for the last of them to be gone. A nil cgroup is fine.
func (c *cgroup) close() {
	if c == nil {
		return
	}
	why := c.met()
	c.mu.Lock()
	c.last = why
	c.mu.Unlock()
	events, err := os.Open(filepath.Join(c.dir, "cgroup.events"))
	if err == nil {
		defer events.Close() // Read only.
	}
	const patience = time.Second
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); {
		text := make([]byte, 256)
		n, _ := events.ReadAt(text, 0) // Short at the end of file, as it is.
		if !strings.Contains(string(text[:n]), "populated 1") {
			break
		}
		// The file has an exceptional condition when it changes.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, int(patience.Milliseconds()))
	}
	_ = os.Remove(c.dir) // Best effort: an empty cgroup costs little.
}
