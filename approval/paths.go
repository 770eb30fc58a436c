package approval

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// place of a path: with a home at the beginning as ~, without doubled slashes and dots.
func (w *walker) normal(v value) string {
	p := v.pattern
	if strings.HasPrefix(p, "~") && !v.home {
		return "./" + p
	}
	if rest, ok := descriptors(p); ok {
		p = "/proc/self/fd/" + rest // It is a symbolic link: ".." behind it is not /dev.
	}
	if p = clean(p); v.home && !strings.HasPrefix(p, "~") { // It goes up from the home.
		p = clean(cmp.Or(w.s.opts.Home, "/root") + strings.TrimPrefix(v.pattern, "~"))
	}
	for _, prefix := range []string{"/proc/self/root", "/proc/1/root", "/proc/thread-self/root", "/dev/fd/root"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok && (rest == "" || rest[0] == '/') {
			p = clean("/" + rest)
		}
	}
	home := w.s.opts.Home
	for _, dir := range []string{home, "/root"} {
		if dir == "" || dir == "/" {
			continue
		}
		if rest, ok := strings.CutPrefix(p, dir); ok && (rest == "" || rest[0] == '/') {
			return "~" + rest
		}
	}
	if rest, ok := strings.CutPrefix(p, "/home/"); ok {
		if _, below, ok := strings.Cut(rest, "/"); ok {
			return "~/" + below
		}
		return "~"
	}
	return p
}

// descriptors returns what is behind /dev/fd, if that goes up.
func descriptors(p string) (string, bool) {
	if !strings.Contains(p, "..") || !strings.HasPrefix(p, "/") {
		return "", false
	}
	var seen []string
	for rest := p; rest != ""; {
		var part string
		switch part, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/"); part {
		case "", ".":
		case "..":
			seen = seen[:max(0, len(seen)-1)]
		default:
			seen = append(seen, part)
		}
		if len(seen) == 2 && seen[0] == "dev" && seen[1] == "fd" {
			return rest, rest != ""
		}
	}
	return "", false
}

// homes returns a path, and what it may be by a pattern for a home, or by a name that is not known: with ~ for that.
func (w *walker) homes(p string) []string {
	all := []string{p}
	if p == "/"+hidden {
		return append(all, "~")
	}
	for _, unknown := range []string{"/" + hidden, here, hidden} { // ~root or /$x, $PWD, and $x.
		if rest, ok := strings.CutPrefix(p, unknown+"/"); ok {
			return append(all, "~/"+rest)
		}
	}
	if !strings.HasPrefix(p, "/") || !strings.ContainsAny(p, "*?[") {
		return all
	}
	for _, dir := range []string{w.s.opts.Home, "/root", "/home/*"} {
		n := strings.Count(dir, "/") + 1
		parts := strings.Split(p, "/")
		if len(dir) < 2 || len(parts) < n {
			continue
		}
		may := true
		for i, name := range strings.Split(dir, "/") {
			may = may && (name == "*" || component(parts[i], name))
		}
		if may {
			all = append(all, strings.Join(append([]string{"~"}, parts[n:]...), "/"))
		}
	}
	return all
}

// system are directories without which the machine does not run.
var system = []string{
	"/", "~", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin",
	"/usr/lib", "/usr/local", "/usr/sbin", "/var", "/var/lib", "/var/log", "/Users", "/System", "/Library", "/Applications",
}

// isRoot reports whether a path is one of those, or all that is in one, also by a pattern.
func (w *walker) isRoot(v value) bool {
	p := w.normal(v)
	for strings.HasSuffix(p, "/*") || strings.HasSuffix(p, "/.*") || strings.HasSuffix(p, "/.[") {
		if p = path.Dir(p); p == "/" {
			return true
		}
	}
	return slices.ContainsFunc(system, func(dir string) bool { return matches(p, dir) && p != "*" })
}

