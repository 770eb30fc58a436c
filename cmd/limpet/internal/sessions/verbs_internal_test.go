package sessions

import (
	"maps"
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

func TestInfoHasARowForWhatThereIs(t *testing.T) {
	bare := func() keeper.Listed {
		return keeper.Listed{
			Alive: true, Info: &session.Info{State: session.Idle, Dir: "/usr", Commands: 3},
			Record: keeper.Record{ID: "one", Name: "build", PID: 7, Version: "v1", Created: time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)},
		}
	}
	always := map[string]string{
		"name": "build", "state": "idle", "dir": "/usr", "commands": "3", "jobs": "0", "terminals": "0", "created": "2026-11-29 12:00:00", "keeper": "pid 7",
	}
	for _, row := range []struct {
		has  func(*keeper.Listed)
		line [2]string
	}{
		{has: func(*keeper.Listed) {}},
		{func(l *keeper.Listed) { l.Info.Running = "make" }, [2]string{"running", "make"}},
		{func(l *keeper.Listed) { l.Info.Holder = "limpet repl" }, [2]string{"for", "limpet repl"}},
		{func(l *keeper.Listed) { l.Info.Checkpoints = []string{"a", "b"} }, [2]string{"checkpoints", "a b"}},
		{func(l *keeper.Listed) { l.Record.Spec.ForkedFrom = &keeper.Parent{ID: "zero", Name: "old"} }, [2]string{"forked from", "old"}},
		{func(l *keeper.Listed) { l.Record.Within = "/system.slice/ci.service" }, [2]string{"ends with", "ci.service"}},
		{func(l *keeper.Listed) { l.Record.Version = "v0" }, [2]string{"version", "v0; limpet session upgrade --on ssh://far build has it kept by v1"}},
	} {
		one, want := bare(), maps.Clone(always)
		row.has(&one)
		if row.line[0] != "" {
			want[row.line[0]] = row.line[1]
		}
		got := make(map[string]string)
		for _, line := range infoLines(one, "v1", "ssh://far") {
			got[line[0]] = line[1]
		}
		assert.Equal(t, want, got)
	}
}
