package asciicast_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
)

const head = `{"version":2,"width":80,"height":24}` + "\n"

func TestWhatOthersWriteIsRead(t *testing.T) {
	h, events, err := play(t, `{"version": 2, "width": 80, "height": 24, "timestamp": 1504467315.75, "idle_time_limit": 2.5, "theme": {"fg": "#d0d0d0"}, "env": {"SHELL": null}}`+"\r\n"+
		`[0, "o", "a\u20ac\ud83d\ude00"]`+"\n\n"+`[1e-1, "i", "b"]`+"\n"+`[ 2.0000004 , "x" , "0" ]`)
	require.NoError(t, err)
	assert.Equal(t, asciicast.Header{Cols: 80, Rows: 24, Started: time.Unix(1504467315, 0), Env: map[string]string{"SHELL": ""}}, h)
	assert.Equal(t, []asciicast.Event{
		{Code: asciicast.Output, Data: "a€😀"},
		{At: 100 * time.Millisecond, Code: asciicast.Input, Data: "b"},
		{At: 2 * time.Second, Code: "x", Data: "0"},
	}, events)
}

func TestErrorsNameTheLine(t *testing.T) {
	for recording, want := range map[string]string{
		"":                                   "asciicast: line 1: there is no header: unexpected EOF",
		"\n\n":                               "asciicast: line 3: there is no header: unexpected EOF",
		`{"version":2,"wid`:                  "asciicast: line 1: it is cut short: unexpected EOF",
		"hello\n":                            "asciicast: line 1: invalid character 'h' looking for beginning of value",
		"[]\n":                               "asciicast: line 1: json: cannot unmarshal array into Go value of type asciicast.header",
		`{"version":2}` + "\n":               "asciicast: line 1: the size is 0x0: width and height must be there, and above 0",
		`{"version":1,"stdout":[]}`:          `asciicast: line 1: version 1: only 2 is read; asciinema 3 has "convert -f asciicast-v2"`,
		`{"version":3,"width":"no"}`:         `asciicast: line 1: version 3: only 2 is read; asciinema 3 has "convert -f asciicast-v2"`,
		`{"width":1,"height":1}`:             `asciicast: line 1: version 0: only 2 is read; asciinema 3 has "convert -f asciicast-v2"`,
		head + `[0,"o","x"]` + "\n[0]":       "asciicast: line 3: an event has 3 fields, not 1: seconds, code and data",
		head + "\n" + `["0","o","x"]` + "\n": "asciicast: line 3: json: cannot unmarshal string into Go value of type float64",
		head + `[-1,"o","x"]`:                "asciicast: line 2: -1 seconds are no time of an event: it must be from 0 to 8589934592",
		head + `[1e300,"o","x"]`:             "asciicast: line 2: 1e+300 seconds are no time of an event: it must be from 0 to 8589934592",
		head + `[0,"o","x`:                   "asciicast: line 2: it is cut short: unexpected EOF",
		head + strings.Repeat(" ", 2<<20):    "asciicast: line 2: it has more than 1048576 bytes",
		`{"version":2,"width":1,"height":1,"timestamp":1e300}`: `asciicast: line 1: timestamp "1e300" is no time`,
	} {
		_, _, err := play(t, recording)
		assert.EqualError(t, err, want, "%.80q", recording)
		assert.Equal(t, strings.Contains(want, "unexpected EOF"), errors.Is(err, io.ErrUnexpectedEOF))
	}
}

func TestAReaderThatFailsIsNoEnd(t *testing.T) {
	broken := errors.New("broken")
	_, _, err := asciicast.Read(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	_, events, err := asciicast.Read(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)))
	require.NoError(t, err)
	for _, err := range events {
		assert.ErrorIs(t, err, broken)
	}
}

func TestASizeIsTwoNumbers(t *testing.T) {
	for _, data := range []string{"", "80", "80x", "x24", "0x24", "80x0", "80x24x3", "-1x5", "65536x1", " 80x24"} {
		_, _, err := asciicast.Event{Code: asciicast.Resize, Data: data}.Size()
		assert.ErrorContains(t, err, `it must be "r" with COLSxROWS`, "%q", data)
	}
	_, _, err := asciicast.Event{Code: asciicast.Output, Data: "80x24"}.Size()
	assert.Error(t, err)
}
