package proc

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestThoseWhoAskAtTheSameMomentShareWhatIsReadAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		hold := make(chan struct{})
		s := newSharer(func() (int64, error) {
			n := readings.Add(1)
			<-hold
			return n, nil
		})
		var asked sync.WaitGroup
		var got [11]int64
		ask := func(i int) { asked.Go(func() { got[i], _ = s.get() }) }
		ask(0)
		synctest.Wait() // The first reading is under way.
		for i := 1; i < len(got); i++ {
			ask(i)
		}
		synctest.Wait()
		assert.EqualValues(t, 1, readings.Load())
		close(hold)
		asked.Wait()
		assert.EqualValues(t, 1, got[0])
		for _, n := range got[1:] {
			assert.EqualValues(t, 2, n, "neither one that began before it asked, nor one of its own")
		}
	})
}

func TestWhoAsksLaterGetsWhatIsReadLater(t *testing.T) {
	n := 0
	s := newSharer(func() (int, error) { n++; return n, nil })
	for want := 1; want <= 3; want++ {
		got, err := s.get()
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
