package asciicast_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
)

func TestTheLengthIsTheTimeOfTheLastEvent(t *testing.T) {
	event := func(at int, data string) string { return fmt.Sprintf(`[%d.5,"o",%q]`+"\n", at, data) }
	many := strings.Repeat(event(1, strings.Repeat("x", 1000)), 1000)
	long := strings.Repeat("x", 1<<20-100)
	for name, row := range map[string]struct {
		recording string
		want      time.Duration
	}{
		"a header alone":                  {head, 0},
		"nothing":                         {"", 0},
		"one event":                       {head + event(3, "x"), 3500 * time.Millisecond},
		"no line break at its end":        {head + strings.TrimSpace(event(3, "x")), 3500 * time.Millisecond},
		"empty lines at its end":          {head + event(3, "x") + "\n \n\n", 3500 * time.Millisecond},
		"a line that is cut short":        {head + event(3, "x") + `[4.5,"o","y`, 3500 * time.Millisecond},
		"a cut number":                    {head + event(3, "x") + `[4`, 3500 * time.Millisecond},
		"a broken line":                   {head + event(3, "x") + "[]\nbroken\n", 3500 * time.Millisecond},
		"many events":                     {head + many + event(7, "x"), 7500 * time.Millisecond},
		"a long line":                     {head + many + event(7, long), 7500 * time.Millisecond},
		"a long line before half of one":  {head + many + event(7, long) + event(8, long)[:1<<20-200], 7500 * time.Millisecond},
		"an event behind many that broke": {head + event(7, "x") + strings.Repeat("broken\n", 20000), 7500 * time.Millisecond},
	} {
		got, err := asciicast.Length(strings.NewReader(row.recording), int64(len(row.recording)))
		require.NoError(t, err, name)
		assert.Equal(t, row.want, got, name)
	}

	shrunk, err := asciicast.Length(strings.NewReader(head+event(3, "x")), 1<<16)
	require.NoError(t, err, "it may have shrunk meanwhile")
	assert.Equal(t, 3500*time.Millisecond, shrunk)

	endless := head + event(1, "x") + strings.Repeat("x", 3<<20)
	_, err = asciicast.Length(strings.NewReader(endless), int64(len(endless)))
	assert.ErrorContains(t, err, "there is no event in the last 2097154 bytes")
}
