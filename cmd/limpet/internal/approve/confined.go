package approve

import (
	"path/filepath"
	"slices"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confine sets the options for scripts in a sandbox. Git may see other files there, and is not looked at.
func Confine(opts *approval.Options, policy sandbox.Policy) {
	c := approval.Confined{Refused: policy.Refuses, Env: policy.Environ}
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	opts.Git, opts.Contained, opts.Confined = nil, policy.Contains(), c
	opts.Directory = func(string) bool { return false } // It may be hidden there.
	opts.File = fileIn(policy, filepath.SplitList(opts.Path))
}

var slashes = lazyregexp.New("/+")

// fileIn is File in a sandbox whose shells begin with that PATH. A program asks that is where the sandbox may have a file of its own, at which nobody looks. What a
// directory of that PATH does not have on this machine counts as none: a new sandbox has it neither.
func fileIn(policy sandbox.Policy, path []string) func(path string) approval.File {
	return func(at string) approval.File {
		at = slashes().ReplaceAllString(at, "/")
		switch {
		case filepath.Clean(at) != at: // Behind a link, ".." leads elsewhere.
		case slices.Contains(path, filepath.Dir(at)) && File(at).Path == "":
			return approval.File{}
		case policy.Shows(at): // Behind the other, which costs less.
			return File(at)
		}
		return approval.File{Path: at, Why: "where the sandbox may have a file of its own"}
	}
}
