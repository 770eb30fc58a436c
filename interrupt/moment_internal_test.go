package interrupt

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAShellIsSignalledAtAGoodMoment(t *testing.T) {
	for _, test := range []struct {
		name string
		s    sight
		good bool
	}{
		{"nothing is known", sight{}, false},
		{"gone", sight{gone: true}, true},
		{"stopped by somebody else", sight{stood: true}, true},
		{"it waits for a child", sight{awaits: true, waits: true, asleep: true}, true},
		{"it has forked and does not wait yet", sight{awaits: true}, false},
		{"it waits for a child that has ended", sight{ended: true, waits: true, asleep: true}, false},
		{"no child, once", sight{childless: 1}, false},
		{"no child, again and again", sight{childless: alone}, true},
		{"the same with a trap: a child may be under way", sight{childless: alone, traps: true}, false},
		{"the same with a trap, in a wait for a job", sight{childless: alone, traps: true, waits: true, asleep: true}, true},
		{"much processor time, with a trap", sight{childless: alone, traps: true, ran: computes + 1}, true},
		{"just enough to start a program", sight{ran: computes}, false},
		{"the open of a fifo, once", sight{elsewhere: 1, asleep: true}, false},
		{"the open of a fifo, again and again", sight{elsewhere: alone, asleep: true, traps: true}, true},
		{"late", sight{late: true}, true},
	} {
		assert.Equal(t, test.good, test.s.isGood(), test.name)
	}
}

func TestEachMomentIsGoodForAReasonOfItsOwn(t *testing.T) {
	for _, s := range []sight{
		{gone: true}, {stood: true}, {awaits: true, waits: true}, {childless: alone, asleep: true, waits: true, traps: true},
		{childless: alone}, {ran: computes + 1}, {elsewhere: alone}, {late: true},
	} {
		var reasons []string
		for _, moment := range goodMoments {
			if moment.is(s) {
				reasons = append(reasons, moment.why)
			}
		}
		assert.Len(t, reasons, 1, "%+v", s)
	}
}

func TestLooksAreCountedInARow(t *testing.T) {
	var s sight
	looks := []struct {
		awaits, ended, waits, asleep bool
		childless, elsewhere         int
	}{
		{childless: 1},
		{childless: 2},
		{waits: true, childless: 2}, // It has just reaped a child.
		{asleep: true, childless: 3, elsewhere: 1},
		{asleep: true, childless: 4, elsewhere: 2},
		{asleep: true, waits: true, childless: 5},
		{awaits: true},
		{asleep: true, childless: 1, elsewhere: 1},
		{ended: true},
	}
	for i, look := range looks {
		s.awaits, s.ended, s.waits, s.asleep = look.awaits, look.ended, look.waits, look.asleep
		s.count()
		assert.Equal(t, look.childless, s.childless, "look %d", i)
		assert.Equal(t, look.elsewhere, s.elsewhere, "look %d", i)
	}
}
