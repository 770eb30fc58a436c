package wire

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

func TestWhoWritesStdinIsMissedWhenNobodyReads(t *testing.T) {
	s := newStreams(waitedFor, new(behind))
	missed := 0
	s.deserted = func() { missed++ }
	one, two := s.join(0, -1), s.join(0, 0)
	s.leave(one, true)
	assert.Zero(t, missed)
	s.leave(two, true)
	assert.Equal(t, 1, missed)
	three := s.join(-1, -1)
	s.end(command.Result{})
	s.leave(three, true)
	assert.Equal(t, 1, missed, "it has ended")
}

// A command outlives a broken connection for as long as its client may come back.
func TestAReaderIsWaitedForAsLongAsItMayBeAway(t *testing.T) {
	s := newStreams(time.Hour, new(behind))
	missed := make(chan struct{})
	s.deserted = func() { close(missed) }
	one := s.join(0, -1)
	s.leave(one, false)
	s.mu.Lock()
	assert.Contains(t, s.readers, one)
	s.mu.Unlock()
	s = newStreams(time.Millisecond, new(behind))
	s.deserted = func() { close(missed) }
	s.leave(s.join(0, -1), false)
	<-missed
}

// A client that breaks off and comes back again and again costs no more than a few readers.
func TestReadersThatBreakOffAreBounded(t *testing.T) {
	s := newStreams(time.Hour, new(behind))
	missed := 0
	s.deserted = func() { missed++ }
	for range 10 * mostAway {
		s.leave(s.join(0, 0), false)
	}
	assert.Len(t, s.readers, mostAway)
	assert.Len(t, s.broken, mostAway)
	assert.Zero(t, missed, "the others are waited for")
	s.leave(s.join(0, 0), true)
	assert.Len(t, s.readers, mostAway)
}

// What commands have printed is kept for readers that broke off, as far as it is not too much for all of them together: whether
// they broke off before the end or behind it.
func TestWhatIsKeptForReadersThatBrokeOffIsBounded(t *testing.T) {
	for name, early := range map[string]bool{"before the end": true, "behind the end": false} {
		t.Run(name, func(t *testing.T) {
			var all behind
			var each []*streams
			var readers []*reader
			for range mostBehind/mostKept + 3 {
				s := newStreams(time.Hour, &all)
				each = append(each, s)
				r := s.join(0, -1)
				readers = append(readers, r)
				_, _ = writer{s, 0}.Write(make([]byte, mostKept-mostChunk)) // It never fails.
				if early {
					s.leave(r, false)
				}
			}
			reading := each[0].join(0, -1)
			for _, s := range each {
				s.end(command.Result{})
			}
			if !early {
				for i, s := range each {
					s.leave(readers[i], false)
				}
			}
			assert.LessOrEqual(t, all.size, int64(mostBehind))
			assert.Positive(t, each[len(each)-1].kept(), "the latest is kept")
			assert.Zero(t, each[1].kept(), "the oldest is not")
			frames, _, _ := each[0].next(reading)
			assert.Len(t, frames, 1, "unless somebody reads it")
			for i, s := range each {
				s.leave(readers[i], true)
			}
			assert.Equal(t, each[0].kept(), all.size)
			each[0].leave(reading, true)
			assert.Zero(t, all.size)
			assert.Empty(t, all.of)
		})
	}
}

// The bound is one for all commands of a book.
func TestTheCommandsOfABookAreCountedTogether(t *testing.T) {
	b := newBook(func(string, string) {}, func() Journal { return nil })
	for i := range 2 {
		began := make(chan struct{})
		r, _, err := b.begin(quick{do: func(string) command.Result { <-began; return command.Result{} }}, request{ID: strconv.Itoa(i), Script: "x"}, "", func() {})
		require.NoError(t, err)
		reader := r.streams.join(0, -1)
		_, _ = writer{r.streams, 0}.Write(make([]byte, mostChunk)) // It never fails.
		r.streams.leave(reader, false)
		close(began)
	}
	b.close() // It waits for what is behind the end of a command.
	assert.EqualValues(t, 2*mostChunk, b.behind.size)
}

func TestATapeKeepsWhatIsReadSlowly(t *testing.T) {
	s := newStreams(waitedFor, new(behind))
	w := writer{s, 0}
	slow := s.join(0, -1)
	piece := make([]byte, 64<<10)
	for range 400 { // 25 MiB
		_, _ = w.Write(piece) // It never fails.
	}
	frames, ended, _ := s.next(slow)
	assert.False(t, ended)
	assert.Len(t, frames, 1)
	assert.Positive(t, frames[0].missed)
	assert.GreaterOrEqual(t, s.of[0].end()-frames[0].offset, int64(mostKept))
	assert.Less(t, s.of[0].size, int64(mostKept+mostChunk))
	s.leave(slow, true)
	_, _ = w.Write(piece) // As above.
	assert.LessOrEqual(t, s.of[0].size, int64(leastKept+mostChunk))
	late := s.join(0, -1)
	frames, _, _ = s.next(late)
	assert.Equal(t, s.of[0].from, frames[0].offset)
	assert.Equal(t, frames[0].offset, frames[0].missed)
}

// Readers at different places get every byte that was written, in frames of a bounded size that cut no rune, also while more is written.
func TestATapeIsReadAsItWasWritten(t *testing.T) {
	s := newStreams(waitedFor, new(behind))
	w := writer{s, 0}
	first, second := s.join(0, -1), s.join(0, -1)
	var wrote, eager, lazy []byte
	read := func(r *reader, all *[]byte) bool {
		frames, _, _ := s.next(r)
		for _, f := range frames {
			assert.Zero(t, f.missed)
			assert.EqualValues(t, len(*all), f.offset)
			assert.LessOrEqual(t, len(f.data), mostChunk)
			assert.True(t, utf8.Valid(f.data), "no rune is cut")
			*all = append(*all, f.data...)
		}
		return len(frames) > 0
	}
	random := rand.New(rand.NewPCG(1, 2))
	for len(wrote) < 4<<20 { // Less than is kept.
		p := []byte(strings.Repeat("a\u00e9\u20ac\U0001f600", 1+random.IntN(1<<random.IntN(16))))
		n, err := w.Write(p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
		wrote = append(wrote, p...)
		clear(p) // It is the caller's.
		read(first, &eager)
		if random.IntN(8) == 0 {
			read(second, &lazy)
		}
	}
	for read(first, &eager) || read(second, &lazy) {
	}
	assert.True(t, bytes.Equal(wrote, eager))
	assert.True(t, bytes.Equal(wrote, lazy))
	late := s.join(int64(len(wrote))-10, -1)
	frames, _, _ := s.next(late)
	require.Len(t, frames, 1)
	assert.Equal(t, wrote[len(wrote)-10:], frames[0].data, "from the middle of a block")
}
