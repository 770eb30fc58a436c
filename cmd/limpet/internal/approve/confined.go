package approve

import (
	"path/filepath"
	"slices"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confine has options be for scripts in a sandbox. Git may see other files there, and is not looked at.
func Confine(opts *approval.Options, policy sandbox.Policy) {
	c := approval.Confined{Refused: policy.Refuses, Env: policy.Sets()}
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	opts.Git, opts.Contained, opts.Confined = nil, policy.Contains(), c
	opts.File = fileIn(policy, filepath.SplitList(opts.Path))
}

// fileIn is File in a sandbox whose shells begin with that PATH. What the sandbox has at a path of its own, as in its private home, is not looked at: in a directory
// of that PATH it is taken for what this machine has there, and elsewhere for a program that anybody may have put there.
func fileIn(policy sandbox.Policy, path []string) func(path string) approval.File {
	return func(at string) approval.File {
		if slices.Contains(path, filepath.Dir(at)) || policy.Shows(filepath.Clean(at)) {
			return File(at)
		}
		return approval.File{Path: at, Why: "where the sandbox may have a file of its own"}
	}
}
