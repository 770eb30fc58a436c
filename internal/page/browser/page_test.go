package browser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A person opens the link, and sees what an agent's command prints while it runs.
func TestOutputIsSeenWhileACommandRuns(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "build", "echo before")
	b := open(t, p.serve())
	b.reads("#sessions .name", "build")
	b.reads("#log .script", "echo before")
	b.reads("#log .output", "before")
	assert.NotContains(t, value[string](b, "location.href"), "#", "the token is not in the address bar")

	write := p.fifo("fifo")
	ended := p.begins("run", "-s", "build", "echo while; cat fifo; (exit 3)")
	b.reads("#log .running .output", "while")
	b.reads("#facts", "runs")
	write("last\n")
	b.reads("#log .failed .foot", "exit 3")
	b.reads("#log .failed .output", "last")
	ended()
	p.limpet("run", "-s", "build", `set -e; exec 9>/dev/null; exec -a $'bend\e]0;<b>' sleep 1000 &`)
	b.reads("#log .done .receipt", "left running")
	b.reads("#log .done .receipt", "<b>")
	b.reads("#log .done .receipt", "not kept")

	b.wanted = []string{"404"} // The page may just be asking for the jobs.
	p.limpet("session", "close", "build")
	b.reads("#log .note", "The session has ended.")
	b.reads("#sessions .ended .what", "closed")
}

func TestAJobsLogIsRead(t *testing.T) {
	p := newPlace(t)
	write := p.fifo("fifo")
	p.limpet("jobs", "start", "-s", "build", `printf '\033[32mcolour\033[0m\n<b>first</b>\n'; cat fifo`)
	b := open(t, p.serve())
	b.reads("#jobs-summary", "Jobs: 1 running, 0 ended")
	b.do(chromedp.Click("#jobs-summary", chromedp.NodeVisible), chromedp.Click("#jobs-list summary", chromedp.NodeVisible))
	b.reads(".joblog .line .f2", "colour")
	b.reads(".joblog .line", "<b>first</b>")
	write("second\n")
	b.reads(".joblog .line", "second")
	b.reads("#jobs-list summary .good", "exit code 0")
	b.do(chromedp.Click("#jobs-list .find input", chromedp.NodeVisible), keys(0, "^sec.nd$"+kb.Enter))
	b.reads("#jobs-list .found .line", "3: second")
	assert.True(t, value[bool](b, `document.querySelector("#jobs-list .find button").hidden`), "there is nothing to stop")
}

// One click, or a double one, stops nothing: it may be made by mistake.
func TestAJobIsStoppedByASecondClick(t *testing.T) {
	p := newPlace(t)
	p.limpet("jobs", "start", "-s", "build", "exec sleep 1000")
	b := open(t, p.serve("--allow-typing"))
	b.reads("#jobs-summary", "Jobs: 1 running, 0 ended")
	b.do(chromedp.Click("#jobs-summary", chromedp.NodeVisible), chromedp.Click("#jobs-list summary", chromedp.NodeVisible))
	const stop = "#jobs-list .find button"
	b.do(chromedp.DoubleClick(stop, chromedp.NodeVisible))
	b.reads(stop, "Stop it? Click again")
	b.reads("#jobs-list summary .runs", "running")
	// Whoever goes on clicking means it: what comes too early stops nothing, and what comes too late begins anew.
	value[bool](b, `new Promise((done) => {
		const clicks = setInterval(() => {
			const stop = document.querySelector("`+stop+`");
			if (!stop.disabled) stop.click();
			if (!stop.hidden) return;
			clearInterval(clicks);
			done(true);
		}, 100);
	})`)
	b.reads("#jobs-summary", "Jobs: 0 running, 1 ended")
	assert.True(t, value[bool](b, `document.querySelector("#jobs-list .find button").hidden`))
}

