package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// put writes to the ring as the reader of a terminal does.
func put(r *ring, b []byte) {
	for len(b) > 0 {
		n := copy(r.room(), b)
		r.commit(n, &screen.Modes{})
		b = b[n:]
	}
}

// A ring is compared with all that was ever written to it.
func TestARingKeepsTheLastBytesByTheirOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 300<<10).Draw(t, "limit")
		r := newRing(limit)
		var all []byte
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			n := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 100<<10)).Draw(t, "n")
			fresh := make([]byte, n)
			for i := range fresh {
				fresh[i] = byte(len(all) + i)
				if (len(all)+i)%61 == 0 {
					fresh[i] = '\n'
				}
			}
			put(r, fresh)
			all = append(all, fresh...)

			start, end, lines := r.counts()
			require.EqualValues(t, len(all), end)
			require.EqualValues(t, bytes.Count(all, newline), lines)
			require.GreaterOrEqual(t, end-start, min(limit, end), "too little is kept")
			require.LessOrEqual(t, end-start, limit+wholeBlock, "too much is kept")

			offset := rapid.Int64Range(0, end).Draw(t, "offset")
			at, data, changed := r.read(offset)
			require.Equal(t, max(offset, start), at)
			require.Equal(t, offset == end, changed != nil)
			require.Equal(t, offset < end, len(data) > 0)
			require.True(t, bytes.Equal(all[at:at+int64(len(data))], data))

			most := rapid.Int64Range(0, end+10).Draw(t, "tail")
			at, data = r.tail(most)
			require.Equal(t, max(end-most, start), at)
			require.True(t, bytes.Equal(all[at:], data))
		}
	})
}

// While one writes as fast as it can, viewers see everything once and in order, or are told
// what they have missed.
func TestViewersSeeEachByteOnceOrAreToldWhatTheyMissed(t *testing.T) {
	const total, viewers = 4 << 20, 40
	for _, limit := range []int64{64 << 10, 1 << 20, total} {
		r := newRing(limit)
		ctx := testenv.Context(t)
		var all sync.WaitGroup
		for i := range viewers {
			from := int64(i) * 1000
			if i == 0 {
				from = 0
			}
			v := &Viewer{out: r, next: from, done: make(chan struct{})}
			all.Go(func() {
				next := from
				missed, seen := int64(0), int64(0)
				for {
					c, err := v.Next(ctx)
					if errors.Is(err, io.EOF) {
						break
					}
					if !assert.NoError(t, err) {
						return
					}
					if !assert.Equal(t, next+c.Missed, c.Offset, "a gap that was not told, or something twice") {
						return
					}
					for j, b := range c.Data {
						if b != value(c.Offset+int64(j)) {
							assert.Failf(t, "wrong", "at %d", c.Offset+int64(j))
							return
						}
					}
					next = c.Offset + int64(len(c.Data))
					missed += c.Missed
					seen += int64(len(c.Data))
				}
				assert.EqualValues(t, total, next)
				assert.EqualValues(t, total-from, missed+seen)
				if limit == total {
					assert.Zero(t, missed)
				}
			})
		}
		random := rand.New(rand.NewPCG(1, 2))
		buf := make([]byte, 8<<10)
		for offset := int64(0); offset < total; {
			n := min(int64(random.IntN(len(buf))+1), total-offset)
			for i := range n {
				buf[i] = value(offset + i)
			}
			put(r, buf[:n])
			offset += n
		}
		r.finish()
		all.Wait()
	}
}

var testTime = time.Unix(1_700_000_000, 0)

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// value is the byte at an offset: no two parts of the output look alike by chance.
func value(offset int64) byte { return byte(uint64(offset) * 0x9E3779B97F4A7C15 >> 56) }

func TestAViewerEndsWithItsContextAndItsClose(t *testing.T) {
	r := newRing(100)
	v := &Viewer{out: r, done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	given := errors.New("given up")
	cancel(given)
	_, err := v.Next(ctx)
	require.ErrorIs(t, err, given)
	put(r, []byte("abc"))
	_, err = v.Next(ctx)
	require.ErrorIs(t, err, given, "also while there is output")
	c, err := v.Next(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "abc", string(c.Data))
	ended := make(chan error)
	go func() {
		_, err := v.Next(context.Background())
		ended <- err
	}()
	require.NoError(t, v.Close())
	require.NoError(t, v.Close())
	require.ErrorIs(t, <-ended, ErrClosed)
	_, err = v.Next(context.Background())
	require.ErrorIs(t, err, ErrClosed)
}

func TestAHistoryKnowsTheSizeAndTheTimeAtEachOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		began := testTime
		h := newHistory(began, Size{Cols: 1, Rows: 1})
		sizes, times := map[int64]Size{0: {Cols: 1, Rows: 1}}, map[int64]int64{}
		offset, at, last := int64(0), began, began.Add(-together)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "resize") {
				s := Size{Cols: i + 2, Rows: 1}
				h.resized(offset, at, s)
				sizes[offset] = s
				continue
			}
			at = at.Add(ms(rapid.SampledFrom([]int64{0, 1, 10}).Draw(t, "pause")))
			h.printed(offset, at)
			if at.Sub(last) >= together {
				times[offset] = at.UnixNano()
				last = at
			}
			offset += rapid.Int64Range(1, 5).Draw(t, "n")
		}
		for o := range offset + 2 {
			want, since := Size{}, int64(0)
			for from := int64(0); from <= o; from++ {
				if s, ok := sizes[from]; ok {
					want = s
				}
				if s, ok := times[from]; ok {
					since = s
				}
			}
			size, next := h.size(o)
			require.Equal(t, want, size, "at %d of %+v", o, h.timeline)
			require.True(t, next == -1 || next > o, "%d at %d", next, o)
			when, later := h.at(o)
			if since == 0 {
				continue
			}
			require.Equal(t, since, when.UnixNano(), "at %d of %+v", o, h.timeline)
			require.True(t, later == -1 || later > o)
		}
	})
}

func TestAHistoryIsBounded(t *testing.T) {
	testenv.Slow(t)
	h := newHistory(testTime, DefaultSize)
	for i := range 10 * mostTimes {
		h.printed(int64(i), testTime.Add(ms(int64(10*i))))
		h.resized(int64(i), testTime, Size{Cols: i%100 + 1, Rows: 1})
	}
	assert.LessOrEqual(t, len(h.Times), mostTimes)
	assert.LessOrEqual(t, len(h.Sizes), mostSizes)
	when, _ := h.at(5 * mostTimes)
	assert.InDelta(t, 50*mostTimes, when.Sub(testTime).Milliseconds(), 2*mostTimes)
	size, _ := h.size(10 * mostTimes)
	assert.Equal(t, (10*mostTimes-1)%100+1, size.Cols)
	assert.NotZero(t, len(h.since(5*mostTimes).Times))
}
