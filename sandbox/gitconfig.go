package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hooksPath and include.path, in whatever section they are: a path too many does
// no harm (git-config(1)).
var configPath = regexp.MustCompile(`(?i)^\s*(?:\[[^\]]*\]\s*)?(hookspath|path)\s*=\s*(.*)$`)

// hooksAndIncludes lists files and directories of which git's configuration says that git
// runs, or reads as configuration, what is in them: that of the repository, if there is
// one, of the user and of the system. A directory of hooks that is relative is one of the
// workspace.
func (r repository) hooksAndIncludes() []string {
	c := configReader{top: r.top, seen: make(map[string]bool)}
	if r.dir != "" {
		c.read(filepath.Join(r.common, "config"), 0)
		c.read(filepath.Join(r.dir, "config.worktree"), 0)
	}
	for _, file := range userConfigs() {
		if there(file) {
			c.paths = append(c.paths, file) // It may be a symlink into the workspace.
			c.read(realPath(file), 0)
		}
	}
	return c.paths
}

// userConfigs are the files of git's configuration for all repositories (git-config(1),
// FILES and ENVIRONMENT).
func userConfigs() []string {
	var files []string
	if file, ok := os.LookupEnv("GIT_CONFIG_SYSTEM"); ok {
		files = append(files, file)
	} else {
		files = append(files, "/etc/gitconfig", "/usr/local/etc/gitconfig")
	}
	home, _ := os.UserHomeDir() // Empty: it has no files.
	if file, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		files = append(files, file)
	} else {
		if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
			files = append(files, filepath.Join(dir, "git/config"))
		} else if home != "" {
			files = append(files, filepath.Join(home, ".config/git/config"))
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return !filepath.IsAbs(file) || hasNUL(file) })
}

// configReader reads files of git's configuration, and what they include.
type configReader struct {
	top   string // of the workspace's repository
	paths []string
	seen  map[string]bool
}

// deepestInclude is where git gives up (config.c, MAX_INCLUDE_DEPTH).
const deepestInclude = 10

func (c *configReader) read(file string, depth int) {
	if c.seen[file] || depth > deepestInclude {
		return
	}
	c.seen[file] = true
	for _, line := range configLines(file) {
		m := configPath.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		value, _, _ := strings.Cut(m[2], " #")
		value, _, _ = strings.Cut(value, " ;")
		value = strings.ReplaceAll(strings.Trim(strings.TrimSpace(value), `"`), `\\`, `\`)
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				continue // Git gives up on it too.
			}
			value = filepath.Join(home, rest)
		}
		isHooks := strings.EqualFold(m[1], "hookspath")
		switch {
		case value == "" || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%") || hasNUL(value):
			continue // Of another user, or where git is installed: not in the workspace.
		case filepath.IsAbs(value):
			value = filepath.Clean(value)
		case isHooks: // From where hooks are run.
			value = filepath.Join(c.top, value)
		default:
			value = filepath.Join(filepath.Dir(file), value)
		}
		c.paths = append(c.paths, value)
		if !isHooks {
			c.read(realPath(value), depth+1) // Whatever the condition is: a path too many does no harm.
		}
	}
}

func configLines(path string) []string {
	const most = 1 << 20
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close() // Read only.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	var lines []string
	for s := bufio.NewScanner(io.LimitReader(f, most)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
