package hosts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNoConnectionLastsLessThanNothing(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	tomorrow := now.Add(24 * time.Hour)
	assert.Equal(t, "for 0s, idle", row{Connected: &tomorrow}.connection(now))
}
