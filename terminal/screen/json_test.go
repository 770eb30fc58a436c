package screen_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/screen"
)

func TestAScreenComesBackFromJSON(t *testing.T) {
	for name, printed := range map[string]string{
		"nothing":   "",
		"styles":    "\x1b[1;31mred\x1b[m plain \x1b[38;2;1;2;3;48;5;200;4:3;58;5;9mmuch\x1b[m\r\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b[7m  \x1b[m",
		"wide":      "日本\x1b[31m語 e\u0301 👩\u200d👩\u200d👧 x\r\n\x1b[1;80H|",
		"alternate": "\x1b]2;a title\abehind\r\n\x1b[32mit\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1h\x1b[2;5Hhello\x1b[5 q",
		"wrap":      "\x1b[1;79Hab",
	} {
		e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
		_, err := e.Write([]byte(printed))
		require.NoError(t, err)
		s := e.Screen()
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back screen.Screen
		require.NoError(t, json.Unmarshal(b, &back), name)
		assert.Equal(t, s, &back, name)
		assert.Equal(t, string(s.ANSI()), string(back.ANSI()), name)
	}
}

func TestWhatIsNoScreenInJSONIsRefused(t *testing.T) {
	for _, text := range []string{
		`1`, `{}`, `{"cols":2,"rows":1}`, `{"cols":0,"rows":1,"styles":[{}],"lines":[[]]}`, `{"cols":5000,"rows":1,"styles":[{}],"lines":[[]]}`,
		`{"cols":2,"rows":1,"styles":[],"lines":[[]]}`, `{"cols":2,"rows":1,"styles":[{}],"lines":[[{"t":"a","s":1}]]}`,
		`{"cols":2,"rows":1,"styles":[{}],"lines":[[{"t":"abc"}]]}`, `{"cols":2,"rows":1,"styles":[{}],"lines":[[{"t":"日本","w":true}]]}`,
		`{"cols":1,"rows":1,"styles":[{}],"lines":[[]],"normal":{"cols":1,"rows":1,"styles":[{}],"lines":[[]]}}`,
	} {
		var s screen.Screen
		assert.Error(t, json.Unmarshal([]byte(text), &s), text)
	}
}
