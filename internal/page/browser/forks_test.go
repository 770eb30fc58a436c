package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// tree is the list of sessions, each item as its name and what it has below it in brackets.
const tree = `(() => {
	const of = (list) => [...list.children].map((item) => {
		const below = item.querySelector(":scope > ul");
		return item.querySelector(":scope > button .name").textContent + (below ? "[" + of(below) + "]" : "");
	}).join(" ");
	return of(document.getElementById("sessions"));
})()`

// Forks are lists in the items of their parents, for screen readers too, and keys go through them line by line.
func TestForksAreBelowTheirParents(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "base", "echo of base")
	p.limpet("session", "checkpoint", "base", "clean")
	p.limpet("run", "-s", "other", "echo of other")
	b := open(t, p.serve())
	b.sees(tree + ` === "other base"`)
	b.reads("#sessions button", "checkpoints: clean")
	p.limpet("session", "fork", "base", "try")
	p.limpet("session", "fork", "try", "deep")
	b.sees(tree + ` === "other base[try[deep]]"`)
	assert.Zero(t, value[int](b, `[...document.querySelectorAll("#sessions ul")].filter((list) => list.getAttribute("role") !== "list").length`))
	left := value[[]float64](b, `[...document.querySelectorAll("#sessions .name")].map((e) => e.getBoundingClientRect().left)`)
	assert.Less(t, left[1], left[2])
	assert.Less(t, left[2], left[3])
	assert.NotContains(t, b.text("#sessions"), "forked from", "it is to be seen")

	b.sees(`document.querySelector("#sessions button[aria-current] .name")?.textContent === "other"`)
	for _, name := range []string{"base", "try", "deep"} {
		b.do(chromedp.KeyEvent("j"))
		b.sees(`document.activeElement.querySelector(".name")?.textContent === ` + quote(name))
		assert.Equal(t, name, b.text("#name"))
	}
	b.do(chromedp.KeyEvent("k"))
	b.reads("#facts", "forked from base")
	b.sees(`(() => { window.before = document.activeElement; return before.querySelector(".name").textContent === "try"; })()`)

	b.do(chromedp.EmulateViewport(360, 640))
	assert.LessOrEqual(t, value[int](b, "document.documentElement.scrollWidth"), 360, "nothing is beside a narrow window")
	tops := value[[]float64](b, `[...document.querySelectorAll("#sessions button")].map((e) => e.getBoundingClientRect().top)`)
	assert.Equal(t, []float64{tops[0], tops[0], tops[0], tops[0]}, tops, "they are beside each other there")
	b.do(chromedp.EmulateViewport(1000, 700))

	// Without its parent a fork stands by itself, and is the same button, with the focus.
	p.limpet("session", "close", "base")
	b.sees(tree + ` === "try[deep] other base"`)
	b.reads("#sessions button[aria-current]", "forked from base")
	assert.True(t, value[bool](b, "document.activeElement === window.before && window.before.isConnected"))
	b.do(chromedp.KeyEvent("j"))
	b.sees(`document.activeElement.querySelector(".name")?.textContent === "deep"`)
}
