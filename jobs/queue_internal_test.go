package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// speaking is a registry whose events nobody takes, and a job in it that prints a line for each file that is made.
type speaking struct {
	t    *testing.T
	dir  string // of the registry
	said string // has the files
	r    *Registry
	id   string
}

func speak(t *testing.T) *speaking {
	t.Helper()
	s := &speaking{t: t, dir: filepath.Join(t.TempDir(), "jobs"), said: t.TempDir()}
	s.open()
	t.Cleanup(func() {
		_, _ = s.r.StopAll(testenv.Context(t), Filter{All: true}) // That it is closed says so below.
		require.NoError(t, s.r.Close())
	})
	job, err := s.r.Start(testenv.Context(t), Spec{
		Command: "for ((n = 1;; n++)); do until [[ -e $n ]]; do sleep 0.01; done; echo $n; done", Dir: s.said, Watch: []string{"."}, Lifetime: Detached,
	})
	require.NoError(t, err)
	s.id = job.ID
	return s
}

// open opens the registry, whose limits let each line be told.
func (s *speaking) open() {
	s.t.Helper()
	var err error
	s.r, err = Open(s.dir, &Options{Watch: WatchLimits{PerJob: 1, Burst: 1 << 30}})
	require.NoError(s.t, err)
}

// line has the job print the line n, and waits until it is in the queue.
func (s *speaking) line(n int) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.said, fmt.Sprint(n)), nil, 0o600))
	testenv.Await(s.t, fmt.Sprintf("the match of line %d", n), func() bool {
		s.r.queue.mu.Lock()
		defer s.r.queue.mu.Unlock()
		return len(s.r.queue.events) > 0 && s.r.queue.events[len(s.r.queue.events)-1].Line == fmt.Sprint(n)
	})
}

// overflow drops all that is in the queue.
func (s *speaking) overflow() {
	for range queueMax {
		s.r.queue.push(Event{Kind: BreakerReleased, Time: time.Now()}, nil)
	}
}

// lines takes the events, and returns the lines of the matches.
func (s *speaking) lines() (lines []string) {
	for _, e := range s.r.Drain() {
		if e.Kind == Matched {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// A match that was dropped is told by the count of those that were missed: the next owner does not find it, and those behind it, again.
func TestMatchesThatWereDroppedAreNotToldAgain(t *testing.T) {
	s := speak(t)
	s.line(1)
	s.line(2)
	s.overflow()
	require.Empty(t, s.lines(), "they were dropped, and that was told")
	s.line(3)
	require.Equal(t, []string{"3"}, s.lines())
	require.NoError(t, s.r.Close())
	s.open()
	s.line(4)
	assert.Equal(t, []string{"4"}, s.lines())
}

// Nothing is lost if nobody was told of it, and nothing is kept for each match that nobody takes.
func TestMatchesThatWereDroppedAreFoundAgainIfThatWasNotTold(t *testing.T) {
	testenv.Slow(t)
	s := speak(t)
	for n := range 4 {
		s.line(2*n + 1)
		s.line(2*n + 2)
		s.overflow()
	}
	j, err := s.r.find("get", s.id)
	require.NoError(t, err)
	j.mu.Lock()
	assert.Len(t, j.untold, 1)
	j.mu.Unlock()
	require.NoError(t, s.r.Close())
	s.open()
	s.line(9)
	assert.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, s.lines())
}