// agent is a client of limpet mcp, which asks for one command, and leaves without the answer.
func (p *place) agent(script string, flags ...string) (leaves func()) {
	p.t.Helper()
	cmd := p.command(append([]string{"mcp", "--keep"}, flags...)...)
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	leaves = sync.OnceFunc(func() {
		_ = in.Close() // With that limpet ends.
		_ = cmd.Wait() // How does not matter.
	})
	p.t.Cleanup(leaves)
	args, err := json.Marshal(map[string]string{"command": script})
	require.NoError(p.t, err)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command","arguments":%s,"_meta":{"progressToken":1}}}`, args), // With which a question waits for long.
	} {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(p.t, err)
	}
	return leaves
}

func TestAQuestionThatWaitsIsShown(t *testing.T) {
	p := newPlace(t)
	b := open(t, p.serve())
	b.reads("#none", "There are no sessions.")
	assert.True(t, value[bool](b, "document.getElementById('questions').hidden"))
	leaves := p.agent("touch one", "--approve", "ask")
	b.reads("#questions", "A question waits")
	b.reads("#questions", "limpet approvals answer")
	b.reads("#sessions .name", "agent")
	leaves()
	b.sees("document.getElementById('questions').hidden")
}

// Each line is there once, in its order, whatever was printed before the reload, during it, and after it.
func TestAReloadLosesNothing(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "quiet", "echo nothing")
	write := p.fifo("fifo")
	p.begins("run", "-s", "build", "for ((i = 1; i <= 300; i++)); do echo line $i; ((i % 100)) || cat fifo; done")
	b := open(t, p.serve())
	b.reads("#sessions button[aria-current] .name", "build")
	b.reads("#log .line", "line 100")
	b.do(chromedp.Reload())
	b.reads("#log .line", "line 100")
	write("") // The lines up to 200 come while the page is loaded once more.
	b.do(chromedp.Reload())
	b.reads("#log .line", "line 200")
	write("")
	b.reads("#log .line", "line 300")
	write("")
	b.reads("#log .done .foot", "exit 0")
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprint("line ", i+1))
	}
	assert.Equal(t, want, value[[]string](b, "[...document.querySelectorAll('#log .line')].map((e) => e.textContent)"))
	assert.Equal(t, "build", b.text("#name"), "the chosen session is still the same")
}

func TestANarrowWindowShowsAll(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "build", "echo "+strings.Repeat("long", 200)+"; seq 200; echo end")
	p.limpet("run", "-s", "other-with-a-long-name-that-does-not-fit-a-narrow-window", "true")
	b := open(t, p.serve())
	b.do(chromedp.EmulateViewport(360, 640))
	b.reads("#sessions .name", "build")
	b.do(chromedp.Click("#sessions li:last-child button", chromedp.NodeVisible))
	b.reads("#log .line", "end")
	assert.LessOrEqual(t, value[int](b, "document.documentElement.scrollWidth"), 360, "nothing is beside the window")
	assert.LessOrEqual(t, value[int](b, "document.getElementById('log').scrollWidth"), 360)
	b.sees(`(() => {
		const r = [...document.querySelectorAll("#log .line")].at(-1).getBoundingClientRect();
		return r.top > 0 && r.bottom <= innerHeight && document.elementFromPoint(r.left + 5, r.top + 5)?.closest("#log") !== null;
	})()`)
	b.do(chromedp.EmulateViewport(1000, 700))
	b.sees(`[...document.querySelectorAll("#log .line")].at(-1).getBoundingClientRect().bottom <= innerHeight`)
}

func TestKeysChooseASession(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "one", "echo of one")
	p.limpet("run", "-s", "two", "echo of two")
	b := open(t, p.serve())
	b.reads("#log .line", "of two")
	b.do(chromedp.KeyEvent("j"))
	b.reads("#log .line", "of one")
	b.do(chromedp.KeyEvent("k"))
	b.reads("#log .line", "of two")
	assert.Equal(t, "two", b.text("#name"))
}

