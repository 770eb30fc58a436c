package screen_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/picture"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// parsed reads a screen of three columns, and a part of its JSON.
func parsed(part string) (*screen.Screen, error) {
	var s screen.Screen
	return &s, json.Unmarshal([]byte(`{"cols":3,"rows":1,"styles":[{}],"lines":[[]],`+part+`}`), &s)
}

func TestWhatAScreenCannotHaveIsAnError(t *testing.T) {
	for part, says := range map[string]string{
		`"styles":[{"underline":6}]`:                              "underline 6",
		`"cursor":{"shape":3}`:                                    "shape 3",
		`"modes":{"mouse":5}`:                                     "mouse mode 5",
		`"modes":{"modify_keys":3}`:                               "modify keys",
		`"modes":{"cursor_shape":3}`:                              "shape 3",
		`"modes":{"top":2}`:                                       "rows 2 to 0",
		`"modes":{"bottom":2}`:                                    "rows 0 to 2",
		`"modes":{"top":1,"bottom":1}`:                            "rows 1 to 1",
		`"pen":1`:                                                 "style 1",
		`"pen":-1`:                                                "style -1",
		`"lines":[[{"t":"a","s":-1}]]`:                            "line 0",
		`"lines":[[{"t":"日日","w":true}]]`:                         "longer than 3",
		`"lines":[[{"t":"","one":true},{"t":"abc"}]]`:             "longer than 3",
		`"normal":{"cols":3,"rows":1,"styles":[{}],"lines":[[]]}`: "only an alternate screen",
		`"alternate":true,"normal":{}`:                            "the normal one",
		`"alternate":true,"normal":{"cols":1,"rows":1,"styles":[{}],"lines":[[]]}`:                              "of the same size",
		`"alternate":true,"normal":{"cols":3,"rows":1,"alternate":true,"styles":[{}],"lines":[[]],"normal":{}}`: "only an alternate screen",
	} {
		_, err := parsed(part)
		require.ErrorContains(t, err, "screen: ", part)
		assert.ErrorContains(t, err, says, part)
	}
	_, err := parsed(`"normal":null`)
	require.NoError(t, err)
	_, err = parsed(`"modes":{"mouse":4,"modify_keys":2,"cursor_shape":2,"top":1,"bottom":0}`)
	require.NoError(t, err)
}

