package terminal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAProgramTakesItsTimeWhateverTheClockSays(t *testing.T) {
	start := time.Now()
	assert.Equal(t, time.Second, Info{Started: start, Ended: start.Add(-24 * time.Hour), Lasted: time.Second}.Elapsed())
	assert.Zero(t, Info{Started: start, Ended: start.Add(-24 * time.Hour)}.Elapsed(), "of an older limpet")
	assert.Zero(t, Info{Started: start.Add(24 * time.Hour)}.Elapsed(), "of an older limpet, that runs")
}
