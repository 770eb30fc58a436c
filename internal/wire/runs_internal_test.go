package wire

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
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

// quick is a session whose commands print nothing, and end once they may.
type quick struct {
	session.Handle
	do func(script string) command.Result
}

func (quick) Name() string { return "s" }

func (q quick) Do(_ context.Context, req command.Request) (command.Result, error) {
	return q.do(req.Script), nil
}

// A command begins while it is noted that none runs, behind the one before. What is noted last is that it runs, where the one before has left the
// session.
func TestWhatIsNotedLastIsWhatRuns(t *testing.T) {
	var (
		b           *book
		s           quick
		mu          sync.Mutex
		script, dir string
	)
	noted := make(chan struct{}) // closed when the second one is
	b = newBook(func(of, behind string) {
		switch {
		case of == "second":
			close(noted)
		case behind == "/first":
			_, _, err := b.begin(s, request{ID: "second", Script: "second"}, "", func() {})
			assert.NoError(t, err)
			if b.noting.TryLock() { // Then it does not wait for this one.
				b.noting.Unlock()
				<-noted
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if script = of; behind != "" {
			dir = behind
		}
	}, func() Journal { return nil })
	began, end := make(chan struct{}), make(chan struct{})
	started := time.Now()
	s.do = func(script string) command.Result {
		if script == "first" {
			return command.Result{Dir: "/first", Started: started}
		}
		close(began)
		<-end
		return command.Result{Dir: "/second", Started: started.Add(1)}
	}
	first, _, err := b.begin(s, request{ID: "first", Script: "first"}, "", func() {})
	require.NoError(t, err)
	<-began
	reader := first.streams.join(-1, -1)
	for ended, news := false, (<-chan struct{})(nil); !ended; {
		if _, ended, news = first.streams.next(reader); !ended {
			<-news
		}
	}
	mu.Lock()
	assert.Equal(t, "second", script)
	assert.Equal(t, "/first", dir)
	mu.Unlock()
	close(end)
	b.close()
	assert.Empty(t, script)
	assert.Equal(t, "/second", dir)
	b.note(command.Result{Dir: "/late", Started: started}) // As if the goroutine of an earlier one had stood still until now.
	assert.Equal(t, "/second", dir)
}

// Commands that printed nothing keep no bytes for the readers that broke off. They are forgotten with their commands.
func TestCommandsThatPrintNothingAreForgottenWithTheirReaders(t *testing.T) {
	b := newBook(func(string, string) {}, func() Journal { return nil })
	left := make(chan struct{})
	s := quick{do: func(string) command.Result { <-left; return command.Result{} }}
	for i := range mostRuns + 4*leastRuns {
		r, _, err := b.begin(s, request{ID: strconv.Itoa(i), Away: int64(time.Hour)}, "", func() {})
		require.NoError(t, err)
		r.streams.leave(r.streams.join(0, 0), false)
		left <- struct{}{}
		<-r.over
	}
	b.close()
	assert.LessOrEqual(t, len(b.order), mostRuns+leastRuns)
	assert.LessOrEqual(t, len(b.behind.of), mostRuns+leastRuns)
	assert.GreaterOrEqual(t, len(b.behind.of), mostRuns, "their readers may come back")
	for _, r := range b.order {
		r.streams.mu.Lock()
		for _, reader := range r.streams.broken {
			reader.gone.Stop()
		}
		r.streams.mu.Unlock()
	}
}
