package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// pastLog is what a program has printed that has ended, up to the offset 120.
var pastLog = []byte("0123456789\r\n\x1b[31mred\x1b[m 日本語\r\n\x1b[?1049hthe other screen\x1b[2;3Hx")

const pastOffset = 100

// pastTerminal writes down a terminal that has ended, and returns its replay as it is sound.
func pastTerminal(t testing.TB, r *Registry) (*Terminal, replay) {
	t.Helper()
	info := Info{
		ID: "term-a-abc", Argv: []string{"x"}, Dir: "/", Size: Size{Cols: 40, Rows: 10}, State: Succeeded, Created: testTime, Ended: testTime.Add(time.Minute),
		Bytes: pastOffset + int64(len(pastLog)), Kept: pastOffset, Truncated: true, Owner: "gone", OwnerPID: 1 << 29,
	}
	require.NoError(t, r.writeJSON(info.ID, recordExt, info))
	require.NoError(t, statedir.Write(r.path(info.ID, logExt), pastLog))
	return r.past(info), replay{
		Offset: pastOffset, From: pastOffset + 12, Restore: []byte("\x1b[?25l"),
		History: timeline{
			Sizes: []sized{{Offset: 0, At: testTime, Size: Size{Cols: 20, Rows: 5}}, {Offset: pastOffset + 20, At: testTime.Add(time.Second), Size: Size{Cols: 40, Rows: 10}}},
			Times: []timed{{Offset: pastOffset - 5, At: testTime}, {Offset: pastOffset + 12, At: testTime.Add(time.Second)}, {Offset: pastOffset + 30, At: testTime.Add(2 * time.Second)}},
		},
	}
}

// warned opens a registry whose warnings are in the buffer.
func warned(t testing.TB) (*Registry, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	r, err := Open(filepath.Join(t.TempDir(), "terminals"), &Options{Logger: slog.New(slog.NewTextHandler(&said, nil)), KeepFor: 1 << 62})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, &said
}

// readAll reads a past terminal in all ways. Its raw output is there whatever happened.
func readAll(t *testing.T, term *Terminal, context any) {
	t.Helper()
	began := time.Now()
	c, err := term.Output(0, math.MaxInt)
	require.NoError(t, err, "%s", context)
	require.Equal(t, pastLog, c.Data, "%s", context)
	s, err := term.Screen()
	require.NoError(t, err, "%s", context)
	require.Len(t, s.Cells, s.Rows)
	require.Equal(t, c.Offset+int64(len(pastLog)), s.Offset, "%s", context)
	_, err = term.Scrollback()
	require.NoError(t, err, "%s", context)
	for _, from := range []int64{0, pastOffset, -10, c.Offset + 5} {
		text, err := term.Text(from, 100)
		require.NoError(t, err, "%s", context)
		require.True(t, utf8.ValidString(text.Text))
	}
	for _, fromStart := range []bool{false, true} {
		_, err := term.Record(testenv.Context(t), &bytes.Buffer{}, RecordOptions{FromStart: fromStart})
		require.NoError(t, err, "%s", context)
	}
	require.Less(t, time.Since(began), testenv.Patience, "it hangs: %s", context)
}

