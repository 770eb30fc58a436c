package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// starts starts a line on a terminal of a session, and returns its ID.
func (p *place) starts(session, line string) string {
	p.t.Helper()
	return p.limpet("term", "start", "-s", session, "--size", "80x24", "--line", line)
}

// ctrl is a modifier of keys.
const ctrl = 2

// keys presses keys as a keyboard does: what a key types comes with the press, and is not typed if a script prevents that. That of chromedp
// is typed all the same.
func keys(modifiers int64, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range text {
			var press, release input.DispatchKeyEventParams
			for _, event := range kb.Encode(r) {
				switch event.Type {
				case kb.KeyChar:
					press.Text, press.UnmodifiedText = event.Text, event.UnmodifiedText
				case kb.KeyUp:
					release = *event
				default:
					press = *event
				}
			}
			press.Type = input.DispatchKeyEventTypeKeyDown
			press.Modifiers |= modifiers
			release.Modifiers |= modifiers
			if modifiers != 0 {
				press.Text, press.UnmodifiedText = "", ""
			}
			for _, event := range []input.DispatchKeyEventParams{press, release} {
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, event); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// screen is what is on a terminal.
func (p *place) screen(session, id string) string {
	p.t.Helper()
	return p.limpet("term", "-s", session, "screen", id)
}

func (p *place) size(session, id string) terminal.Size {
	p.t.Helper()
	var info terminal.Info
	require.NoError(p.t, json.Unmarshal([]byte(p.limpet("term", "-s", session, "info", id, "--json")), &info))
	return info.Size
}

// opens opens a terminal that is in the list.
func (b *tab) opens(id string) {
	b.t.Helper()
	button := "#terminals-list button[data-key=" + quote(id) + "]"
	b.sees("document.querySelector(" + quote(button) + ") !== null")
	b.do(chromedp.Click(button, chromedp.NodeVisible))
}

// row is an expression of JavaScript: whether a row of the terminal holds something.
func row(holds string) string {
	return `[...document.querySelectorAll("#screen .xterm-rows > div")].some((row) => { const text = row.textContent.replaceAll("\u00a0", " "); return ` + holds + `; })`
}

// shows waits until a text is on the terminal's screen, in one row.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.sees(row("text.includes(" + quote(text) + ")"))
}

// takes takes over the terminal that is open.
func (b *tab) takes() {
	b.t.Helper()
	b.do(chromedp.Click("#terminal-take", chromedp.NodeVisible))
	b.sees(`document.querySelector("#terminal.taken .xterm")?.contains(document.activeElement)`)
}

func TestATerminalIsShownAsItIs(t *testing.T) {
	p := newPlace(t)
	write := p.fifo("fifo")
	id := p.starts("build", `printf '\033[1;32mgreen\033[0m \033[38;2;1;200;3mtrue\033[0m\r\n'; cat fifo; echo last; exec sleep 1000`)
	b := open(t, p.serve())
	b.sees(`document.querySelector("#terminals-list .thumb")?.textContent.includes("green true")`)
	b.opens(id)
	b.shows("green true")
	colour := func(text string) string {
		return value[string](b, `getComputedStyle([...document.querySelectorAll("#screen .xterm-rows span")].find((e) => e.textContent.includes(`+quote(text)+`))).color`)
	}
	assert.Equal(t, "rgb(1, 200, 3)", colour("true"), "styles are applied, without any that the page's policy forbids")
	assert.NotEqual(t, colour("true"), colour("green"))
	write("while\n")
	b.shows("while")
	b.shows("last")
	assert.True(t, value[bool](b, `document.getElementById("terminal-take").hidden`), "it is read-only")
	b.do(chromedp.Click("#screen .xterm-screen"), keys(0, "typed"))
	b.do(chromedp.Reload())
	b.shows("green true")
	b.shows("last")
	assert.NotContains(t, p.screen("build", id), "typed")
	b.do(chromedp.Click("#terminal-close", chromedp.NodeVisible))
	b.sees(`document.getElementById("terminal").hidden`)
}

// Where no WebSocket can be opened a terminal is shown by a stream, which the page says, and nothing can be typed.
func TestATerminalIsShownWithoutWebSockets(t *testing.T) {
	p := newPlace(t)
	write := p.fifo("fifo")
	id := p.starts("build", `printf 'before \342\202\254\r\n'; cat fifo; echo last; exec sleep 1000`)
	b := open(t, p.serve("--allow-typing"))
	b.do(chromedp.Func(func(ctx context.Context, at *chromedp.Target) error {
		_, err := cdp.Call(ctx, at, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `window.WebSocket = class { constructor() { throw new Error("there are none"); } };`,
		})
		return err
	}))
	b.do(chromedp.Reload())
	b.opens(id)
	b.shows("before €")
	b.reads("#terminal-status", "no WebSocket could be opened")
	write("while\n")
	b.shows("while")
	b.shows("last")
	assert.True(t, value[bool](b, `document.getElementById("terminal-take").hidden`), "nothing can be typed")
	b.do(chromedp.Click("#screen .xterm-screen"), keys(0, "typed"))
	b.do(chromedp.Click("#terminal-close", chromedp.NodeVisible))
	b.sees(`document.getElementById("terminal").hidden`)
	assert.NotContains(t, p.screen("build", id), "typed")
}

