package wire

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Commands take turns on a few goroutines. None is left out, also not one that is asked for just before the end.
func TestEveryCommandRunsBeforeABookIsClosed(t *testing.T) {
	for range 100 {
		b := newBook(nil, nil)
		var ran, asked atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 10 {
					b.mu.Lock()
					if !b.closed {
						asked.Add(1)
						b.start(func() { ran.Add(1) })
					}
					b.mu.Unlock()
				}
			})
		}
		b.close()
		all.Wait()
		assert.Equal(t, asked.Load(), ran.Load())
	}
}
