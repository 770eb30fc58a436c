package sandbox

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hooksAndIncludes lists the directories of hooks and the included files that git's
// configuration names: the configuration of the repository, if there is one, of the
// environment, of the user and of the system. A relative directory of hooks is one of the
// workspace.
func (r repository) hooksAndIncludes() ([]string, error) {
	c := configReader{top: r.top, seen: make(map[string]bool)}
	if r.dir != "" {
		c.read(filepath.Join(r.common, "config"), 0)
		c.read(filepath.Join(r.dir, "config.worktree"), 0)
	}
	for _, v := range environmentValues() {
		c.take(v, "", 0)
	}
	for _, file := range userConfigs() {
		c.paths = append(c.paths, file) // It may be a symlink into the workspace, or be made.
		c.read(file, 0)
	}
	return c.paths, c.err
}

// environmentValues are those of git's configuration that have a variable each
// (git-config(1), GIT_CONFIG_COUNT).
func environmentValues() (values []gitValue) {
	count, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT")) // 0: git gives up on what is no number.
	for i := range count {
		key, ok := os.LookupEnv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i))
		if !ok {
			break // Git gives up on it too.
		}
		name := key[strings.LastIndexByte(key, '.')+1:]
		values = append(values, gitValue{strings.ToLower(name), os.Getenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))})
	}
	return values
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
	err   error // the first one
}

// deepestInclude is where git gives up (config.c, MAX_INCLUDE_DEPTH).
const deepestInclude = 10

func (c *configReader) read(file string, depth int) {
	if c.seen[file] || depth > deepestInclude || c.err != nil {
		return
	}
	c.seen[file] = true
	values, err := gitValues(realPath(file))
	if err != nil {
		c.err = err
		return
	}
	for _, v := range values {
		c.take(v, file, depth)
	}
}

// take notes what a value names, if it is hooksPath or include.path, in whatever section
// they are: a path too many does no harm. File is empty if the value is not one of a file.
func (c *configReader) take(v gitValue, file string, depth int) {
	isHooks := v.name == "hookspath"
	if !isHooks && v.name != "path" {
		return
	}
	path, ok := fromHome(v.text)
	switch {
	case !ok || path == "" || strings.HasPrefix(path, "%") || hasNUL(path):
		return // Such as where git is installed: not in the workspace.
	case filepath.IsAbs(path):
		path = filepath.Clean(path)
	case isHooks: // From where hooks are run.
		path = filepath.Join(c.top, path)
	case file == "":
		return // Git gives up on it.
	default:
		path = filepath.Join(filepath.Dir(file), path)
	}
	c.paths = append(c.paths, path)
	if !isHooks {
		c.read(path, depth+1) // Whatever the condition is: a path too many does no harm.
	}
}

// fromHome replaces a ~ or ~user at the start by the home directory. It is not ok if that
// user has no home directory: git fails there too.
func fromHome(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path, true
	}
	name, rest, _ := strings.Cut(rest, "/")
	if name == "" {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err == nil
	}
	who, err := user.Lookup(name)
	if err != nil {
		return "", false
	}
	return filepath.Join(who.HomeDir, rest), true
}
