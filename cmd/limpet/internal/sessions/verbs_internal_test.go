package sessions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

func TestNoClockOfAnotherMachineIsNeeded(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		r := row{State: "idle", Used: now.Add(off), since: 3 * time.Second}
		assert.Equal(t, "used 3s ago", r.doing(now, ""))
	}
	assert.Equal(t, "used 4s ago", row{State: "idle", Used: now.Add(-4 * time.Second)}.doing(now, ""), "an older limpet does not say it")
}

func TestAForkIsSaidToBeOne(t *testing.T) {
	now := time.Now()
	fork := func(alive bool, info *session.Info) row {
		record := keeper.Record{ID: "two", Session: "one", Name: "try", Version: "v1", Spec: keeper.Spec{ForkedFrom: &keeper.Parent{ID: "zero", Name: "build"}}}
		if !alive {
			record.End = &keeper.End{Why: "was closed", At: now}
		}
		return rowOf(keeper.Listed{Record: record, Alive: alive, Info: info})
	}
	for want, r := range map[string]row{
		"make; forked from build":                                      fork(true, &session.Info{Running: "make"}),
		"forked from build":                                            fork(true, &session.Info{State: session.Unused}),
		"was closed, 0s ago; forked from build":                        fork(false, nil),
		"its keeper does not answer: limpet session close --force try": fork(true, nil), // The command stays one that can be copied.
	} {
		assert.Equal(t, want, r.does(now, "v1", ""))
		assert.Equal(t, "one", r.ID, "that of the session, and not of its keeper")
	}
	assert.Equal(t, "its keeper does not answer: limpet session close --force --on 'exec:ssh x' try", fork(true, nil).does(now, "v1", "exec:ssh x"))
	assert.Equal(t, "forked from build; kept by limpet v1", fork(true, &session.Info{}).does(now, "v2", ""))
	lie := rowOf(keeper.Listed{Record: keeper.Record{Spec: keeper.Spec{ForkedFrom: &keeper.Parent{ID: "x", Name: "a\x1b[2J"}}}, Alive: true, Info: &session.Info{}})
	assert.Nil(t, lie.ForkedFrom)
	assert.Empty(t, lie.does(now, "", ""))
}
