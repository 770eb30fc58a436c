package shell

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCommandNamesAreThoseThatBashWouldRun(t *testing.T) {
	for script, want := range map[string][]string{
		`a; b | c && (d) || { e; }`:           {"a", "b", "d", "c", "e"},
		`x=1 a; if b; then c; fi; $(d) >f`:    nil,
		`\a; 'a b'; "c"; a\b; tr'a'"p" : INT`: {"a", "a b", "c", "ab", "trap"},
		`builtin command a; command -v b`:     {"builtin", "command", "a", "command", "-v"},
		`"$x/bin/go" test; ./a "$b"`:          {"/bin/go", "./a"},
		`$x a`:                                nil,
		`"$x" a`:                              nil,
		`tr$x a`:                              nil,
		`$x/a`:                                nil,
		`$'\x74rap'`:                          nil,
		`{trap,:} INT`:                        nil,
		`if`:                                  nil,
	} {
		names, ok := commandNames(script)
		assert.Equal(t, want != nil, ok, script)
		if ok {
			assert.ElementsMatch(t, want, names, script)
		}
	}
}