// Sessions of another machine are in the list, and the list says so when it cannot be reached.
func TestAnotherMachineIsShown(t *testing.T) {
	p := newPlace(t)
	reach := func(how string) { require.NoError(t, os.WriteFile(p.file("how"), []byte(how), 0o600)) }
	there := "exec env -i HOME=" + p.file("far") + " GORACE=atexit_sleep_ms=0 sh"
	require.NoError(t, os.Mkdir(p.file("far"), 0o700))
	reach(there)
	target := "exec:sh " + p.file("how")
	t.Cleanup(func() {
		reach(there)
		p.limpet("session", "close", "--on", target, "one", "two")
		p.limpet("hosts", "close", target)
	})
	p.limpet("run", "-s", "one", "--on", target, "echo of there")
	p.limpet("run", "-s", "one", "echo of here")
	b := open(t, p.serve("--on", target))
	b.reads("#log .line", "of here")
	b.sees(`document.querySelectorAll("#sessions button").length === 2`)
	b.do(chromedp.KeyEvent("j"))
	b.reads("#log .line", "of there")
	assert.Equal(t, "one@"+target, b.text("#name"))
	assert.False(t, value[bool](b, `!document.querySelector("#machines").hidden`))
	b.wanted = []string{"502", "504", "404"} // The jobs are asked for all the same.
	p.limpet("session", "fork", "--on", target, "one", "two")
	b.sees(`document.querySelectorAll("#sessions li li button").length === 1`)
	b.reads("#sessions li li .name", "two@"+target)
	reach("echo it is off >&2; exit 1")
	p.limpet("hosts", "close", target)
	b.sees(`document.querySelector("#machines")?.textContent.includes("it is off")`)
	b.sees(`[...document.querySelectorAll("#sessions .what")].some((e) => e.textContent === "does not answer")`)
	b.draws("machine-lost")
	reach(there)
	b.sees(`document.querySelector("#machines").hidden`)
}

// What programs print, the names of directories, and scripts are text on the page, and nothing else.
func TestHostileOutputIsText(t *testing.T) {
	p := newPlace(t)
	const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	script := `mkdir -p '<img src=x onerror=window.hacked=1>'; cd '<img src=x onerror=window.hacked=1>'
printf '%s\n' '` + markup + `'
printf '\033]0;hacked\007\033]8;;http://192.0.2.1/\033\\link\033]8;;\033\\ \033]52;c;aGFja2Vk\007end of it\n'
printf '\033[2J\033c\033[?1049h\n'`
	p.limpet("run", "-s", "build", script)
	p.limpet("run", "-s", "build", `printf '\033[31m%.0s' {1..100000}; echo; echo survived`)
	p.limpet("jobs", "start", "-s", "build", "--", "printf", `%s\n`, markup)
	b := open(t, p.serve())
	b.reads("#log .line", "survived")
	b.reads("#log .line", markup)
	b.reads("#log .line", "link end of it")
	b.reads("#facts", "<img src=x onerror=window.hacked=1>")
	b.do(chromedp.Click("#jobs-summary", chromedp.NodeVisible), chromedp.Click("#jobs-list summary", chromedp.NodeVisible))
	b.reads(".joblog .line", markup)
	assert.Zero(t, value[int](b, "document.querySelectorAll('main img, main script, main a, main iframe, main style').length"))
	assert.False(t, value[bool](b, "'hacked' in window"))
	assert.Equal(t, "limpet", value[string](b, "document.title"))
}

// The page says that limpet serve is gone, and that another one does not know its link.
func TestALostConnectionIsSaid(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "build", "echo before")
	link, stop := p.serving()
	b := open(t, link)
	b.wanted = []string{"net::ERR_", "401"}
	b.reads("#log .line", "before")
	stop()
	b.reads("#status.bad", "The connection is lost")
	b.reads("#log .note", "The connection is lost")
	addr := strings.TrimPrefix(strings.Split(link, "/#")[0], "http://")
	p.serve("--listen", addr)
	b.reads("#status.bad", "This link is not valid any more")
}
