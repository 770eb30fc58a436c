package page

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The clock that timers go by stands still while the machine sleeps. By the one on the wall a share ends all the same.
func TestAShareEndsByTheClockOnTheWallToo(t *testing.T) {
	h := &Handler{}
	s := &share{h: h, session: which{"build", "k1"}, expires: time.Now().Add(-time.Second).Round(0)}
	s.life, s.end = context.WithCancel(t.Context())
	h.shares = []*share{s}
	assert.False(t, rights{share: s}.allow(seeList, "", ""), "before anything has noticed it")
	assert.True(t, rights{share: s}.isOver())
	_, _, err := rights{share: s}.during(t.Context())
	assert.ErrorIs(t, err, errOver)
	s.keep()
	assert.Error(t, s.life.Err(), "what is open by it ends")
	assert.Empty(t, h.shares)
}

// What is not named in needOf is the owner's alone, and the zero value of rights allows nothing.
func TestRightsFailClosed(t *testing.T) {
	s := &share{session: which{"build", "k1"}, typing: true, expires: time.Now().Add(time.Hour), life: t.Context()}
	assert.Zero(t, beOwner)
	for n := beOwner; n <= stopJob+1; n++ {
		assert.False(t, rights{}.allow(n, "build", ""), n)
		assert.Equal(t, n > beOwner && n <= stopJob, rights{share: s}.allow(n, "build", ""), n)
	}
}