// A person takes over vim, types, has it in the size of the window, loads the page again in the middle, and hands it back.
func TestAPersonTypesInVim(t *testing.T) {
	vim := ""
	for _, name := range []string{"vim", "vim.tiny"} {
		if path, err := exec.LookPath(name); err == nil && vim == "" {
			vim = path
		}
	}
	if vim == "" {
		t.Skip("no vim")
	}
	p := newPlace(t)
	require.NoError(t, os.WriteFile(p.file("text"), []byte("of the file\n"), 0o600))
	p.limpet("run", "-s", "other", "true") // That j and k would choose.
	id := p.limpet("term", "start", "-s", "build", "--size", "80x24", "--", vim, "-u", "NONE", "--cmd", "set nocompatible noswapfile laststatus=2", "text")
	b := open(t, p.serve("--allow-typing"))
	b.reads("#sessions .name", "build")
	b.do(chromedp.Click(`#sessions button[data-key^="build "]`, chromedp.NodeVisible))
	b.opens(id)
	b.shows("of the file")
	b.shows("text")
	// takes waits until vim has drawn what it has for the new size: keys that come meanwhile are lost to it, wherever it runs.
	takes := func() {
		b.takes()
		var size terminal.Size
		testenv.Await(t, "another size", func() bool {
			size = p.size("build", id)
			return size != terminal.DefaultSize
		})
		b.sees(fmt.Sprintf(`((rows) => rows.length === %d && rows.at(-2).textContent.startsWith("text"))([...document.querySelectorAll("#screen .xterm-rows > div")])`, size.Rows))
	}
	takes()
	b.do(keys(0, "Otyped j and k"+kb.Escape))
	b.shows("typed j and k")
	assert.Equal(t, "build", b.text("#name"), "what is typed is none of the page's keys")

	b.do(chromedp.EmulateViewport(700, 600))
	var size terminal.Size
	testenv.Await(t, "the size of the window", func() bool {
		size = p.size("build", id)
		return size.Cols < 80 && size.Rows > 5
	})
	b.do(keys(0, ":set columns?"+kb.Enter))
	b.shows(fmt.Sprint("columns=", size.Cols))

	b.do(chromedp.Reload())
	b.shows("typed j and k")
	assert.False(t, value[bool](b, `document.getElementById("terminal").classList.contains("taken")`), "to take over is a click each time")
	takes()
	b.do(keys(0, ":w saved"+kb.Enter+":q!"+kb.Enter))
	b.reads("#terminal-status", "has ended")
	text, err := os.ReadFile(p.file("saved"))
	require.NoError(t, err)
	assert.Equal(t, "typed j and k\nof the file\n", string(text))
}

func TestATerminalIsHandedBack(t *testing.T) {
	p := newPlace(t)
	id := p.starts("build", `while read -r x; do echo "[$x] $(stty size)"; done`)
	link := p.serve("--allow-typing")
	b, other := open(t, link), open(t, link)
	b.opens(id)
	b.takes()
	b.do(keys(0, "one"+kb.Enter))
	b.shows("[one]")
	assert.NotContains(t, p.screen("build", id), "[one] 24 80", "it has the size of the window")
	other.opens(id)
	other.shows("[one]")

	b.do(keys(ctrl, "\\"))
	b.sees(`!document.getElementById("terminal").classList.contains("taken")`)
	b.do(keys(0, "jjj"))
	p.limpet("term", "-s", "build", "send", id, "back", "Enter")
	b.shows("[back] 24 80")
	other.shows("[back] 24 80")

	b.takes()
	other.takes() // From the one who had it.
	b.reads("#terminal-status", "another page has taken the terminal over")
	other.do(keys(0, "of the other"+kb.Enter))
	b.shows("[of the other]")
}

