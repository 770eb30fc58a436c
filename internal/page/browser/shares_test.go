package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shares makes a share link by the page, of what a button shares, and returns it.
func (b *tab) shares(button, rights string) (link string) {
	b.t.Helper()
	b.do(chromedp.Click(button, chromedp.NodeVisible))
	b.sees(`!document.getElementById("share").hidden`)
	value[bool](b, `(() => { document.getElementById("share-typing").value = `+quote(rights)+`; return true; })()`)
	b.do(chromedp.Click(`#share-form button[type="submit"]`, chromedp.NodeVisible))
	b.sees(`document.getElementById("share-link").value !== ""`)
	link = value[string](b, `document.getElementById("share-link").value`)
	require.Contains(b.t, link, "/#")
	b.reads("#share-made", "it is shown once")
	return link
}

// A person shares a session, for viewing: whoever opens the link sees it as it goes on, and nothing else, until the link is revoked.
func TestASessionIsSharedForViewing(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "other", "echo of another one")
	id := p.starts("build", "echo on the terminal; exec sleep 1000")
	p.limpet("run", "-s", "build", "echo before")
	link := p.serve("--allow-typing", "--allow-answers")
	p.agent("touch one", "--approve", "ask")
	b := open(t, link)
	b.reads("#questions", "A question waits")
	b.reads("#sessions .name", "build")
	b.do(chromedp.Click(`#sessions button[data-key^="build "]`, chromedp.NodeVisible))
	b.reads("#name", "build")
	given := b.shares("#share-session", "view")
	assert.NotEqual(t, link, given)
	b.reads("#share-list", "build, viewing, until")

	guest := open(t, given)
	guest.wanted = []string{"401", "net::ERR_"} // When it is revoked.
	guest.reads("#status", "connected, read-only, shared with you until")
	guest.reads("#log .output", "before")
	guest.opens(id)
	guest.shows("on the terminal")
	assert.True(t, value[bool](guest, `document.getElementById("terminal-take").hidden && document.getElementById("share-session").hidden && document.getElementById("share-terminal").hidden`))
	assert.True(t, value[bool](guest, `document.getElementById("inbox").hidden`), "there is no inbox")
	assert.Equal(t, 1, value[int](guest, `document.querySelectorAll("#sessions li").length`))
	p.limpet("run", "-s", "build", "echo while")
	guest.reads("#log .output", "while")
	for _, never := range []string{"other", "touch one", "uestion"} {
		assert.NotContains(t, guest.text("body"), never)
	}
	assert.NotContains(t, value[string](guest, "location.href"), "#", "the token is not in the address bar")

	b.do(chromedp.Click("#share-list button", chromedp.NodeVisible))
	b.reads("#share-status", "Revoked")
	assert.Empty(t, value[string](b, `document.getElementById("share-link").value`))
	guest.reads("#status.bad", "it was revoked, or its time is over")
	guest.reads("#terminal-status", "this link is not valid any more")
	p.limpet("run", "-s", "build", "echo later")
	b.reads("#log .output", "later")
	assert.NotContains(t, guest.text("#log"), "later")
	guest.mu.Lock()
	defer guest.mu.Unlock()
	for _, url := range guest.asked {
		assert.False(t, strings.Contains(url, "/api/questions") || strings.Contains(url, "/api/shares"), "a page that was shared asks for nothing that it may not have: %s", url)
	}
}

// A person shares one terminal, for typing, and takes it back.
func TestATerminalIsSharedForTyping(t *testing.T) {
	p := newPlace(t)
	p.starts("build", "echo of another terminal; exec sleep 1000")
	id := p.starts("build", `stty -echo; while read -r x; do echo "[$x]"; done`)
	p.limpet("run", "-s", "build", "echo of the session")
	b := open(t, p.serve("--allow-typing"))
	b.opens(id)
	b.sees(`!document.getElementById("terminal-take").hidden`)
	guest := open(t, b.shares("#share-terminal", "type"))
	guest.reads("#facts", "one of its terminals is shared with you")
	guest.takes()
	guest.do(keys(0, "of the guest\r"))
	b.shows("[of the guest]")
	guest.shows("[of the guest]")
	assert.Equal(t, 1, value[int](guest, `document.querySelectorAll("#terminals-list li").length`))
	assert.True(t, value[bool](guest, `document.getElementById("log").hidden && document.getElementById("jobs").hidden`))
	assert.NotContains(t, guest.text("body"), "of another terminal")
	b.takes()
	guest.sees(`!document.getElementById("terminal").classList.contains("taken")`)
	guest.reads("#terminal-status", "another page has taken the terminal over")
	b.do(keys(0, "of the owner\r"))
	guest.shows("[of the owner]")
}

// A session that was closed and made anew under its name is another one.
func TestASharedSessionIsNoOtherOneOfThatName(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "build", "echo of the first")
	p.limpet("jobs", "start", "-s", "build", "echo a job of the first")
	b := open(t, p.serve())
	b.reads("#log .output", "of the first")
	guest := open(t, b.shares("#share-session", "view"))
	guest.wanted = []string{"404"} // Of its jobs.
	b.wanted = guest.wanted        // As above.
	guest.reads("#log .output", "of the first")
	guest.reads("#jobs-summary", "Jobs: ")
	p.limpet("session", "close", "build")
	guest.reads("#log .note", "The session has ended.")
	p.limpet("run", "-s", "build", "echo of the second")
	b.sees(`[...document.querySelectorAll("#sessions button:not(.ended) .name")].some((e) => e.textContent === "build")`)
	b.do(chromedp.Click("#sessions button:not(.ended)", chromedp.NodeVisible))
	b.reads("#log .output", "of the second")
	later := open(t, b.shares("#share-session", "view"))
	later.reads("#log .output", "of the second")
	assert.Equal(t, 1, value[int](later, `document.querySelectorAll("#sessions li").length`))
	assert.NotContains(t, later.text("body"), "a job of the first")
	guest.do(chromedp.Reload())
	guest.reads("#none", "The session that was shared with you has ended.")
	assert.True(t, value[bool](guest, `document.getElementById("main").hidden`))
}
