package browser_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// played is an expression of JavaScript: whether a text is in a row of the recording that is played.
func played(text string) string {
	return strings.Replace(row("text.includes("+quote(text)+")"), "#screen", "#player-screen", 1)
}

// sized is an expression of JavaScript: whether what is played has so many rows.
func sized(rows string) string {
	return `document.querySelectorAll("#player-screen .xterm-rows > div").length === ` + rows
}

// A person plays a recording that limpet has made, while it is written and then all of it, pauses it, and goes to other times.
func TestARecordingIsPlayed(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.Mkdir(p.file("casts"), 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", p.file("casts/link.cast")))
	write := p.fifo("fifo")
	p.limpet("term", "start", "-s", "build", "--size", "80x24", "--record", p.file("casts/demo.cast"), "--line",
		`printf '\033[38;2;1;200;3mfirst\033[0m\n'; cat fifo; printf '\033]52;c;aGFja2Vk\007<img src=x onerror=window.hacked=1>\033[?1049h\033[2J\033[Hsecond\n'; cat fifo; printf '\033]0;cut'`)
	recorded := func(text string) {
		testenv.Await(t, text, func() bool {
			b, err := os.ReadFile(p.file("casts/demo.cast"))
			require.NoError(t, err)
			_, events, _ := strings.Cut(string(b), "\n") // The command is in the header.
			return strings.Contains(events, text)
		})
	}
	recorded("first")
	b := open(t, p.serve("--recordings", "casts"))
	const button = `#recordings-list button[data-key="demo.cast"]`
	b.sees(`document.querySelectorAll("#recordings-list button").length === 1`)
	b.do(chromedp.Click(button, chromedp.NodeVisible))
	b.sees(played("first"))
	b.reads("#player-play", "Play again")
	assert.True(t, value[bool](b, `getComputedStyle(document.getElementById("main")).display === "none"`))
	assert.Equal(t, "rgb(1, 200, 3)", value[string](b, `getComputedStyle([...document.querySelectorAll("#player-screen .xterm-rows span")].find((e) => e.textContent.includes("first"))).color`))

	write("while\n")
	recorded("second")
	write("later\n")
	recorded("cut")
	b.do(chromedp.Click(button, chromedp.NodeVisible)) // With what there is now.
	b.sees(played("second"))
	b.reads("#player-play", "Play again")
	assert.False(t, value[bool](b, played("first")), "it is on the other screen")
	length := value[float64](b, `Number(document.getElementById("player-at").max)`)
	assert.Equal(t, length, value[float64](b, `Number(document.getElementById("player-at").value)`), "it is at its end")
	assert.True(t, value[bool](b, `document.getElementById("player").contains(document.activeElement)`), "keys are the player's")

	nothing := "!" + played("first") + " && !" + played("second")
	b.do(keys(0, kb.Home))
	b.sees(nothing + ` && document.getElementById("player-play").textContent === "Play"`)
	b.do(keys(0, kb.End))
	b.sees(played("second"))
	b.do(keys(0, kb.ArrowLeft))
	b.sees(fmt.Sprintf(`Number(document.getElementById("player-at").value) < %v`, length))
	b.do(keys(0, kb.ArrowRight))
	b.sees(played("second"))
	b.do(keys(0, kb.Home))
	b.sees(nothing)
	b.do(keys(0, " "))
	b.sees(played("second"))
	b.reads("#player-play", "Play again")
	value[bool](b, `(() => { const at = document.getElementById("player-at"); at.value = "0"; at.dispatchEvent(new Event("input")); return true; })()`)
	b.sees(nothing)
	assert.False(t, value[bool](b, "'hacked' in window"))
	assert.Zero(t, value[int](b, "document.querySelectorAll('#player img, #player script, #player a').length"))

	guest := open(t, func() string {
		b.do(chromedp.Click(`#sessions button`, chromedp.NodeVisible)) // Which closes the player.
		b.sees(`document.getElementById("player").hidden`)
		return b.shares("#share-session", "view")
	}())
	guest.reads("#status", "shared with you until")
	guest.reads("#terminals-summary", "Terminals")
	assert.True(t, value[bool](guest, `document.getElementById("recordings").hidden`))
	assert.NotContains(t, value[string](guest, "document.documentElement.outerHTML"), "demo.cast")
	guest.mu.Lock()
	defer guest.mu.Unlock()
	for _, url := range guest.asked {
		assert.NotContains(t, url, "/api/recordings", "a page that was shared asks for nothing that it may not have")
	}
}

// Sizes, markers and shortened pauses are what a person sees; what is broken is said, and text of a recording is no markup.
func TestARecordingOfAnyoneIsPlayed(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.Mkdir(p.file("casts"), 0o700))
	require.NoError(t, os.WriteFile(p.file("casts/any.cast"), []byte(`{"version":2,"width":40,"height":10,"title":"<b>title</b>"}
[0.1,"o","first\r\n"]
[1000,"i","typed"]
[1000,"m","<i>here</i>"]
[1000,"r","60x20"]
[1000,"o","second\r\n"]
[2000,"o","third\r\n"]
broken
`), 0o600))
	require.NoError(t, os.WriteFile(p.file("casts/no.cast"), []byte("no recording\n"), 0o600))
	long := `{"version":2,"width":80,"height":24}` + "\n"
	for i := range 200 {
		long += fmt.Sprintf(`[%v,"o","."]`, 1.5*float64(i)) + "\n"
	}
	require.NoError(t, os.WriteFile(p.file("casts/long.cast"), []byte(long), 0o600))
	b := open(t, p.serve("--recordings", "casts"))
	b.wanted = []string{"422"}
	b.do(chromedp.Click(`#recordings-list button[data-key="any.cast"]`, chromedp.NodeVisible))
	b.sees(played("first"))
	b.sees(sized("10"))
	b.reads("#player-name", "any.cast: <b>title</b>")
	b.reads("#player-status", "the rest cannot be played: asciicast: line 8")
	b.reads("#player-status", "pauses are shortened to 2 s: it took 33 min 20 s")
	b.reads("#player-time", "/ 0:04")
	b.reads("#player-list", "0:02 <i>here</i>")
	b.sees(sized("20"))
	b.sees(played("third"))
	b.reads("#player-play", "Play again")
	b.do(chromedp.Click("#player-markers summary", chromedp.NodeVisible), chromedp.Click("#player-list button", chromedp.NodeVisible))
	b.sees(played("second") + " && !" + played("third") + " && " + sized("20"))
	b.do(chromedp.Click("#player-name", chromedp.NodeVisible), keys(0, kb.Home))
	b.sees("!" + played("second") + " && " + sized("10"))
	b.do(chromedp.EmulateViewport(360, 640))
	b.sees(`document.querySelector("#player-screen .xterm-screen").clientWidth <= 360`)
	assert.LessOrEqual(t, value[int](b, "document.documentElement.scrollWidth"), 360, "nothing is beside the window")
	b.do(chromedp.EmulateViewport(1200, 800))

	b.do(chromedp.Click(`#recordings-list button[data-key="long.cast"]`, chromedp.NodeVisible))
	b.reads("#player-play", "Pause")
	b.reads("#player-time", "/ 4:58")
	value[bool](b, `(() => { const speed = document.getElementById("player-speed"); speed.value = "16"; speed.dispatchEvent(new Event("change")); return true; })()`)
	began := time.Now()
	b.sees(`Number(document.getElementById("player-at").value) > 60`)
	assert.Less(t, time.Since(began), 50*time.Second, "it is played faster than it was recorded")
	b.do(keys(0, " "))
	b.sees(`document.getElementById("player-play").textContent === "Play"`)
	assert.Less(t, value[float64](b, `Number(document.getElementById("player-at").value)`), 298.5, "it is not at its end")
	b.sees(played("....."))

	b.do(chromedp.Click(`#recordings-list button[data-key="no.cast"]`, chromedp.NodeVisible))
	b.reads("#player-status", "it is no recording that can be played: asciicast: line 1")
	b.do(chromedp.Click("#player-close", chromedp.NodeVisible))
	b.sees(`document.getElementById("player").hidden && document.activeElement?.dataset.key === "no.cast"`)
	assert.Zero(t, value[int](b, "document.querySelectorAll('#player b, #player i').length"))
}
