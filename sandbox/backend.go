package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// backendDirs is where bwrap is looked for. PATH is not: whoever can write a
// directory of it would choose the sandbox.
var backendDirs = []string{"/usr/bin", "/usr/local/bin", "/bin"}

// backend is a bwrap.
type backend struct {
	path         string
	major, minor int
	id           string // changes when the file does
}

// findBackend finds a bwrap that can be trusted.
func findBackend() (backend, error) {
	for _, dir := range backendDirs {
		path := filepath.Join(dir, "bwrap")
		if _, err := os.Stat(path); err == nil {
			return inspect(path)
		}
	}
	return backend{}, &Error{
		Code:   ErrNoBackend,
		Detail: "bubblewrap (bwrap) not found in " + strings.Join(backendDirs, ":"),
		Hint:   "install it (apt-get install bubblewrap) or ask for Unconfined explicitly",
	}
}

// inspect trusts a bwrap that only root can have put there, and that is not
// setuid: then it would make mounts of its caller's choice as root.
func inspect(path string) (backend, error) {
	untrusted := func(why string) (backend, error) {
		return backend{}, &Error{
			Code: ErrUntrustedBackend, Detail: fmt.Sprintf("%s is not trusted (%s)", path, why),
			Hint: "install the distribution's bubblewrap, owned by root and writable by nobody else",
		}
	}
	real, why := roots(path)
	if why != "" {
		return untrusted(why)
	}
	st, err := os.Stat(real)
	if err != nil {
		return untrusted(err.Error())
	}
	if st.Mode()&os.ModeSetuid != 0 {
		return untrusted("setuid")
	}
	b := backend{path: real, id: fmt.Sprintf("%s %d %d", real, st.Size(), st.ModTime().UnixNano())}
	if known, ok := inspected.Load(b.id); ok {
		return known.(backend), nil
	}
	out, err := exec.Command(real, "--version").Output()
	if err != nil {
		return untrusted("it does not tell its version: " + err.Error())
	}
	m := version().FindStringSubmatch(string(out))
	if m == nil {
		return untrusted(fmt.Sprintf("it says that its version is %q", strings.TrimSpace(string(out))))
	}
	b.major, _ = strconv.Atoi(m[1]) // They are digits.
	b.minor, _ = strconv.Atoi(m[2])
	inspected.Store(b.id, b)
	return b, nil
}

