package interrupt

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEveryLadderEndsWithSIGKILL(t *testing.T) {
	last := DefaultLadder[len(DefaultLadder)-1]
	intr, kill := Step{syscall.SIGINT, time.Second}, Step{syscall.SIGKILL, time.Minute}
	for _, test := range []struct {
		name    string
		l, want Ladder
	}{
		{"nil", nil, DefaultLadder},
		{"empty", Ladder{}, DefaultLadder},
		{"its own SIGKILL", Ladder{intr, kill}, Ladder{intr, kill}},
		{"none", Ladder{intr}, Ladder{intr, last}},
		{"SIGKILL in the middle", Ladder{kill, intr}, Ladder{kill, intr, last}},
	} {
		assert.Equal(t, test.want, test.l.steps(), test.name)
	}
	array := [2]Step{intr, {syscall.SIGHUP, 2}}
	Ladder(array[:1]).steps()
	assert.Equal(t, syscall.SIGHUP, array[1].Signal, "the caller's array is left alone")
}
