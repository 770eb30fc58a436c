package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/command"
)

func TestWhoWritesStdinIsMissedWhenNobodyReads(t *testing.T) {
	s := newStreams()
	missed := 0
	s.deserted = func() { missed++ }
	one, two := s.join(0, -1), s.join(0, 0)
	s.leave(one, true)
	assert.Zero(t, missed)
	s.leave(two, true)
	assert.Equal(t, 1, missed)
	three := s.join(-1, -1)
	s.end(command.Result{})
	s.leave(three, true)
	assert.Equal(t, 1, missed, "it has ended")
}

func TestATapeKeepsWhatIsReadSlowly(t *testing.T) {
	s := newStreams()
	w := writer{s, 0}
	slow := s.join(0, -1)
	piece := make([]byte, 64<<10)
	for range 400 { // 25 MiB
		_, _ = w.Write(piece) // It never fails.
	}
	frames, ended, _ := s.next(slow)
	assert.False(t, ended)
	assert.Len(t, frames, 1)
	assert.Positive(t, frames[0].missed)
	assert.GreaterOrEqual(t, s.of[0].end()-frames[0].offset, int64(mostKept))
	assert.Less(t, len(s.of[0].b), 2*mostKept)
	s.leave(slow, true)
	_, _ = w.Write(piece) // As above.
	assert.LessOrEqual(t, len(s.of[0].b), 2*leastKept)
	late := s.join(0, -1)
	frames, _, _ = s.next(late)
	assert.Equal(t, s.of[0].from, frames[0].offset)
	assert.Equal(t, frames[0].offset, frames[0].missed)
}