// matches reports whether a path may be dir, where its pattern has unknown parts.
func matches(pattern, dir string) bool {
	if pattern == dir {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	a, b := strings.Split(pattern, "/"), strings.Split(dir, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !component(a[i], b[i]) {
			return false
		}
	}
	return true
}

// component reports whether a component of a path may be a name. Behind a bracket any may: where that ends, quotes decide, which a pattern has lost.
func component(pattern, name string) bool {
	if name == "~" || strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") && !strings.HasPrefix(pattern, "[") {
		return pattern == name // A pattern finds no hidden files, unless it says so.
	}
	if i := strings.IndexByte(pattern, '['); i >= 0 {
		pattern = pattern[:i] + "*"
	}
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// isBelow reports whether a path is dir or below it, or may be by a pattern that names something of it.
func isBelow(p, dir string) bool {
	if !strings.ContainsAny(p, "*?[") {
		return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
	}
	n := strings.Count(dir, "/") + 1
	parts := strings.Split(p, "/")
	return len(parts) >= n && matches(strings.Join(parts[:n], "/"), dir)
}

// floorDirs are limpet's own: who can write or read there can answer questions in a person's place.
var floorDirs = []string{"~/.local/state/limpet", "~/.config/limpet"}

// floor denies a command that names limpet's own files. No rule opens it.
func (w *walker) floor(words []value, from, to int) bool {
	for _, v := range words {
		relative := strings.Contains(v.pattern, "/") || words[0].pattern == "cd" || words[0].pattern == "pushd" // Another single name may be no file.
		if w.isFloor(v) || relative && slices.ContainsFunc(w.placed(v), w.isFloor) || slices.ContainsFunc(w.belowKept(named(v)), w.isFloor) {
			w.addAt(KindCommand, from, to, Deny, ruleFloor, "limpet's own state, rules and sockets are not for scripts")
			return true
		}
	}
	return false
}

// sharedFloor are limpet's own directories where there is no home, by the number of the user.
var sharedFloor = lazyregexp.New(`^/(var/tmp|tmp|dev/shm)/limpet-[0-9*?\[]`)

func (w *walker) isFloor(v value) bool {
	if !strings.Contains(v.pattern, "/") {
		return false
	}
	p := w.normal(v)
	if _, at, ok := strings.Cut(p, "=/"); ok { // dd of=, --output=
		p = w.normal(value{pattern: "/" + at})
	} else if _, at, ok := strings.Cut(p, "=~/"); ok {
		p = "~/" + at
	}
	if sharedFloor().MatchString(p) {
		return true
	}
	for _, dir := range floorDirs {
		if slices.ContainsFunc(w.homes(p), func(p string) bool { return isBelow(p, dir) }) {
			return true
		}
		// Some directory's name is not known: it may be anybody's home.
		if rest := strings.TrimPrefix(dir, "~/"); strings.Contains(p+"/", "/"+rest+"/") || strings.HasPrefix(p+"/", rest+"/") {
			return true
		}
	}
	return slices.ContainsFunc(w.s.opts.Protected, func(dir string) bool {
		return slices.ContainsFunc(w.homes(p), func(p string) bool { return isBelow(p, w.normal(value{pattern: dir})) })
	})
}

// Files that decide who may log in and what runs as root: writing there is denied. Files that shells and editors run when they start are
// written on request often enough: they ask.
var (
	deniedFiles = []string{
		"/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/group", "/etc/sudoers", "/etc/sudoers.d", "/etc/pam.d", "/etc/ld.so.preload", "/etc/doas.conf",
		"/boot", "/proc/sysrq-trigger", "/proc/kcore", "/sys", "~/.ssh/authorized_keys", "~/.ssh/authorized_keys2",
	}
	startupFiles = []string{
		"~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases", "~/.profile", "~/.inputrc", "~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.zlogin", "~/.config/fish",
		"~/.vimrc", "~/.vim", "~/.config/nvim", "~/.emacs", "~/.emacs.d", "~/.exrc", "~/.nanorc", "~/.gitconfig", "~/.config/git", "~/.ssh", "~/.config/autostart",
		"~/.config/systemd", "~/.local/bin", "~/bin", "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/cron.d", "/etc/crontab", "/var/spool/cron", "/etc/systemd",
	}
	secretFiles = []string{
		"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "~/.ssh", "~/.gnupg", "~/.aws", "~/.netrc", "~/.git-credentials", "~/.docker/config.json", "~/.kube",
		"~/.npmrc", "~/.pypirc", "~/.gitconfig", "~/.config/git", "~/.config/gh", "~/.config/gcloud", "~/.azure", "~/.password-store", "~/.pgpass", "~/.my.cnf", "~/.bash_history", "~/.local/share/keyrings",
		"/etc/ssl/private", "/dev/mem", "/dev/kmem",
	}
	// secretParts are the names in those paths, and in those of limpet, of processes and of a repository's configuration.
	secretParts = func() map[string]bool {
		all := make(map[string]bool)
		for _, name := range strings.Split(strings.Join(slices.Concat(secretFiles, floorDirs, secretOfProcess), "/")+"/.git/config", "/") {
			all[name] = name != "" && name != "~"
		}
		return all
	}()
	// secretOfProcess are files and directories of each process, and of each of its threads, below /proc.
	secretOfProcess = []string{"environ", "mem", "root", "fd", "cwd", "map_files"}
	// device is the name of one, below /dev; devices are how those names begin.
	device  = lazyregexp.New(`^(([shv]|xv)d[a-z]+[0-9]*|(nvme|mmcblk|loop|dm-|md|r?disk|sr|nbd|zd)[0-9][0-9a-z]*|md_d[0-9][0-9a-z]*|k?mem|port|(mapper|disk)/.*|md/[^.]*)$`)
	devices = []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "mapper", "disk", "md", "md_d", "mem", "kmem", "port", "rdisk", "sr", "nbd", "zd"}
)

// isDevice reports whether a path is a device with somebody's files on it, or the memory, or may be by a pattern: all files of /dev, and one whose
// name is not known at all, are not meant.
func isDevice(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	at := strings.IndexAny(name, "*?["+hidden)
	switch {
	case !ok:
		return false
	case at < 0 || strings.ContainsAny(outsideBrackets(name[at:]), "._"): // Few devices have such in their names.
		return device().MatchString(name)
	case at == 0:
		return strings.Trim(name, "*"+hidden) != ""
	}
	return device().MatchString(name[:at]) || slices.ContainsFunc(devices, func(one string) bool { return strings.HasPrefix(one, name[:at]) })
}

// outsideBrackets is the first part of a pattern without its brackets, from the first to the last.
func outsideBrackets(pattern string) string {
	name, _, _ := strings.Cut(pattern, "/")
	before, inside, _ := strings.Cut(name, "[")
	if end := strings.LastIndexByte(inside, ']'); end >= 0 {
		return before + inside[end+1:]
	}
	return before
}

// path judges a file that is read, or written, by its path alone: Allow says that nothing is known against it.
func (w *walker) path(v value, write bool) (string, Verdict) {
	p := w.normal(v)
	if w.isFloor(v) {
		return "limpet's own state, rules and sockets are not for scripts", Deny
	}
	var readings []value // what else it may be
	if !write {
		readings = slices.Concat(w.placed(v), w.belowKept(v), emptied(v))
		for _, v := range append(readings[:len(readings):len(readings)], v) {
			readings = append(readings, w.filled(v)...)
		}
	}
	in := func(list []string) bool { return !strings.HasPrefix(p, hidden) && w.in(p, list) } // Writing asks, wherever it is.
	switch {
	case write && in(deniedFiles):
		return "it writes a file by which others get in, or get more rights", Deny
	case write && isDevice(p):
		return "it writes to a device, over the files on it", Deny
	case write && in(startupFiles):
		return "it writes a file that shells, editors or services run later, outside of this session", Ask
	case !write && (w.isSecret(v) || isSecretName(p, !v.known) || slices.ContainsFunc(readings, w.isSecret)):
		return "it names a file that may have secrets", Ask
	case !write && (isDevice(p) || slices.ContainsFunc(readings, func(v value) bool { return isDevice(w.normal(v)) })):
		return "it reads a device, which has other users' files", Ask
	case !write && isNetwork(v) && v.known:
		return "bash opens a connection for a path below /dev/tcp or /dev/udp", Ask
	case !write && (isInet(v.pattern) || slices.ContainsFunc(readings, func(v value) bool { return isInet(v.pattern) }) || !v.known && strings.HasPrefix(v.pattern, "/inet")):
		return "awk may open a connection for a path below /inet", Ask
	}
	return "", Allow
}

// in reports whether a path is one of a list, or below one.
func (w *walker) in(p string, list []string) bool {
	return slices.ContainsFunc(w.homes(p), func(p string) bool {
		return slices.ContainsFunc(list, func(one string) bool { return isBelow(p, one) })
	})
}

// isSecret reports whether a path is where secrets are kept, as a repository's configuration with the URLs in it, or limpet's own.
func (w *walker) isSecret(v value) bool {
	p := w.normal(v)
	return isGitConfig(p) || w.in(p, secretFiles) || isSecretOfProcess(p) || goesUpInProc(v) || w.isFloor(v)
}

// isGitConfig reports whether a path is the configuration of a repository, or of a module or worktree of it, or may be by a pattern.
func isGitConfig(p string) bool {
	parts := strings.Split(p, "/")
	last := len(parts) - 1
	if !component(parts[last], "config") && !component(parts[last], "config.worktree") {
		return false
	}
	for i, part := range parts[:last] {
		if isGitDir(part) && (i+1 == last || component(parts[i+1], "modules") || component(parts[i+1], "worktrees")) {
			return true
		}
	}
	return false
}

func isGitDir(name string) bool { return strings.HasSuffix(name, ".git") || component(name, ".git") }

// goesUpInProc reports whether a path goes up below /proc, where links of the kernel lead anywhere.
func goesUpInProc(v value) bool {
	above, _, up := strings.Cut(v.pattern, "/..")
	parts := strings.Split(path.Clean(above), "/")
	return up && len(parts) > 1 && parts[0] == "" && component(parts[1], "proc")
}

// isSecretOfProcess reports whether a path may be a secret of a process or of one of its threads, or below one, or the memory of the system.
func isSecretOfProcess(p string) bool {
	parts := strings.Split(p, "/")
	switch {
	case len(parts) < 3 || parts[0] != "" || !component(parts[1], "proc"):
		return false
	case len(parts) == 3:
		return component(parts[2], "kcore")
	}
	if of := parts[2]; of != "self" && of != "thread-self" && strings.Trim(of, "abcdefghijklmnopqrstuvwxyz_-") == "" {
		return false // It is of the system, as /proc/sys.
	}
	names := parts[3:4]
	if len(parts) > 5 && component(parts[3], "task") {
		names = append(names[:1:1], parts[5])
	}
	return slices.ContainsFunc(secretOfProcess, func(secret string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return component(name, secret) })
	})
}

