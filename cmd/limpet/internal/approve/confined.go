package approve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confined is what a policy prevents, for approval.Options, in a shell that begins with an environment; nil is the environment of limpet.
func Confined(policy sandbox.Policy, env []string) approval.Confined {
	var c approval.Confined
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	for _, name := range []string{"HOME", "PATH", "TMPDIR"} {
		if _, set := policy.Env.Set[name]; set || name == "TMPDIR" && slices.Contains(policy.Env.Pass, name) {
			return c // The shell has another one than approval.Options.
		}
	}
	if slices.ContainsFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "HOME=") && entry != "HOME="+os.Getenv("HOME")
	}) {
		return c
	}
	programs := realDirs(PathOf(env))
	c.Lost = func(path string) bool {
		return !slices.ContainsFunc(programs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }) && policy.Loses(path)
	}
	return c
}

// realDirs are the directories of a PATH as they are called behind symbolic links, in which a sandbox that can write there could put a program.
func realDirs(path string) (dirs []string) {
	for dir := range strings.SplitSeq(path, ":") {
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(dir) { // One that is not there has no other name.
			dirs = append(dirs, real)
		}
	}
	return dirs
}
