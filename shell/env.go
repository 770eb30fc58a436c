package shell

import "github.com/limpet-sh/limpet/internal/environ"

// DefaultEnv returns the program's environment as a shell gets it by default:
// without variables that look like secrets (*_API_KEY, *_TOKEN, AWS_* and
// their like), without those by which bash would run code at its start
// (BASH_ENV, ENV, exported functions, SHELLOPTS, BASHOPTS), and with pagers,
// editors and terminal prompts switched off. Names in keep, which may be
// patterns as in path.Match, are passed on in any case.
//
// Append to it to add variables of your own; the last entry of a name wins.
func DefaultEnv(keep ...string) []string { return environ.Default(keep...) }
