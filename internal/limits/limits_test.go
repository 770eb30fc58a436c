package limits_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/interrupt"
)

func TestPickPrefersTheRequestsOwnLimit(t *testing.T) {
	for _, test := range []struct{ own, general, want time.Duration }{
		{0, 0, 0}, {0, 5, 5}, {3, 5, 3}, {-1, 5, 0}, {0, -1, 0},
	} {
		assert.Equal(t, test.want, limits.Pick(test.own, test.general), "%+v", test)
	}
}

func TestNextComesNoLaterThanALimit(t *testing.T) {
	now := time.Now()
	assert.Equal(t, time.Hour, limits.Limits{Started: now}.Next(time.Hour, 0))
	assert.LessOrEqual(t, limits.Limits{Started: now, Timeout: time.Minute}.Next(time.Hour, 0), time.Minute)
	assert.Equal(t, 20*time.Second, limits.Limits{Started: now, Idle: time.Minute}.Next(time.Hour, 40*time.Second))
	assert.Zero(t, limits.Limits{Started: now, Idle: time.Minute}.Next(time.Hour, time.Hour))
	assert.Zero(t, limits.Limits{Started: now.Add(-time.Hour), Timeout: time.Minute}.Next(time.Hour, 0))
}

func TestExceededSaysWhichLimitItWas(t *testing.T) {
	now := time.Now()
	assert.NoError(t, limits.Limits{Started: now.Add(-time.Hour)}.Exceeded(time.Hour))
	assert.NoError(t, limits.Limits{Started: now, Timeout: time.Hour, Idle: time.Hour}.Exceeded(time.Minute))
	assert.ErrorIs(t, limits.Limits{Started: now.Add(-time.Hour), Timeout: time.Minute}.Exceeded(0), interrupt.ErrTimeout)
	assert.ErrorIs(t, limits.Limits{Started: now, Idle: time.Minute}.Exceeded(time.Minute), interrupt.ErrIdle)
	both := limits.Limits{Started: now.Add(-time.Hour), Timeout: time.Minute, Idle: time.Minute}.Exceeded(time.Hour)
	assert.ErrorIs(t, both, interrupt.ErrTimeout, "the whole comes first")
	assert.NotErrorIs(t, both, interrupt.ErrIdle)
}
