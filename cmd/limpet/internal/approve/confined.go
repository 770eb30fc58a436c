package approve

import (
	"path/filepath"
	"regexp"
	"slices"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confine sets the options for scripts in a sandbox. Git may see other files there, and is not looked at.
func Confine(opts *approval.Options, policy sandbox.Policy) {
	c := approval.Confined{Refused: policy.Refuses, Env: policy.Environ}
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	opts.Git, opts.Contained, opts.Confined = nil, policy.Contains(), c
	opts.File = fileIn(policy, filepath.SplitList(opts.Path))
}

var slashes = regexp.MustCompile("/+")

// fileIn is File in a sandbox whose shells begin with that PATH. Where the sandbox may have a file of its own, nobody looks: a program there asks. In a directory of
// that PATH, as one below the home, a new sandbox has nothing: it counts as none.
func fileIn(policy sandbox.Policy, path []string) func(path string) approval.File {
	return func(at string) approval.File {
		at = slashes.ReplaceAllString(at, "/")
		switch {
		case filepath.Clean(at) != at: // Behind a link, ".." leads elsewhere.
		case policy.Shows(at):
			return File(at)
		case slices.Contains(path, filepath.Dir(at)) && File(at).Path == "":
			return approval.File{}
		}
		return approval.File{Path: at, Why: "where the sandbox may have a file of its own"}
	}
}
