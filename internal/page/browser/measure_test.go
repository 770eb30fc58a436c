package browser_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	measure = flag.Duration("measure", 0, "measure the page, for so `LONG` where that matters: see docs/web.md")
	beside  = flag.String("beside", "", "measure keys at `URL`, too: a page of xterm.js, at whose terminal cat runs")
)

// measures skips a test that measures, unless that is wanted.
func measures(t *testing.T) {
	t.Helper()
	if *measure <= 0 {
		t.Skip("measures: give -measure 10m")
	}
}

// reloads loads the page again, with a script that runs before its own.
func (b *tab) reloads(script string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}), chromedp.Reload())
}

// glyphs has a page note, at each key, how many ms pass until xterm.js has put one more character into its rows.
const glyphs = `window.times = [];
(() => {
	const rows = document.querySelector(".xterm-rows");
	const count = () => rows.textContent.replace(/\s/g, "").length;
	addEventListener("keydown", () => {
		const begun = performance.now(), before = count();
		const observer = new MutationObserver(() => {
			if (count() <= before) return;
			observer.disconnect();
			window.times.push(performance.now() - begun);
		});
		observer.observe(rows, { subtree: true, childList: true, characterData: true });
	}, { capture: true });
	return true;
})()`

// types types letters, one after the other has been shown.
func (b *tab) types(letters int) {
	b.t.Helper()
	for range letters {
		n := value[int](b, "times.length")
		b.do(keys(0, "x"))
		b.sees(fmt.Sprint("times.length > ", n))
	}
}

// times returns what the page has noted since, sorted.
func (b *tab) times() []float64 {
	b.t.Helper()
	times := value[[]float64](b, "times")
	slices.Sort(times)
	return times
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }
func p95(sorted []float64) float64    { return sorted[len(sorted)*95/100] }

// From a key to its glyph: the terminals take turns, so that both have the same of what else this machine does.
func TestTimeFromAKeyToItsGlyph(t *testing.T) {
	measures(t)
	const rounds, letters = 30, 10
	p := newPlace(t)
	id := p.starts("build", "exec cat")
	own := open(t, p.serve("--allow-typing"))
	own.opens(id)
	own.takes()
	value[bool](own, glyphs)
	tabs := []*tab{own}
	if *beside != "" {
		other := open(t, *beside)
		other.foreign, other.wanted = true, []string{""}
		other.reloads(`HTMLCanvasElement.prototype.getContext = () => null`) // It is to draw as the page does: into the document.
		other.sees(`document.querySelector(".xterm-rows")`)
		other.do(chromedp.Click(".xterm-screen", chromedp.NodeVisible))
		value[bool](other, glyphs)
		tabs = append(tabs, other)
	}
	for range rounds {
		for _, b := range tabs {
			b.types(letters)
		}
	}
	all := own.times()
	require.Len(t, all, rounds*letters)
	t.Logf("%d keys: median %.1f ms, p95 %.1f ms", len(all), median(all), p95(all))
	if len(tabs) > 1 {
		others := tabs[1].times()
		require.Len(t, others, rounds*letters)
		t.Logf("beside: median %.1f ms, p95 %.1f ms; ratio of the medians %.2f, of p95 %.2f", median(others), p95(others), median(all)/median(others), p95(all)/p95(others))
	}
}

// counted has a page count what its WebSockets are sent: bytes of output, screens that are painted anew, and the bytes that those stand for.
const counted = `window.output = window.screens = window.missed = 0;
window.WebSocket = class extends WebSocket {
	constructor(...args) {
		super(...args);
		let behind = 0;
		this.addEventListener("message", ({ data }) => {
			if (typeof data !== "string") {
				window.output += data.byteLength - 8;
				behind = Number(new DataView(data).getBigUint64(0));
				return;
			}
			const { kind, offset } = JSON.parse(data);
			if (kind !== "screen") return;
			window.screens++;
			window.missed += offset - behind;
			behind = offset;
		});
	}
};`

// The program does not wait for the page, which leaves out what it cannot show in time, and comes to the same end.
func TestTimeOf32MBOfOutput(t *testing.T) {
	measures(t)
	const size, times = 32 << 20, 5
	p := newPlace(t)
	write := p.fifo("fifo")
	id := p.starts("build", fmt.Sprintf(`while read -r n < fifo; do yes 'each line of output has 64 bytes with the newline at its end 64' | head -c %d; printf '%%s\n' "ended $n at $EPOCHREALTIME"; done`, size))
	b := open(t, p.serve())
	b.unwatched()
	b.reloads(counted)
	b.opens(id)
	b.sees(`document.querySelector("#screen .xterm-rows") && screens > 0`)
	for n := range times {
		value[int](b, "output = screens = missed = 0")
		begun := time.Now()
		write(fmt.Sprintln(n))
		b.shows(fmt.Sprint("ended ", n))
		shown := time.Now()
		ended := value[float64](b, fmt.Sprintf(`Number(document.querySelector("#screen .xterm-rows").textContent.match(/ended\s%d\sat\s([0-9.]+)/)[1])`, n))
		output, missed := value[int](b, "output"), value[int](b, "missed")
		t.Logf("the program took %.2f s, and the page had caught up %.2f s after its end; it was sent %.1f MB, and %d screens instead of %.1f MB",
			ended-seconds(begun), seconds(shown)-ended, float64(output)/1e6, value[int](b, "screens"), float64(missed)/1e6)
		assert.GreaterOrEqual(t, output+missed, size)
	}
}

// seconds is a time as bash's EPOCHREALTIME has it.
func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }
