package asciicast_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
)

// record returns what the calls have written.
func record(t testing.TB, h asciicast.Header, calls func(w *asciicast.Writer)) string {
	t.Helper()
	var file bytes.Buffer
	w, err := asciicast.NewWriter(&file, h)
	require.NoError(t, err)
	calls(w)
	require.NoError(t, w.Close())
	return file.String()
}

// play returns all events of a recording, and the error that ended them.
func play(t testing.TB, recording string) (h asciicast.Header, events []asciicast.Event, err error) {
	t.Helper()
	h, all, err := asciicast.Read(strings.NewReader(recording))
	if err != nil {
		return h, nil, err
	}
	for e, err := range all {
		if err != nil {
			return h, events, err
		}
		events = append(events, e)
	}
	return h, events, nil
}

func TestARecordingIsLinesOfJSON(t *testing.T) {
	h := asciicast.Header{
		Cols: 100, Rows: 30, Started: time.Unix(1504467315, 0), Title: "a <title>", Command: "bash -i", Env: map[string]string{"TERM": "xterm-256color"},
	}
	got := record(t, h, func(w *asciicast.Writer) {
		require.NoError(t, w.Output(248848*time.Microsecond, []byte("\x1b[1;31mHello \"€\"\r\n")))
		require.NoError(t, w.Resize(1500*time.Millisecond, 80, 24))
		require.NoError(t, w.Marker(2*time.Second, ""))
		require.NoError(t, w.Output(time.Hour+time.Nanosecond, []byte("<&>\x00\x7f")))
	})
	want := `{"version":2,"width":100,"height":30,"timestamp":1504467315,"command":"bash -i","title":"a <title>","env":{"TERM":"xterm-256color"}}
[0.248848,"o","\u001b[1;31mHello \"€\"\r\n"]
[1.500000,"r","80x24"]
[2.000000,"m",""]
[3600.000000,"o","<&>\u0000` + "\x7f" + `"]
`
	assert.Equal(t, want, got)

	read, events, err := play(t, got)
	require.NoError(t, err)
	assert.Equal(t, h, read)
	assert.Equal(t, []asciicast.Event{
		{At: 248848 * time.Microsecond, Code: asciicast.Output, Data: "\x1b[1;31mHello \"€\"\r\n"},
		{At: 1500 * time.Millisecond, Code: asciicast.Resize, Data: "80x24"},
		{At: 2 * time.Second, Code: asciicast.Marker},
		{At: time.Hour, Code: asciicast.Output, Data: "<&>\x00\x7f"},
	}, events)
	cols, rows, err := events[1].Size()
	require.NoError(t, err)
	assert.Equal(t, [2]uint16{80, 24}, [2]uint16{cols, rows})
}

func TestTheZeroHeaderIsThatOfAPlainTerminal(t *testing.T) {
	got := record(t, asciicast.Header{}, func(*asciicast.Writer) {})
	assert.Equal(t, `{"version":2,"width":80,"height":24}`+"\n", got)
}

func TestACutRuneWaitsForItsRest(t *testing.T) {
	got := record(t, asciicast.Header{}, func(w *asciicast.Writer) {
		require.NoError(t, w.Output(1*time.Second, []byte("a\xe2")))
		require.NoError(t, w.Output(2*time.Second, []byte("\x82")))
		require.NoError(t, w.Resize(3*time.Second, 1, 2))
		require.NoError(t, w.Output(4*time.Second, []byte("\xacb\xff\xe2\x82c\xf0")))
	})
	_, events, err := play(t, got)
	require.NoError(t, err)
	assert.Equal(t, []asciicast.Event{
		{At: 1 * time.Second, Code: asciicast.Output, Data: "a"},
		{At: 3 * time.Second, Code: asciicast.Resize, Data: "1x2"},
		{At: 4 * time.Second, Code: asciicast.Output, Data: "€b\ufffd\ufffd\ufffdc"},
		{At: 4 * time.Second, Code: asciicast.Output, Data: "\ufffd"},
	}, events)
}

func TestTimesNeverGoBack(t *testing.T) {
	_, events, err := play(t, record(t, asciicast.Header{}, func(w *asciicast.Writer) {
		for _, at := range []time.Duration{-time.Second, 2 * time.Second, time.Second, 2*time.Second + 999} {
			require.NoError(t, w.Marker(at, ""))
		}
	}))
	require.NoError(t, err)
	var at []time.Duration
	for _, e := range events {
		at = append(at, e.At)
	}
	assert.Equal(t, []time.Duration{0, 2 * time.Second, 2 * time.Second, 2 * time.Second}, at)
}