func TestACellHasOneCharacterOfItsWidth(t *testing.T) {
	for _, test := range []struct{ runs, want string }{
		{`{"t":"\u001b]52;c;aGk=\u0007","one":true}`, "]"},
		{`{"t":"\u001b\u009b\u202e"}`, "   "},
		{`{"t":"","one":true}`, " "},
		{`{"t":"","one":true,"w":true}`, " "},
		{`{"t":"ab","one":true}`, "a"},
		{`{"t":"日"}`, "\uFFFD"},
		{`{"t":"a","w":true}`, "\uFFFD"},
		{`{"t":"日日","one":true,"w":true}`, "日"},
		{`{"t":"e\u0301","one":true}`, "e\u0301"},
		{`{"t":"👩\u200d👧","one":true,"w":true}`, "👩\u200d👧"},
		{`{"t":"👩\u200da","one":true,"w":true}`, "👩\u200d"},
		{`{"t":"👍🏽","one":true,"w":true}`, "👍🏽"},
		{`{"t":"a` + strings.Repeat(`\u0301`, 1000) + `","one":true}`, "a" + strings.Repeat("\u0301", 15)},
	} {
		s, err := parsed(`"lines":[[` + test.runs + `]]`)
		require.NoError(t, err, test.runs)
		got := ""
		for _, c := range s.Cells[0] {
			got += c.Text
		}
		assert.Equal(t, test.want, got[:len(test.want)], test.runs)
		assert.Empty(t, strings.TrimLeft(got[len(test.want):], " "), test.runs)
		checkCells(t, s)
	}
	s, err := parsed(`"title":"a\u001b\u0007\u202eb","styles":[{"link":"http://x\u001b\\"}],"lines":[[{"t":"a"}]]`)
	require.NoError(t, err)
	assert.Equal(t, "ab", s.Title)
	assert.Equal(t, `http://x\`, s.Cells[0][0].Style.Link)
}

// A screen is parsed before it is known to make sense. If each level copied what is in it, that
// would be some gigabytes.
func TestScreensBehindScreensAreNotLookedAt(t *testing.T) {
	const deep = 9000
	text := strings.Repeat(`{"cols":1,"rows":1,"styles":[{}],"alternate":true,"lines":[[]],"normal":`, deep) + "{}" + strings.Repeat("}", deep)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var s screen.Screen
	require.Error(t, json.Unmarshal([]byte(text), &s))
	runtime.ReadMemStats(&after)
	const copies = 100
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(copies*len(text)))
}

func TestModesHaveNamesAsTheOtherFieldsHave(t *testing.T) {
	s := painted(t, "\x1b[?1;1003;1006;2004;25;7h\x1b[2;3r\x1b)0\x1b[?25l", screen.Size{Cols: 2, Rows: 4})
	b, err := json.Marshal(s.Modes)
	require.NoError(t, err)
	assert.JSONEq(t, `{"app_cursor":true,"mouse":4,"mouse_sgr":true,"bracketed_paste":true,"top":2,"bottom":3,"line_drawing":[false,true],"cursor_hidden":true}`, string(b))
	b, err = json.Marshal(screen.Modes{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(b))
}

// Who makes a Screen by hand gets no more out of it.
func TestAScreenMadeByHandIsPaintedWithoutItsControls(t *testing.T) {
	s := painted(t, "abc", screen.Size{Cols: 3, Rows: 1})
	s.Cells[0][0].Text = "\x1b]52;c;aGk=\a"
	s.Cells[0][1].Text = "\u009b31m"
	s.Cells[0][2].Text = "x\u0301"
	s.Cells[0][2].Style.Underline = 99
	s.Modes.Mouse, s.Modes.Origin, s.Modes.Top = 200, true, 9
	drawn(t, s)
	assert.Contains(t, string(s.ANSI()), "x\u0301")
}

// drawn shows a screen in all ways that there are.
func drawn(t *testing.T, s *screen.Screen) {
	t.Helper()
	ansi := string(s.ANSI())
	assert.NotContains(t, ansi, "\x1b]52")
	left := ansi
	for _, known := range []string{"\x1b[", "\x1b]8;;", "\x1b]2;", "\x1b\\", "\x1b>", "\x1b=", "\x1b(", "\x1b)", "\x0f", "\x0e"} {
		left = strings.ReplaceAll(left, known, "")
	}
	assert.Equal(t, -1, strings.IndexFunc(left, unicode.IsControl), "%q", left)
	var scanner screen.Scanner
	scanner.Scan([]byte(ansi), func(q screen.Query) { t.Errorf("it asks: %v", q) })
	assert.True(t, scanner.Ground())
	_ = s.Text()
	_ = s.Modes.Restore()
	require.NoError(t, picture.SVG(io.Discard, s))
	if s.Cols*s.Rows <= 200 {
		require.NoError(t, picture.PNG(io.Discard, s))
	}
}

func checkParsed(t *testing.T, text []byte) (ok bool) {
	t.Helper()
	start := time.Now()
	var s screen.Screen
	if json.Unmarshal(text, &s) != nil {
		return false
	}
	checkCells(t, &s)
	drawn(t, &s)
	b, err := json.Marshal(&s)
	require.NoError(t, err)
	var again screen.Screen
	require.NoError(t, json.Unmarshal(b, &again), "%s", b)
	assert.Equal(t, &s, &again, "%s", text)
	assert.Less(t, time.Since(start), inTime)
	return true
}

func TestDamagedScreensAreErrorsOrCanBeShown(t *testing.T) {
	testenv.Slow(t)
	rng := rand.New(rand.NewPCG(3, 4))
	e := screen.New(screen.Size{Cols: 8, Rows: 3}, nil)
	_, _ = e.Write([]byte("\x1b[4:3;31mab\x1b[m漢e\u0301\x1b]8;;http://x\x1b\\link\x1b]2;title\a\x1b[?1049h\x1b[?1000;1006;6h\x1b[2;3r\x1b[3 qx👩‍👧"))
	valid, err := json.Marshal(e.Screen())
	require.NoError(t, err)
	require.True(t, checkParsed(t, valid))
	values := []string{
		"0", "1", "2", "3", "5", "-1", "99", "255", "256", "65535", "1e9", "9223372036854775807", "null", "true", "false", `""`, `"\u001b[31m"`, `"日"`,
		`"#123456"`, "[]", "{}", "[[]]", `[{"t":"x","one":true}]`, `{"t":"\u009b\u0000","w":true,"one":true}`,
	}
	shown := 0
	for range 5000 {
		var tree any
		require.NoError(t, json.Unmarshal(valid, &tree))
		for range 1 + rng.IntN(3) {
			var value any
			require.NoError(t, json.Unmarshal([]byte(values[rng.IntN(len(values))]), &value))
			damage(rng, tree, value)
		}
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		if checkParsed(t, b) {
			shown++
		}
	}
	assert.Greater(t, shown, 500, "few are shown at all")
}

// damage puts a value somewhere into what JSON is made of.
func damage(rng *rand.Rand, at, value any) {
	switch at := at.(type) {
	case map[string]any:
		keys := make([]string, 0, len(at))
		for _, key := range []string{
			"cols", "rows", "cursor", "col", "row", "visible", "shape", "title", "alternate", "modes", "mouse", "top", "bottom", "origin", "cursor_shape",
			"modify_keys", "pen", "wrap", "styles", "lines", "normal", "t", "s", "w", "one", "underline", "link", "fg", "underline_color",
		} {
			if _, ok := at[key]; ok || rng.IntN(50) == 0 {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			return
		}
		key := keys[rng.IntN(len(keys))]
		if child := at[key]; nested(child) && rng.IntN(8) > 0 {
			damage(rng, child, value)
			return
		}
		at[key] = value
	case []any:
		if len(at) == 0 {
			return
		}
		i := rng.IntN(len(at))
		if nested(at[i]) && rng.IntN(8) > 0 {
			damage(rng, at[i], value)
			return
		}
		at[i] = value
	}
}

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func FuzzScreenJSON(f *testing.F) {
	for _, in := range []string{"", "abc\x1b[31m漢\x1b[4:3mx", "\x1b[?1049h\x1b[?1003;6h\x1b]2;t\a\x1b]8;;http://x\aé", strings.Repeat("w", 20)} {
		e := screen.New(screen.Size{Cols: 6, Rows: 2}, nil)
		_, _ = e.Write([]byte(in))
		b, err := json.Marshal(e.Screen())
		require.NoError(f, err)
		f.Add(b)
	}
	for _, part := range []string{`"styles":[{"underline":99}]`, `"modes":{"mouse":200}`, `"lines":[[{"t":"\u001b]52;c;aGk=\u0007","one":true}]]`, `"wrap":true,"cursor":{"col":9}`} {
		f.Add(fmt.Appendf(nil, `{"cols":3,"rows":1,"styles":[{}],"lines":[[]],%s}`, part))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkParsed(t, text) })
}

func TestTheCursorIsThatOfTheScreen(t *testing.T) {
	e := screen.New(screen.Size{Cols: 8, Rows: 3}, nil)
	for _, in := range []string{"", "abc", "\x1b[2;8Hx", "\x1b[5 q", "\x1b[?25l", "\x1b[?1049h\r\n"} {
		_, _ = e.Write([]byte(in))
		assert.Equal(t, e.Screen().Cursor, e.Cursor(), "%q", in)
	}
	e.Close()
	assert.Equal(t, e.Screen().Cursor, e.Cursor())
}
