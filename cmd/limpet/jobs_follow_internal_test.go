package main

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// noPauses are pauses of no length: what is tested does not depend on a clock.
var noPauses = make([]time.Duration, 5)

func TestASilenceIsLookedAtUntilThereIsSomethingToSay(t *testing.T) {
	looks := make(chan struct{})
	left := 3
	s := newSilence(noPauses, func() bool {
		<-looks
		left--
		return left == 0
	})
	for range 3 {
		looks <- struct{}{}
	}
	s.again() // Something is printed, and a next question may follow it.
	looks <- struct{}{}
	close(looks)
	s.stop()
	assert.Negative(t, left)
}

func TestASilenceIsLookedAtSoManyTimesAndNoMore(t *testing.T) {
	looked := make(chan struct{}, 100)
	s := newSilence(noPauses, func() bool {
		looked <- struct{}{}
		return false
	})
	for range noPauses {
		<-looked
	}
	s.again()
	for range noPauses {
		<-looked
	}
	s.stop()
	assert.Empty(t, looked)
}

// What is printed comes at any moment, also while a look begins.
func TestASilenceMayEndAtAnyMoment(t *testing.T) {
	for range testenv.Repeats(20, 200, 2000) {
		s := newSilence(noPauses, func() bool { return false })
		var all sync.WaitGroup
		for range 3 {
			all.Go(s.again)
		}
		all.Wait()
		s.stop()
	}
}