// What a program prints on a terminal does nothing but show.
func TestAHostileTerminalDoesNothing(t *testing.T) {
	p := newPlace(t)
	id := p.starts("build", `printf '\033]52;c;aGFja2Vk\007\033]8;;javascript:window.hacked=1\033\\script\033]8;;\033\\ \033]8;;http://192.0.2.1/\033\\web\033]8;;\033\\\r\n'
printf '<script>window.hacked=1</script>\r\n\033[c\033[6n\033]10;?\007'
for ((i = 0; i < 2000; i++)); do printf '\033[38;2;%d;0;0m\033]1337;x\007\033P+q544e\033\\' $((i % 256)); done
head -c 3000000 /dev/zero | tr '\0' x
printf '\033]0;<img src=x onerror=window.hacked=1>\007\033[0m\033[2J\033[Hsurvived '; printf '\033]8;;http://192.0.2.1/path\033\\web\033]8;;\033\\\r\n'; read -rs answer; printf %q "$answer"; exec sleep 1000`)
	b := open(t, p.serve("--allow-typing"))
	b.opens(id)
	b.shows("survived web")
	b.reads("#terminal-name", "<img src=x onerror=window.hacked=1>")
	b.takes()
	assert.False(t, value[bool](b, "'hacked' in window"))
	assert.Zero(t, value[int](b, "document.querySelectorAll('#terminal img, #terminal script, #terminal a').length"))
	assert.Equal(t, "limpet", value[string](b, "document.title"))

	// A link is only followed when the person says so.
	var mu sync.Mutex
	var asked []string
	require.NoError(t, chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*page.EventJavascriptDialogOpening); ok {
			mu.Lock()
			asked = append(asked, e.Message)
			mu.Unlock()
			go func() { _, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }() // Here nothing can be asked of the browser.
		}
	}))
	where := `(() => {
		const range = document.createRange();
		const walk = document.createTreeWalker(document.querySelector("#screen .xterm-rows"), NodeFilter.SHOW_TEXT);
		for (let n = walk.nextNode(); n; n = walk.nextNode()) if (n.data.includes("web")) {
			range.setStart(n, n.data.indexOf("web")); range.setEnd(n, n.data.indexOf("web") + 3);
			const r = range.getBoundingClientRect();
			return { X: r.left + r.width / 2, Y: r.top + r.height / 2 };
		}
		return null;
	})()`
	// The screen is painted anew, in the size of the window, some time after the take-over: then the link is elsewhere, or is not the one that the pointer is
	// over, until that comes from another cell.
	testenv.Await(t, "the question whether to follow the link", func() bool {
		mu.Lock()
		over := len(asked) > 0
		mu.Unlock()
		if over {
			return true
		}
		at := value[*struct{ X, Y float64 }](b, where)
		if at == nil {
			return false
		}
		b.do(chromedp.MouseEvent("mouseMoved", at.X, at.Y+50), chromedp.MouseEvent("mouseMoved", at.X, at.Y))
		if value[bool](b, `document.querySelector("#screen .xterm-cursor-pointer, #screen.xterm-cursor-pointer") !== null`) {
			b.do(chromedp.MouseClickXY(at.X, at.Y))
		}
		return false
	})
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, asked[0], "http://192.0.2.1/path")
}

// A page of another port of this machine, as an agent's server could have one, gets nothing: it reads nothing, opens no WebSocket, and
// shows the page in no frame.
func TestAnotherPageGetsNothing(t *testing.T) {
	p := newPlace(t)
	id := p.starts("build", "echo secret; exec sleep 1000")
	link := p.serve("--allow-typing")
	own, token, _ := strings.Cut(link, "/#")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><link rel=icon href=data:,><iframe src=%q></iframe>`, own+"/") // If the browser is gone, the test fails anyway.
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		<-served
	})
	b := open(t, "http://"+l.Addr().String()+"/#")
	b.wanted = []string{""} // All of what it tries is told there.
	b.foreign = true
	for name, try := range map[string]string{
		"reads":    `fetch(` + quote(own+"/api/sessions") + `, { headers: { Authorization: "Bearer ` + token + `" } }).then(() => "got", () => "nothing")`,
		"asks":     `fetch(` + quote(own+"/api/sessions") + `, { mode: "no-cors" }).then((r) => r.type === "opaque" ? "nothing" : "got", () => "nothing")`,
		"connects": `new Promise((done) => { const s = new WebSocket(` + quote(strings.Replace(own, "http", "ws", 1)+"/api/terminal") + `); s.onopen = () => done("got"); s.onerror = () => done("nothing"); })`,
		"frames":   `(() => { try { return frames[0].document.body.textContent === "" ? "nothing" : "got"; } catch { return "nothing"; } })()`,
	} {
		assert.Equal(t, "nothing", value[string](b, try), name)
	}
	assert.Contains(t, p.screen("build", id), "secret")
}
