package screen_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/screen"
)

func TestAScreenComesBackFromJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"text", " ", "漢字", "e\u0301", "👩‍👩‍👧", "\r\n", "\x1b[31m", "\x1b[1;4;38;2;1;2;3m", "\x1b[m", "\x1b[48;5;9m", "\x1b[5;7H", "\x1b[K", "\x1b[2J",
		"\x1b]8;;http://x\x1b\\", "\x1b]8;;\x1b\\", "\x1b]2;title\a", "\x1b[?1049h", "\x1b[?25l", "\x1b[2;5r", "\t", strings.Repeat("w", 25), "\x1b[3D", "\x1b[4:3m\x1b[58:5:9m",
	}
	for range 2000 {
		e := screen.New(screen.Size{Cols: 1 + rng.IntN(25), Rows: 1 + rng.IntN(8)}, nil)
		for range rng.IntN(40) {
			_, _ = e.Write([]byte(pieces[rng.IntN(len(pieces))]))
		}
		want := e.Screen()
		b, err := json.Marshal(want)
		require.NoError(t, err)
		var got screen.Screen
		require.NoError(t, json.Unmarshal(b, &got), "%s", b)
		require.Equal(t, want, &got, "%s", b)
		require.Equal(t, string(want.ANSI()), string(got.ANSI()))
	}
}

func TestAScreenIsShortInJSON(t *testing.T) {
	e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
	for i := range 23 {
		_, _ = fmt.Fprintf(e, "\x1b[%dmline %2d\x1b[m %s\r\n", 31+i%6, i, strings.Repeat("word ", 10))
	}
	s := e.Screen()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Less(t, len(b), 3*len(s.Text()))
	empty, err := json.Marshal(screen.New(screen.Size{Cols: 80, Rows: 24}, nil).Screen())
	require.NoError(t, err)
	assert.Less(t, len(empty), 300)
}

func TestWhatIsNoScreenIsAnError(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"cols":2,"rows":1,"styles":[{}],"lines":[]}`, `{"cols":2,"rows":1,"styles":[],"lines":[[]]}`,
		`{"cols":2,"rows":1,"styles":[{}],"lines":[[{"t":"abc"}]]}`, `{"cols":2,"rows":1,"styles":[{}],"lines":[[{"t":"a","s":1}]]}`,
		`{"cols":100000,"rows":1,"styles":[{}],"lines":[[]]}`, `{"cols":2,"rows":1,"styles":[{"fg":"x"}],"lines":[[]]}`, `[]`,
	} {
		var s screen.Screen
		assert.ErrorContains(t, json.Unmarshal([]byte(text), &s), "screen: ", text)
	}
}
