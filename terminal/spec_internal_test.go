package terminal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnIDSaysWhatRuns(t *testing.T) {
	for _, test := range []struct {
		argv []string
		line string
		want string
	}{
		{[]string{"/usr/bin/psql", "orders"}, "", "psql"},
		{nil, `PS1="> " exec bash --norc`, "bash"},
		{nil, "ssh host", "ssh"},
		{[]string{"Ünicode Prog"}, "", "nicode-prog"},
		{[]string{"日本"}, "", "none"},
		{nil, "", "none"},
		{[]string{"a-very-long-name-of-a-program"}, "", "a-very-long-name-of"},
	} {
		id := newID(test.argv, test.line)
		assert.Regexp(t, `^term-`+test.want+`-[a-z2-7]{8}$`, id)
		assert.True(t, ValidID(id), id)
	}
}
