package mcpserver_test

import (
	"bytes"
	"fmt"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

func TestAScreenCanBeAPicture(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": `printf '\e[31mred\e[0m'; exec sleep 1000`})
	d.see(id, "red")
	res, err := d.try("terminal_screen", object{"terminal": id, "format": "png"})
	require.NoError(t, err)
	require.Len(t, res.Content, 2)
	image, ok := res.Content[1].(*mcp.ImageContent)
	require.True(t, ok)
	assert.Equal(t, "image/png", image.MIMEType)
	picture, err := png.Decode(bytes.NewReader(image.Data))
	require.NoError(t, err)
	assert.Greater(t, picture.Bounds().Dx(), picture.Bounds().Dy())
	assert.Equal(t, "red", shown(structured(t, res)))
	res, err = d.try("terminal_screen", object{"terminal": id})
	require.NoError(t, err)
	assert.Len(t, res.Content, 1)
}

func TestALargeScreenIsCutAndTheRestCanBeRead(t *testing.T) {
	d := newDesk(t, setup{server: mcpserver.Options{AnswerLimit: 2000}})
	id, _ := d.create(object{"command": `for i in {1..99}; do printf 'row %03d %050d\n' $i 0; done; printf end; exec sleep 1000`, "rows": 100})
	out := d.see(id, "^end$")
	text := shown(out)
	assert.Less(t, len(text), 2200)
	gap := regexp.MustCompile(`\n\[rows (\d+) to (\d+) are left out here: terminal_screen with first_row (\d+)\]`)
	found := gap.FindStringSubmatch(text)
	require.NotNil(t, found, text)
	assert.Contains(t, text, "row 001")
	assert.True(t, strings.HasSuffix(text, "\nend"), text)
	var first, last int
	_, err := fmt.Sscan(found[1]+" "+found[2], &first, &last)
	require.NoError(t, err)
	assert.EqualValues(t, last-first+1, out["screen"].(object)["omitted_rows"])

	seen := map[string]bool{}
	for row := 1; row != 0; {
		page, _ := d.call("terminal_screen", object{"terminal": id, "first_row": row})
		text := shown(page)
		assert.True(t, strings.HasPrefix(text, fmt.Sprintf("row %03d", row)), text)
		found := gap.FindStringSubmatch(text)
		row = 0
		if found != nil {
			_, err := fmt.Sscan(found[3], &row)
			require.NoError(t, err)
		}
		for line := range strings.Lines(gap.ReplaceAllString(text, "")) {
			seen[strings.TrimSpace(line)] = true
		}
	}
	assert.Len(t, seen, 100, "each row")
}

func TestTheLinesAboveTheScreenAreKept(t *testing.T) {
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": `seq 100 399; printf last; exec sleep 1000`, "rows": 10})
	out := d.see(id, "^last$")
	assert.Equal(t, "391\n392\n393\n394\n395\n396\n397\n398\n399\nlast", shown(out))
	out = d.capture(object{"terminal": id})
	text := out["text"].(string)
	assert.True(t, strings.HasPrefix(text, "191\n192\n"), "200 and the screen: %s", text)
	assert.True(t, strings.HasSuffix(text, "\n399\nlast"))
	assert.EqualValues(t, 91, out["omitted_lines"])
	out = d.capture(object{"terminal": id, "scrollback_lines": 0})
	assert.Equal(t, "391\n392\n393\n394\n395\n396\n397\n398\n399\nlast", out["text"])
	assert.EqualValues(t, 291, out["omitted_lines"])
	out = d.capture(object{"terminal": id, "scrollback_lines": 1000})
	assert.True(t, strings.HasPrefix(out["text"].(string), "100\n"))
	assert.NotContains(t, out, "omitted_lines")
	out, text = d.call("terminal_capture", object{"terminal": id, "scrollback_lines": 1000, "max_output_bytes": 256})
	assert.LessOrEqual(t, len(out["text"].(string)), 256)
	lines := strings.Split(out["text"].(string), "\n")
	assert.Equal(t, "last", lines[len(lines)-1])
	assert.EqualValues(t, 301-len(lines), out["omitted_lines"])
	assert.Contains(t, text, fmt.Sprintf("[%d lines above this are left out: see scrollback_lines and max_output_bytes]", 301-len(lines)))
}

func TestWhatWasPrintedCanBeReadInPieces(t *testing.T) {
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": `seq 100 399; printf '\e[31mred\e[0m 10%%\rred 20%%\r\nüber\n'`, "settle_seconds": 60})
	d.ended(id)
	var all strings.Builder
	pieces := 0
	for at := 0; ; pieces++ {
		out, text := d.call("terminal_capture", object{"terminal": id, "offset": at, "bytes": 100})
		assert.Equal(t, at, number(out, "offset"))
		all.WriteString(out["text"].(string))
		next := number(out, "next_offset")
		if next == number(of(out), "output_bytes") {
			assert.NotContains(t, text, "the rest")
			break
		}
		assert.Contains(t, text, fmt.Sprintf("; the rest: offset %d]", next))
		require.Greater(t, next, at)
		at = next
	}
	assert.Greater(t, pieces, 10)
	assert.True(t, strings.HasPrefix(all.String(), "100\n101\n"))
	assert.Contains(t, all.String(), "\nred 20%\nüber\n")
	out := d.capture(object{"terminal": id, "offset": -7})
	assert.Equal(t, "über\n", out["text"])
	out = d.capture(object{"terminal": id, "bytes": 5})
	assert.Equal(t, "100\n", out["text"])
}

func TestWhatIsNotKeptIsSaid(t *testing.T) {
	d := newDesk(t, setup{sessions: session.Options{Terminals: &terminal.Options{BufferLimit: 1000}}})
	id, _ := d.create(object{"command": `for ((i = 0; i < 20000; i++)); do echo "line $i"; done`, "settle_seconds": 60})
	d.ended(id)
	out, text := d.call("terminal_capture", object{"terminal": id, "offset": 0})
	missed := number(out, "missed_bytes")
	assert.Positive(t, missed)
	assert.LessOrEqual(t, missed, number(out, "offset"))
	assert.Contains(t, text, fmt.Sprintf("[%d bytes before this are not kept any more]", missed))
	assert.Contains(t, d.capture(object{"terminal": id})["text"], "line 19999")
}

func TestAPagerHasAScreenOfItsOwn(t *testing.T) {
	testenv.Slow(t)
	less := installed(t, "less")
	d := newDesk(t, setup{})
	d.run("s", "seq 500 >numbers")
	id := d.bash(object{"session": "s", "rows": 10})
	d.keys(id, "seq 30", "Enter")
	d.see(id, `^30\n>$`)
	d.keys(id, less+" numbers", "Enter")
	out := d.see(id, `\A1\n2\n`)
	assert.Equal(t, true, out["screen"].(object)["alternate"])
	out, text := d.call("terminal_capture", object{"terminal": id})
	assert.Regexp(t, `(?s)^> seq 30\n1\n2\n.*\n1\n2\n3\n4\n5\n6\n7\n8\n9\nnumbers$`, out["text"])
	assert.Contains(t, text, "those above were there before it")
	d.keys(id, "G")
	d.see(id, `^500\n.*END`)
	d.keys(id, "q")
	out = d.see(id, `^30\n> .*numbers\n>$`)
	assert.NotContains(t, out["screen"], "alternate")
}

// Who is to type something is said in the line below the screen, in a list, and by the field of the answer.
func TestAQuestionOnATerminalIsSaid(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": `read -rsp 'secret: ' x; echo; exec sleep 1000`})
	const asks = "bash waits for a password (echo is off)"
	var out object
	var text string
	testenv.Await(t, "the question", func() bool {
		out, text = d.call("terminal_screen", object{"terminal": id})
		return of(out)["waits"] != nil
	})
	assert.Equal(t, asks, of(out)["waits"])
	assert.Contains(t, text, " bytes of output, "+asks+", cursor in row 1")
	_, text = d.call("terminal_list", object{})
	assert.Contains(t, text, ", "+asks+", session ")
	out, text = d.call("terminal_wait", object{"terminal": id, "text": "never", "timeout_seconds": 0.2})
	assert.Equal(t, "timeout", out["reason"])
	assert.Contains(t, text, asks, "whoever waits for something else is told")
	d.call("terminal_send_keys", object{"terminal": id, "keys": []string{"hunter2", "Enter"}})
	testenv.Await(t, "the answer", func() bool {
		out, _ = d.call("terminal_screen", object{"terminal": id})
		return of(out)["waits"] == nil
	})
}