// secretNames are those that a pattern may find.
var secretNames = []string{".env", ".netrc", ".git-credentials", ".pgpass", "credentials", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"}

// isSecretName reports whether a file's name is one that secrets are kept under, wherever it is, or may be by a pattern.
func isSecretName(p string, pattern bool) bool {
	whole := base(p)
	name := strings.TrimRight(whole, hidden) // What is not known may be empty, and need not be.
	switch {
	case name == ".env", strings.HasPrefix(name, ".env."), name == "credentials", name == ".netrc", name == ".git-credentials", name == ".pgpass":
		return whole != ".env.example" && whole != ".env.sample" && whole != ".env.template"
	case strings.HasPrefix(name, "id_") && (strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_ed25519") || strings.HasPrefix(name, "id_ecdsa") || strings.HasPrefix(name, "id_dsa")):
		return !strings.HasSuffix(whole, ".pub")
	}
	ext := path.Ext(name)
	if pattern && strings.ContainsAny(name, "*?[") && !strings.ContainsAny(name[:1], "*?[") && slices.ContainsFunc(secretNames, func(one string) bool { return component(name, one) }) {
		return true // All files, and those whose names end so, are not meant to be secrets.
	}
	return ext != name && (ext == ".pem" || ext == ".p12" || ext == ".pfx" || ext == ".kdbx" || ext == ".keystore" || ext == ".key" && strings.Contains(p, "/"))
}

func ruleOfPath(v Verdict) string {
	if v == Deny {
		return ruleFloorOrPath
	}
	return ruleRead
}
