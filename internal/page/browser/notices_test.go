package browser_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// desktop stands in for that of the person, which headless browsers have not: it asks whether it may show something, and keeps what it is to show.
const desktop = `
	window.shown = [];
	window.Notification = class extends EventTarget {
		static permission = "default";
		static async requestPermission() { return Notification.permission = "granted"; }
		constructor(title, options) { super(); window.shown.push(title + ": " + options.body); window.last = this; }
	};
	window.away = false;
	document.hasFocus = () => !window.away;
`

// What happens in another session than the one that is shown is told, and by the desktop to whoever is away.
func TestNoticesAreSeen(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "build", "true")
	p.limpet("run", "-s", "other", "true")
	b := open(t, p.serve())
	b.do(chromedp.Func(func(ctx context.Context, at *chromedp.Target) error {
		_, err := cdp.Call(ctx, at, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: desktop})
		return err
	}))
	b.do(chromedp.Reload())
	b.reads("#name", "other")
	b.reads("#status", "connected")
	b.do(chromedp.Click("#notify", chromedp.NodeVisible))
	b.sees(`document.getElementById("notify").hidden`)

	p.limpet("jobs", "start", "-s", "build", "--watch", "ready", `echo 'ready <b>'; exit 3`)
	b.reads("#notices-list", "has ended: exit 3")
	b.reads("#notices-list", "printed line 1: ready <b>")
	assert.Empty(t, value[[]string](b, "window.shown"), "they look")
	assert.NotContains(t, value[string](b, "document.title"), "new")

	value[bool](b, "window.away = true")
	p.limpet("jobs", "start", "-s", "build", "exit 4")
	b.sees("window.shown.length === 1")
	assert.Contains(t, value[string](b, "window.shown[0]"), "limpet: build: job job-exit-")
	b.sees(`document.title === "[1 new] limpet"`)
	leaves := p.agent("touch one", "--approve", "ask")
	defer leaves()
	b.sees("window.shown.length === 2")
	assert.Contains(t, value[string](b, "window.shown[1]"), "may this run? touch one")
	b.reads("#questions", "A question waits")
	assert.NotContains(t, b.text("#notices-list"), "touch one", "it is in the inbox")
	b.sees(`document.title.startsWith("[2 new]")`)

	// Whoever comes back by the desktop sees the session.
	value[bool](b, `(window.away = false, window.dispatchEvent(new Event("focus")), true)`)
	b.sees(`!document.title.includes("new")`)
	b.reads("#sessions .name", "agent-") // It comes some time after its question. What moves the list may have a click go elsewhere.
	b.settled()
	b.do(chromedp.Click("#notices-list li:last-child button", chromedp.NodeVisible))
	b.reads("#name", "build")
	b.do(chromedp.Click("#notices-clear", chromedp.NodeVisible))
	b.sees(`document.getElementById("notices-list").childElementCount === 0`)
	b.sees(`document.activeElement?.id === "notices-list"`)
}