// atOnce fails when a Write is not one whole line.
type atOnce struct {
	t      *testing.T
	writes int
	bytes.Buffer
}

func (w *atOnce) Write(p []byte) (int, error) {
	w.writes++
	assert.Equal(w.t, len(p)-1, bytes.IndexByte(p, '\n'))
	return w.Buffer.Write(p)
}

func TestEachWriteIsAWholeLine(t *testing.T) {
	file := &atOnce{t: t}
	w, err := asciicast.NewWriter(file, asciicast.Header{})
	require.NoError(t, err)
	long := strings.Repeat("\n€", 100_000)
	require.NoError(t, w.Output(0, []byte(long)))
	assert.Greater(t, file.writes, 2, "a long output has several lines")
	_, events, err := play(t, file.String())
	require.NoError(t, err)
	var all strings.Builder
	for _, e := range events {
		all.WriteString(e.Data)
	}
	assert.Equal(t, long, all.String())
}

func TestTheWorstOutputFitsIntoALine(t *testing.T) {
	for _, b := range []byte{0, 0xff} {
		_, events, err := play(t, record(t, asciicast.Header{}, func(w *asciicast.Writer) {
			require.NoError(t, w.Output(0, bytes.Repeat([]byte{b}, 200_000)))
			require.NoError(t, w.Marker(0, strings.Repeat("\x00", 64<<10)))
		}))
		require.NoError(t, err)
		assert.Greater(t, len(events), 2)
	}
}

func TestWhatCouldNotBePlayedIsRefused(t *testing.T) {
	var file bytes.Buffer
	_, err := asciicast.NewWriter(&file, asciicast.Header{Command: strings.Repeat("x", 2<<20)})
	assert.ErrorContains(t, err, "shorten Command, Title or Env")
	assert.Zero(t, file.Len())
	record(t, asciicast.Header{}, func(w *asciicast.Writer) {
		assert.EqualError(t, w.Resize(0, 0, 24), "asciicast: a terminal of 0x24 cannot be played: leave it out")
		assert.ErrorContains(t, w.Marker(0, strings.Repeat("x", 1<<20)), "shorten it")
	})
}

var errFull = errors.New("disk full")

// full takes some bytes.
type full struct {
	left int
	got  bytes.Buffer
}

func (w *full) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.got.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestNothingIsWrittenBehindHalfALine(t *testing.T) {
	_, err := asciicast.NewWriter(&full{}, asciicast.Header{})
	require.ErrorIs(t, err, errFull)

	file := &full{left: 70}
	w, err := asciicast.NewWriter(file, asciicast.Header{})
	require.NoError(t, err)
	require.NoError(t, w.Output(0, []byte("fits\xe2")))
	require.ErrorIs(t, w.Output(0, []byte("does not fit")), errFull)
	file.left = 1000
	assert.ErrorIs(t, w.Output(0, nil), errFull)
	assert.ErrorIs(t, w.Resize(0, 1, 1), errFull)
	assert.ErrorIs(t, w.Marker(0, ""), errFull)
	assert.ErrorIs(t, w.Close(), errFull)
	assert.ErrorIs(t, w.Close(), errFull)

	_, events, err := play(t, file.got.String())
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, []asciicast.Event{{Code: asciicast.Output, Data: "fits"}}, events)
}

func TestAClosedWriterSaysSo(t *testing.T) {
	var file bytes.Buffer
	w, err := asciicast.NewWriter(&file, asciicast.Header{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	n := file.Len()
	assert.ErrorIs(t, w.Output(0, []byte("late")), os.ErrClosed)
	assert.ErrorIs(t, w.Resize(0, 1, 1), os.ErrClosed)
	assert.ErrorIs(t, w.Marker(0, ""), os.ErrClosed)
	assert.Equal(t, n, file.Len())
}

func TestAllMayWriteAtOnce(t *testing.T) {
	const each = 50
	_, events, err := play(t, record(t, asciicast.Header{}, func(w *asciicast.Writer) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range each {
					assert.NoError(t, w.Output(time.Duration(i), []byte("x")))
					assert.NoError(t, w.Resize(time.Duration(i), 1, 1))
				}
			})
		}
		all.Wait()
	}))
	require.NoError(t, err)
	assert.Len(t, events, 4*2*each)
}
