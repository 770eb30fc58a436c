package browser_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// worker is an agent that goes on: a client of limpet mcp that has tools called, one at a time.
type worker struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	id  int
}

// works starts one. It ends with the test.
func (p *place) works(flags ...string) *worker {
	p.t.Helper()
	cmd := p.command(append([]string{"mcp", "--keep"}, flags...)...)
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = in.Close() // With that limpet ends.
		_ = cmd.Wait() // How does not matter.
	})
	w := &worker{t: p.t, in: in, out: bufio.NewReader(out)}
	w.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "agent", "version": "1"}})
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(p.t, err)
	return w
}

// ask sends a request, and returns its answer.
func (w *worker) ask(method string, params any) string {
	w.t.Helper()
	w.id++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": w.id, "method": method, "params": params})
	require.NoError(w.t, err)
	_, err = w.in.Write(append(b, '\n'))
	require.NoError(w.t, err)
	for {
		line, err := w.out.ReadBytes('\n')
		require.NoError(w.t, err)
		var said struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
			Error  any
		}
		require.NoError(w.t, json.Unmarshal(line, &said))
		if said.ID != w.id {
			continue // Progress.
		}
		require.Nil(w.t, said.Error, "%s", line)
		var text strings.Builder
		for _, part := range said.Result.Content {
			text.WriteString(part.Text)
		}
		return text.String()
	}
}

// call has a tool called, and returns the answer when it is there.
func (w *worker) call(tool string, args map[string]any) (answer func() string) {
	w.t.Helper()
	got := make(chan string, 1)
	go func() {
		defer close(got)
		got <- w.ask("tools/call", map[string]any{"name": tool, "arguments": args, "_meta": map[string]any{"progressToken": 1}}) // With which a question waits for long.
	}()
	return func() string {
		w.t.Helper()
		select {
		case text := <-got:
			return text
		case <-time.After(testenv.Patience):
			require.FailNow(w.t, "no answer to "+tool)
			return ""
		}
	}
}

// All of it, as it is meant: a person watches an agent, takes a terminal over, hands it back, answers a question, and gives a password.
// docs/page/draw makes the recording from it.
func TestAPersonLooksAfterAnAgent(t *testing.T) {
	dir, err := os.MkdirTemp("", "demo") // Its name is shown.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	p := newPlaceIn(t, dir)
	require.NoError(t, os.MkdirAll(p.file("shop/build"), 0o700))
	require.NoError(t, os.WriteFile(p.file("shop/total.go"), []byte("package shop\n"), 0o600))
	b := open(t, p.serve("--allow-typing", "--allow-answers"))
	b.wanted = []string{"[DOM] Password field is not contained in a form"} // It is sent by no form.
	f := &film{tab: b}
	b.do(chromedp.EmulateViewport(960, 720), prefers("dark"))
	b.reads("#none", "There are no sessions.")

	w := p.works("--approve", "ask", "--askpass")
	assert.Contains(t, w.call("run_command", map[string]any{"command": "cd shop; ls"})(), "total.go")
	b.reads("#log .line", "total.go")
	b.reads("#sessions .name", "agent-")
	f.takes(2 * time.Second)

	// What deletes files is asked about.
	removed := w.call("run_command", map[string]any{"command": "rm -rf build"})
	b.reads(".sheet .text", "rm -rf build")
	assert.True(t, p.exists("shop/build"))
	b.settled()
	f.takes(3 * time.Second)
	b.answers("once")
	assert.Contains(t, removed(), "exit")
	assert.False(t, p.exists("shop/build"))
	b.reads("#answered-list", "yes, this time")
	b.reads("#log .script", "rm -rf build")
	f.takes(2 * time.Second)

	// A terminal of the agent's. What it would run there is asked about, too.
	made := w.call("terminal_create", map[string]any{"command": `PS1='$ ' exec bash --norc --noprofile -i`, "rows": 12})
	b.reads(".sheet .text", "bash --norc")
	b.answers("once")
	id := terminalOf(t, made())
	b.opens(id)
	b.shows("$")
	b.takes()
	b.do(keys(0, "name=person"+kb.Enter))
	b.do(keys(0, `echo "the $name was here"`+kb.Enter))
	b.shows("the person was here")
	f.takes(3 * time.Second)
	b.do(keys(ctrl, `\`))
	b.sees(`document.querySelector("#terminal.taken") === null`)
	f.takes(time.Second)
	assert.Contains(t, w.call("terminal_screen", map[string]any{"terminal": id})(), "the person was here")
	typed := w.call("terminal_send_keys", map[string]any{"terminal": id, "keys": []string{"echo thanks, $name", "Enter"}})
	b.reads(".sheet .text", "echo thanks")
	b.answers("session")
	assert.Contains(t, typed(), "thanks, person")
	b.shows("thanks, person")
	f.takes(3 * time.Second)

	// A program asks for a password, as sudo -A does.
	given := w.call("run_command", map[string]any{"command": `"$SUDO_ASKPASS" '[sudo] password for you: ' | sha256sum`})
	b.reads(".sheet .text", "sha256sum")
	b.answers("once")
	b.reads(".sheet .text", "[sudo] password for you: ")
	b.sees(`document.querySelectorAll("#answered-list > li").length === 4`) // It is what moves last.
	b.settled()
	b.do(chromedp.Click(`#questions-list input[type="password"]`, chromedp.NodeVisible), keys(0, "s3cret"))
	f.takes(3 * time.Second)
	b.do(keys(0, kb.Enter))
	answer := given()
	assert.Contains(t, answer, fmt.Sprintf("%x", sha256.Sum256([]byte("s3cret\n"))))
	assert.NotContains(t, answer, "s3cret")
	b.reads("#answered-list", "a program asks for a password: given")
	b.reads("#log .line", fmt.Sprintf("%x", sha256.Sum256([]byte("s3cret\n"))))
	f.takes(3 * time.Second)
	f.writes("recording")
}

// terminalOf is the ID in what a tool has answered.
func terminalOf(t *testing.T, text string) string {
	t.Helper()
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) }) {
		if strings.HasPrefix(word, "term-") {
			return word
		}
	}
	require.FailNow(t, "no terminal", text)
	return ""
}