// roots follows a path to where it leads, and says why others than root could have
// made that, or a symlink on the way, or a directory above one; "" if nobody could.
func roots(path string) (real, why string) {
	const longest = 40 // As the kernel has it (path_resolution(7)).
	for range longest {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err.Error()
		}
		path = filepath.Join(dir, filepath.Base(path))
		link := false
		for file := path; ; file = filepath.Dir(file) {
			info, err := os.Lstat(file)
			if err != nil {
				return "", err.Error()
			}
			mode := info.Mode()
			isLink, isSticky := mode&os.ModeSymlink != 0, mode.IsDir() && mode&os.ModeSticky != 0
			sys, ok := info.Sys().(*syscall.Stat_t)
			switch {
			case !ok || sys.Uid != 0:
				return "", file + " is not root's"
			case mode.Perm()&0o022 != 0 && !isLink && !isSticky:
				return "", file + " is writable by others"
			}
			link = link || isLink // Above the last part there are none.
			if file == "/" {
				break
			}
		}
		if !link {
			return path, ""
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err.Error()
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", "too many symlinks"
}

// inspected are the versions by id: to ask for one costs as much as the start of
// a shell. Whether a bwrap can be trusted is looked at each time.
var inspected sync.Map

var version = lazyregexp.New(`(\d+)\.(\d+)`)

// atLeast reports whether bwrap is that new.
func (b backend) atLeast(major, minor int) bool {
	return b.major > major || b.major == major && b.minor >= minor
}

// outOf refuses a sandbox that could replace the bwrap of the next one.
func (b backend) outOf(v view) error {
	if reach, field := v.reach(b.path); reach == writable {
		return &Error{
			Code: ErrUntrustedBackend, Detail: fmt.Sprintf("%s is not trusted (%s lets the sandbox write it)", b.path, field),
			Hint: "choose a workspace that does not hold it",
		}
	}
	return nil
}

// supports checks what a policy needs of bwrap itself.
func (b backend) supports(p Policy) error {
	if p.FS.Access == Overlay && !b.atLeast(0, 11) {
		return &Error{
			Code: ErrOldBackend, Detail: fmt.Sprintf("bwrap %d.%d lacks --overlay-src (needs 0.11)", b.major, b.minor),
			Hint: "install a newer bubblewrap, or use WorkspaceWrite on a copy of the workspace",
		}
	}
	if !b.atLeast(0, 8) {
		return &Error{
			Code: ErrOldBackend, Detail: fmt.Sprintf("bwrap %d.%d lacks --disable-userns (needs 0.8)", b.major, b.minor),
			Hint: "install a newer bubblewrap",
		}
	}
	return nil
}

// refusals tell what bwrap means by its words.
var refusals = []struct {
	said         func() *regexp.Regexp
	code         error
	detail, hint string
}{
	{lazyregexp.New(`Unknown option (\S+)`), ErrOldBackend, "bwrap lacks an option", "install a newer bubblewrap"},
	{lazyregexp.New(`No permissions to creat(e|ing)( a)? new namespace|setting up uid map|Creating new namespace failed|Setting userns2 failed|creation of new user namespaces was not disabled`), ErrUserns,
		"the kernel refuses user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=1?)",
		"load the AppArmor profile bwrap-userns-restrict, raise user.max_user_namespaces (or max_mnt_, max_pid_, max_net_namespaces and their like), or do not run inside of another sandbox"},
	{lazyregexp.New(`loopback: Failed`), ErrNetns,
		"cannot create a network namespace (AppArmor or missing CAP_NET_ADMIN in a container)", "allow it, or ask for HostNetwork explicitly"},
	{lazyregexp.New(`Can't mount proc on`), ErrProc,
		"cannot mount /proc (masked /proc of the outer container)",
		"start the container with --security-opt unmask=ALL or systempaths=unconfined, or go without by Proc.NestedWeak"},
	{lazyregexp.New(`Can't read seccomp data|Invalid seccomp data|PR_SET_SECCOMP`), ErrSeccomp, "seccomp filter rejected by the kernel or bwrap", ""},
	{lazyregexp.New(`limpet-helper:`), ErrProxy, "the proxy to the allowed hosts could not be set up", "a limit of the policy may be too low for it (AddressSpace, NoFile)"},
	{lazyregexp.New(`execvp (\S+)`), ErrExec, "the program is not visible inside the sandbox", "show it by ExtraRO, or by Root: All"},
	{lazyregexp.New(`Can't chdir to .*Permission denied`), ErrMount, "the user that the sandbox runs as cannot enter the directory to start in", "let that user enter it"},
	{lazyregexp.New(`Can't chdir`), ErrMount, "the directory to start in is not visible inside the sandbox", "start in the workspace"},
	{lazyregexp.New(`Can't find source path .*Permission denied`), ErrMount, "the user that the sandbox runs as cannot reach a directory",
		"let that user enter the directories above it"},
	{lazyregexp.New(`Can't (find source path|mkdir|create|bind mount|get type of source|mount|make|remount)|Failed to (make / slave|mount tmpfs)`), ErrMount, "a mount failed", ""},
}

// explain makes an error of what bwrap said.
func explain(said string, err error) error {
	said = strings.TrimSpace(said)
	for _, r := range refusals {
		if r.said().MatchString(said) {
			return &Error{Code: r.code, Detail: r.detail, Hint: r.hint, Said: said}
		}
	}
	if err == nil {
		err = errors.New("bwrap ended before the program started")
	}
	return &Error{Code: ErrMount, Detail: err.Error(), Said: said}
}