func TestADamagedReplayCostsNoMoreThanItSays(t *testing.T) {
	testenv.Slow(t)
	t.Parallel() // It computes, and starts nothing.
	r, said := warned(t)
	term, sound := pastTerminal(t, r)
	write := func(b []byte) { require.NoError(t, os.WriteFile(r.path(term.id, replayExt), b, 0o600)) }
	valid, err := json.Marshal(sound)
	require.NoError(t, err)
	write(valid)
	readAll(t, term, "")
	require.Empty(t, said.String(), "it is sound")

	rng := rand.New(rand.NewPCG(5, 6))
	numbers := []int64{0, 1, 12, 99, 100, 101, 112, 120, 170, 1000, -1, -100, 1 << 40, 1 << 62, math.MaxInt64, math.MinInt64, math.MaxInt64 - 10}
	times := []time.Time{{}, testTime, testTime.Add(time.Hour), testTime.Add(-time.Hour), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	some := func() int64 { return numbers[rng.IntN(len(numbers))] }
	at := func() time.Time { return times[rng.IntN(len(times))] }
	size := func() Size {
		if rng.IntN(100) == 0 {
			return Size{Cols: int(some()), Rows: int(some())} // Most of them are as large as one can be, which takes long.
		}
		return Size{Cols: rng.IntN(60) - 5, Rows: rng.IntN(30) - 5}
	}
	for i := range testenv.Repeats(400, 1200, 4000) {
		b := bytes.Clone(valid)
		switch i % 3 {
		case 0: // It is another one.
			damaged := replay{Offset: some(), From: some(), Restore: make([]byte, rng.IntN(3)*rng.IntN(2000))}
			for range rng.IntN(6) {
				damaged.History.Sizes = append(damaged.History.Sizes, sized{some(), at(), size()})
			}
			for range rng.IntN(6) {
				damaged.History.Times = append(damaged.History.Times, timed{some(), at()})
			}
			b, err = json.Marshal(damaged)
			require.NoError(t, err)
		case 1: // A number in it is.
			digits := func(c byte) bool { return c >= '0' && c <= '9' }
			from := rng.IntN(len(b))
			for !digits(b[from]) {
				from = (from + 1) % len(b)
			}
			to := from
			for to < len(b) && digits(b[to]) {
				to++
			}
			b = append(fmt.Append(bytes.Clone(b[:from]), some()), b[to:]...)
		default: // Some bytes are, or its end is missing.
			for range rng.IntN(4) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			b = b[:len(b)-rng.IntN(2)*rng.IntN(len(b))]
		}
		write(b)
		readAll(t, term, b)
	}
	require.NoError(t, os.Remove(r.path(term.id, replayExt)))
	readAll(t, term, "none")
	assert.Contains(t, said.String(), "damaged")
}

func TestWhatIsWrongInAReplayIsLeftOutAndSaid(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*replay)
		says   string
		want   func(*replay)
	}{
		"a negative offset": {
			func(p *replay) { p.Offset = -1 }, "cannot begin at -1",
			func(*replay) {}, // The record says the same.
		},
		"an offset that others overflow from": {
			func(p *replay) { p.Offset = math.MaxInt64 }, "cannot begin at 9223372036854775807",
			func(*replay) {},
		},
		"a beginning before the log": {
			func(p *replay) { p.From = pastOffset - 1 }, "the screen cannot begin at 99",
			func(p *replay) { p.From, p.Restore = pastOffset, nil },
		},
		"a beginning behind it": {
			func(p *replay) { p.From = 1000 }, "the screen cannot begin at 1000",
			func(p *replay) { p.From, p.Restore = pastOffset, nil },
		},
		"too much to restore": {
			func(p *replay) { p.Restore = make([]byte, mostRestore+1) }, "with 1025 bytes before it",
			func(p *replay) { p.From, p.Restore = pastOffset, nil },
		},
		"sizes out of order": {
			func(p *replay) { p.History.Sizes[0].Offset = 150 }, "1 of 2 sizes",
			func(p *replay) { p.History.Sizes[0].Offset = 150; p.History.Sizes = p.History.Sizes[:1] },
		},
		"sizes behind the end": {
			func(p *replay) { p.History.Sizes[0].Offset, p.History.Sizes[1].Offset = -1, 1000 }, "2 of 2 sizes",
			func(p *replay) { p.History.Sizes = []sized{{At: testTime, Size: Size{Cols: 40, Rows: 10}}} },
		},
		"times of another age": {
			func(p *replay) {
				p.History.Times[0].At, p.History.Sizes[0].At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0)
			}, "1 of 3 times",
			func(p *replay) { p.History.Times, p.History.Sizes[0].At = p.History.Times[1:], time.Time{} },
		},
		"too many times": {
			func(p *replay) {
				for range mostTimes {
					p.History.Times = append(p.History.Times, p.History.Times[2])
				}
			}, fmt.Sprintf("3 of %d times", mostTimes+3),
			func(p *replay) {
				last := p.History.Times[2]
				p.History.Times = nil
				for range mostTimes {
					p.History.Times = append(p.History.Times, last)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, said := warned(t)
			term, got := pastTerminal(t, r)
			_, want := pastTerminal(t, r)
			test.damage(&got)
			require.NoError(t, r.writeJSON(term.id, replayExt, got))
			readAll(t, term, name)
			assert.Contains(t, said.String(), test.says)
			assert.Contains(t, said.String(), term.id)
			wrong := got.mend(term.Info(), int64(len(pastLog)), 0)
			assert.Contains(t, strings.Join(wrong, "; "), test.says)
			test.want(&want)
			assert.Equal(t, want, got)
			assert.Empty(t, got.mend(term.Info(), int64(len(pastLog)), 0), "now it is sound")
		})
	}
}

func TestAReplayFitsToTheEndOfALogThatIsTooLong(t *testing.T) {
	r, _ := warned(t)
	term, p := pastTerminal(t, r)
	const skipped = 20
	wrong := p.mend(term.Info(), int64(len(pastLog))-skipped, skipped)
	assert.Equal(t, []string{"the log has 20 bytes more than are read"}, wrong)
	assert.EqualValues(t, pastOffset+skipped, p.Offset)
	assert.EqualValues(t, pastOffset+skipped, p.From, "what was before is not known")
	assert.Empty(t, p.Restore)
}

func TestNoLinkIsReadAsALog(t *testing.T) {
	r, _ := warned(t)
	term, p := pastTerminal(t, r)
	require.NoError(t, r.writeJSON(term.id, replayExt, p))
	log := r.path(term.id, logExt)
	require.NoError(t, os.Rename(log, log+"x"))
	require.NoError(t, os.Symlink(log+"x", log))
	_, err := term.Output(0, 10)
	require.ErrorContains(t, err, "symbolic link")
	_, err = term.Screen()
	require.Error(t, err)
}
