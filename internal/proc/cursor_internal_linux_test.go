package proc

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that forks another one and ends, between that the last pid was read and that the process is looked at, would
// hide the other.
func TestSinceSeesWhatWasForkedWhileItLooked(t *testing.T) {
	const before, first, second = 10, 11, 12
	alive := map[int]Stat{first: {PID: first}}
	last := first
	read := func(pid int) (Stat, error) {
		if pid == first {
			delete(alive, first)
			alive[second], last = Stat{PID: second}, second
		}
		st, ok := alive[pid]
		if !ok {
			return Stat{}, errors.New("no such process")
		}
		return st, nil
	}
	found, now, err := since(before, func() (int, error) { return last, nil }, read, Snapshot)
	require.NoError(t, err)
	assert.Equal(t, []Stat{{PID: second}}, found)
	assert.Equal(t, second, now)
}

// Where others fork without end it is over, too.
func TestSinceEndsWhateverIsForked(t *testing.T) {
	last := 0
	next := func() (int, error) { last++; return last, nil }
	gone := func(int) (Stat, error) { return Stat{}, errors.New("no such process") }
	found, now, err := since(0, next, gone, Snapshot)
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Equal(t, sinceMost, now)
}
