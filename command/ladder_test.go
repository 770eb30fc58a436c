package command_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

func TestEveryLadderEndsWithSIGKILL(t *testing.T) {
	whole := command.Ladder(nil).Steps()
	last := whole[len(whole)-1]
	intr, kill := command.Step{syscall.SIGINT, time.Second}, command.Step{syscall.SIGKILL, time.Minute}
	for _, test := range []struct {
		name    string
		l, want command.Ladder
	}{
		{"nil", nil, whole},
		{"empty", command.Ladder{}, whole},
		{"its own SIGKILL", command.Ladder{intr, kill}, command.Ladder{intr, kill}},
		{"none", command.Ladder{intr}, command.Ladder{intr, last}},
		{"SIGKILL in the middle", command.Ladder{kill, intr}, command.Ladder{kill, intr, last}},
	} {
		assert.Equal(t, test.want, test.l.Steps(), test.name)
	}
	array := [2]command.Step{intr, {syscall.SIGHUP, 2}}
	command.Ladder(array[:1]).Steps()
	assert.Equal(t, syscall.SIGHUP, array[1].Signal, "the caller's array is left alone")
}

func TestALadderThatCannotBeClimbedIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		l    command.Ladder
		step int // -1: it is fine
	}{
		{"nil", nil, -1},
		{"one", command.Ladder{{Signal: syscall.SIGHUP}}, -1},
		{"the last signal", command.Ladder{{Signal: 64, Grace: 1}}, -1},
		{"the zero value", command.Ladder{{}}, 0},
		{"behind one that is fine", command.Ladder{{Signal: syscall.SIGINT}, {Signal: 65}}, 1},
		{"SIGSTOP", command.Ladder{{Signal: syscall.SIGSTOP, Grace: 1}}, 0},
		{"a negative grace", command.Ladder{{Signal: syscall.SIGINT, Grace: -1}}, 0},
	} {
		err := command.Request{Script: "true", Ladder: test.l}.Validate()
		if test.step < 0 {
			assert.NoError(t, err, test.name)
			continue
		}
		var ladder *command.LadderError
		require.ErrorAs(t, err, &ladder, test.name)
		assert.Equal(t, test.step, ladder.Step, test.name)
		assert.NotEmpty(t, ladder.Reason)
	}
}
