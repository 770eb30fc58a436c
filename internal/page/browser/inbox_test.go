package browser_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// settled waits until the inbox takes answers.
func (b *tab) settled() {
	b.t.Helper()
	b.sees(`!document.getElementById("inbox").classList.contains("settles")`)
}

// answers presses the button of an answer to the question that waits.
func (b *tab) answers(answer string) {
	b.t.Helper()
	button := `#questions-list button[data-answer="` + answer + `"]`
	b.sees("document.querySelector(" + quote(button) + ") !== null")
	b.settled()
	b.do(chromedp.Click(button, chromedp.NodeVisible))
}

func (p *place) exists(name string) bool {
	_, err := os.Stat(p.file(name))
	return err == nil
}

func (p *place) awaits(name string) {
	p.t.Helper()
	testenv.Await(p.t, name, func() bool { return p.exists(name) })
}

func TestAQuestionIsAnsweredOnThePage(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.Mkdir(p.file("work"), 0o700))
	b := open(t, p.serve("--allow-answers"))
	b.reads("#none", "There are no sessions.")
	leaves := p.agent("cd work && touch '<b>\u202e' one", "--approve", "ask")
	b.reads("#questions", "A question waits")
	b.reads(".sheet .title", ", asks: may this run in "+p.dir+"?")
	b.reads(".sheet .text", `cd work && touch '<b>\u202e' one`)
	b.reads(".sheet .notes", "it writes files")
	b.sees(`document.activeElement === document.body`)
	assert.False(t, p.exists("work/one"))
	b.answers("once")
	p.awaits("work/one")
	b.sees(`document.querySelectorAll("#questions-list > li").length === 0`)
	b.reads("#inbox-status", "Answered: yes, this time")
	b.reads("#answered-list", "yes, this time")

	leaves()
	p.agent("touch two", "--approve", "ask")
	b.sees(`document.querySelector('#questions-list button[data-answer="no"]') !== null`)
	b.settled()
	b.do(chromedp.Click(`#questions-list input`, chromedp.NodeVisible), keys(0, "jk: not that"+kb.Enter))
	b.reads("#answered-list", "no: jk: not that")
	assert.False(t, p.exists("two"))
}

// A person who may not answer reads what to run.
func TestAQuestionIsReadWithoutTheRightToAnswer(t *testing.T) {
	p := newPlace(t)
	b := open(t, p.serve("--allow-typing"))
	p.agent("touch one", "--approve", "ask")
	b.reads(".sheet .text", "touch one")
	b.reads(".sheet code", "limpet approvals answer ")
	assert.Zero(t, value[int](b, `document.querySelectorAll("#questions-list button, #questions-list input").length`))
}

// What is pressed when a button has just appeared, or moved, was meant for something else.
func TestAButtonThatHasJustAppearedAnswersNothing(t *testing.T) {
	p := newPlace(t)
	b := open(t, p.serve("--allow-answers"))
	b.reads("#none", "There are no sessions.")
	value[bool](b, `(() => {
		new MutationObserver(() => {
			const button = document.querySelector('#questions-list button[data-answer="once"]');
			if (!button || window.tried) return;
			window.tried = true;
			button.click();
			button.focus();
			button.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
			setTimeout(() => button.click(), 200);
		}).observe(document.getElementById("questions-list"), { subtree: true, childList: true });
		return true;
	})()`)
	p.agent("touch one", "--approve", "ask")
	b.reads("#inbox-status", "Nothing was answered")
	b.settled()
	assert.Equal(t, 1, value[int](b, `document.querySelectorAll("#questions-list > li").length`))
	assert.False(t, p.exists("one"))
	b.answers("once")
	p.awaits("one")
}

// The keys that somebody types into a terminal while a question comes are the terminal's, and answer nothing.
func TestKeysTypedIntoATerminalAnswerNothing(t *testing.T) {
	p := newPlace(t)
	id := p.starts("build", `stty -echo; while read -r x; do echo "[$x]"; done`)
	b := open(t, p.serve("--allow-typing", "--allow-answers"))
	b.opens(id)
	b.takes()
	p.agent("touch one", "--approve", "ask")
	for done := false; !done; time.Sleep(20 * time.Millisecond) {
		b.do(keys(0, "y \ta"+kb.Enter+kb.Enter))
		done = value[bool](b, `document.querySelectorAll("#questions-list > li .title").length > 0`)
	}
	b.settled()
	b.do(keys(0, "y \ta"+kb.Enter+kb.Enter+"last"+kb.Enter))
	b.shows("[last]")
	b.sees(`document.querySelector("#terminal.taken .xterm")?.contains(document.activeElement)`)
	// Also if the pointer has put the focus elsewhere: keys are not for the inbox then.
	value[bool](b, `(() => { const d = document.querySelector("#questions-list details"); d.open = true; d.querySelector("button").focus(); return true; })()`)
	b.settled()
	b.do(keys(0, kb.Enter), keys(0, " "))
	b.reads("#inbox-status", "keys are for the terminal that is taken over")
	assert.Equal(t, 1, value[int](b, `document.querySelectorAll("#questions-list > li").length`))
	assert.Contains(t, b.text("#questions"), "A question waits (agent-")
	assert.False(t, p.exists("one"))
	b.answers("once") // By the pointer.
	p.awaits("one")
}

// A password goes to the program that asks, and stays nowhere on the page.
func TestAPasswordIsGivenOnThePage(t *testing.T) {
	const secret = "s3cret-of-nobody"
	p := newPlace(t)
	b := open(t, p.serve("--allow-answers"))
	b.wanted = []string{"[DOM] Password field is not contained in a form"} // It is sent by no form.
	b.reads("#none", "There are no sessions.")
	p.agent(`"$SUDO_ASKPASS" 'Password: ' >given; mv given got`, "--askpass")
	b.reads(".sheet .title", "a program asks for a password, with these words:")
	b.reads(".sheet .text", "Password: ")
	b.reads(".sheet .notes", "It runs as ")
	b.reads(".sheet .notes", "Beware: this is not the system's own sudo, ssh or git")
	field := `#questions-list input[type="password"][autocomplete="off"]`
	b.settled()
	b.do(chromedp.Click(field, chromedp.NodeVisible), keys(0, secret))
	assert.Equal(t, secret, value[string](b, "document.querySelector("+quote(field)+").value"))
	value[bool](b, "(window.kept = document.querySelector("+quote(field)+")) !== null")
	b.do(keys(0, kb.Enter))
	p.awaits("got")
	got, err := os.ReadFile(filepath.Join(p.dir, "got"))
	require.NoError(t, err)
	assert.Equal(t, secret+"\n", string(got))
	b.reads("#answered-list", "a program asks for a password: given")
	assert.Empty(t, value[string](b, "window.kept.value"), "nor in an element that is gone")
	assert.NotContains(t, value[string](b, "document.documentElement.outerHTML + location.href + JSON.stringify({...sessionStorage, ...localStorage})"), secret)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.asked {
		assert.NotContains(t, url, secret)
	}
}
