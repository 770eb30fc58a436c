package asciicast_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
)

// What is read back is the output with U+FFFD for each byte that is no UTF-8,
// wherever the calls have cut it.
func FuzzOutputIsReadBack(f *testing.F) {
	f.Add([]byte("plain\r\n"), []byte{3, 1})
	f.Add([]byte("a€b\xff\xe2\x82c\xf0\x9f\x98\x80\xf0"), []byte{1, 1, 1, 1, 1, 2, 1, 1})
	f.Add([]byte("\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80"), []byte{2, 0, 3})
	f.Add([]byte("\"\\\u2028</script>\x00\x7f\x1b[31m"), []byte{})
	f.Fuzz(func(t *testing.T, output, cuts []byte) {
		var at time.Duration
		recording := record(t, asciicast.Header{}, func(w *asciicast.Writer) {
			rest := output
			for i, cut := range cuts {
				n := min(int(cut), len(rest))
				at += time.Duration(cut) * time.Millisecond
				require.NoError(t, w.Output(at, rest[:n]))
				rest = rest[n:]
				if i%3 == 1 {
					require.NoError(t, w.Marker(at, "between"))
				}
			}
			require.NoError(t, w.Output(at, rest))
		})
		_, events, err := play(t, recording)
		require.NoError(t, err)
		var got strings.Builder
		var last time.Duration
		for _, e := range events {
			require.GreaterOrEqual(t, e.At, last)
			last = e.At
			if e.Code == asciicast.Output {
				require.NotEmpty(t, e.Data)
				got.WriteString(e.Data)
			}
		}
		require.Equal(t, string([]rune(string(output))), got.String())
		require.LessOrEqual(t, last, at)
	})
}

// Nothing that is read panics, and what is read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + `[0.5,"o","x"]` + "\n" + `[1,"r","80x24"]` + "\n"))
	f.Add([]byte(`{"version":3}`))
	f.Add([]byte(head + `[0,"m","\ud800"]` + "\n[1e9"))
	f.Fuzz(func(t *testing.T, recording []byte) {
		h, events, err := asciicast.Read(bytes.NewReader(recording))
		if err != nil {
			return
		}
		again := record(t, h, func(w *asciicast.Writer) {
			for e, err := range events {
				if err != nil {
					break
				}
				if cols, rows, err := e.Size(); err == nil {
					require.NoError(t, w.Resize(e.At, cols, rows))
				}
				if e.Code == asciicast.Output {
					require.NoError(t, w.Output(e.At, []byte(e.Data)))
				}
			}
		})
		got, _, err := play(t, again)
		require.NoError(t, err)
		require.Equal(t, h.Cols, got.Cols)
		require.True(t, h.Started.Equal(got.Started))
	})
}
