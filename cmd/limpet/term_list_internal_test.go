package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// What a program waits for is a word of limpet's, but for that which comes of another machine.
func TestWhatWaitsOnAnotherMachineMovesNoCursor(t *testing.T) {
	const clear = "\x1b[2J"
	assert.Equal(t, "running, waits: ?[2J", termState(terminal.Info{State: terminal.Running, Waits: &terminal.Waiting{For: clear}}))
	assert.Equal(t, "running, waits: ?[2J", stateCell(jobs.Job{State: jobs.Running, Waits: &jobs.Waiting{For: clear}}))
}
