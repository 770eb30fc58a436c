package script

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Quote quotes s as one bash word. NUL bytes are the one thing that bash
// cannot carry; [command.Request.Validate] keeps them out.
func Quote(s string) string {
	for _, c := range []byte(s) {
		if c >= utf8.RuneSelf {
			// syntax.Quote would write \u3000 for a wide space and its like,
			// which bash understands in a UTF-8 locale alone.
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		// The only errors left are for NUL, which has been refused, and
		// for languages other than bash.
		panic("ipc: " + err.Error())
	}
	return q
}