// film is made of pictures of a tab, if pictures are wanted.
type film struct {
	tab    *tab
	frames []image.Image
	lasts  []int // in hundredths of a second
}

// takes takes a picture, which is shown for a time.
func (f *film) takes(lasts time.Duration) {
	f.tab.t.Helper()
	if *pictures == "" {
		return
	}
	b, err := chromedp.Run(f.tab.ctx, chromedp.CaptureScreenshot())
	require.NoError(f.tab.t, err)
	frame, err := png.Decode(bytes.NewReader(b))
	require.NoError(f.tab.t, err)
	f.frames, f.lasts = append(f.frames, frame), append(f.lasts, int(lasts/(10*time.Millisecond)))
}

// writes writes them as a GIF, which has 256 colours: those that are there most often.
func (f *film) writes(name string) {
	f.tab.t.Helper()
	if *pictures == "" {
		return
	}
	count := make(map[color.RGBA]int)
	for _, frame := range f.frames {
		for y := range frame.Bounds().Dy() {
			for x := range frame.Bounds().Dx() {
				count[rgba(frame.At(x, y))]++
			}
		}
	}
	colours := make([]color.RGBA, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int { return count[b] - count[a] })
	palette := make(color.Palette, 0, 256)
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8)
	out := &gif.GIF{Delay: f.lasts}
	for _, frame := range f.frames {
		drawn := image.NewPaletted(frame.Bounds(), palette)
		for y := range frame.Bounds().Dy() {
			for x := range frame.Bounds().Dx() {
				c := rgba(frame.At(x, y))
				i, known := nearest[c]
				if !known {
					i = uint8(palette.Index(c))
					nearest[c] = i
				}
				drawn.SetColorIndex(x, y, i)
			}
		}
		out.Image = append(out.Image, drawn)
	}
	file, err := os.Create(filepath.Join(*pictures, name+".gif"))
	require.NoError(f.tab.t, err)
	require.NoError(f.tab.t, gif.EncodeAll(file, out))
	require.NoError(f.tab.t, file.Close())
}

func rgba(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }
