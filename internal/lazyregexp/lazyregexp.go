// Package lazyregexp compiles regular expressions when they are first used. Those of all packages together would cost each start
// of limpet milliseconds, and most starts use none of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles an expression once, as [regexp.MustCompile] does, and returns it. It is safe for several
// goroutines. A test should use each expression: one that is wrong panics when it is first used, and not at the start.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
