package terminal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Its disk hangs.
func TestARecordingThatDoesNotEndHoldsNobodyUp(t *testing.T) {
	r := &recording{printed: make(chan struct{}), done: make(chan struct{})}
	assert.EqualError(t, r.finish(time.Millisecond), "its end was not written within 1ms: the disk is slow, or does not answer")
	<-r.printed
}
