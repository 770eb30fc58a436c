package browser_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// says changes what the record of a session says, and returns the record.
func (p *place) says(name string, change func(record, spec map[string]any)) map[string]any {
	p.t.Helper()
	paths, err := filepath.Glob(p.file("state/limpet/keep/*/*/record.json"))
	require.NoError(p.t, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(p.t, err)
		var record map[string]any
		require.NoError(p.t, json.Unmarshal(b, &record))
		if record["name"] != name {
			continue
		}
		spec, _ := record["spec"].(map[string]any) // It has one.
		change(record, spec)
		path = filepath.Join(filepath.Dir(filepath.Dir(path)), record["id"].(string), "record.json")
		require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
		b, err = json.Marshal(record)
		require.NoError(p.t, err)
		require.NoError(p.t, os.WriteFile(path, b, 0o600))
		return record
	}
	require.FailNow(p.t, "there is no session "+name)
	return nil
}

// What records say of forks may be wrong. Each session is shown all the same.
func TestSessionsThatComeFromEachOtherAreShown(t *testing.T) {
	p := newPlace(t)
	p.limpet("run", "-s", "one", "true")
	p.limpet("session", "fork", "one", "two")
	two := p.says("two", func(map[string]any, map[string]any) {})["id"]
	lie := func(_, spec map[string]any) { spec["forked_from"] = map[string]any{"id": two, "name": "two"} }
	p.says("one", lie)
	b := open(t, p.serve())
	b.sees(tree + ` === "two[one]"`)
	b.reads("#sessions button", "forked from one")

	b.wanted = []string{"404"} // The page may just be asking for the jobs.

	// They have ended, and one of them is there twice, below itself.
	p.limpet("session", "close", "one", "two")
	p.says("one", lie) // Its keeper knew better.
	p.says("two", func(record, _ map[string]any) { record["session"], record["id"] = two, "again" })
	b.sees(`document.querySelectorAll("#sessions .ended").length === 2`)
	b.sees(tree + ` === "two[one]"`)
	p.limpet("run", "-s", "three", "true")
	b.sees(tree + ` === "three two[one]"`)
	assert.Equal(t, "connected, read-only", b.text("#status"))
}
