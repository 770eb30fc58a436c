package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// place is a home with sessions of its own. They are closed at its end.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return newPlaceIn(t, testenv.TempDir(t))
}

func newPlaceIn(t *testing.T, dir string) *place {
	t.Helper()
	testenv.Slow(t)
	if browser == nil {
		t.Skip("no chromium")
	}
	t.Parallel() // The page asks for its lists every 2 s: tests wait, for the most part.
	p := &place{t, dir}
	t.Cleanup(func() {
		if names := strings.Fields(p.limpet("session", "list", "-q")); len(names) > 0 {
			p.limpet(append([]string{"session", "close"}, names...)...)
		}
	})
	return p
}

func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

// command is limpet with arguments, in the place.
func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(limpet, args...)
	cmd.Dir, cmd.Stderr = p.dir, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "XDG_STATE_HOME="+p.file("state"), "TMPDIR="+p.dir, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// limpet runs it to its end, which is to be a success, and returns what it has printed.
func (p *place) limpet(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).Output()
	require.NoError(p.t, err, "%q: %s", args, out)
	return strings.TrimSpace(string(out))
}

// begins starts limpet, and returns what waits for its end.
func (p *place) begins(args ...string) (ended func()) {
	p.t.Helper()
	cmd := p.command(args...)
	require.NoError(p.t, cmd.Start())
	ended = sync.OnceFunc(func() { _ = cmd.Wait() }) // What a test wants of it is seen on the page.
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // It has ended, unless the test failed.
		ended()
	})
	return ended
}

// fifo makes one, and returns what writes into it when somebody reads.
func (p *place) fifo(name string) (write func(text string)) {
	p.t.Helper()
	require.NoError(p.t, syscall.Mkfifo(p.file(name), 0o600))
	return func(text string) {
		p.t.Helper()
		require.NoError(p.t, os.WriteFile(p.file(name), []byte(text), 0))
	}
}

// serve starts limpet serve, and returns the link.
func (p *place) serve(flags ...string) (link string) {
	p.t.Helper()
	link, _ = p.serving(flags...)
	return link
}

// serving starts limpet serve, which stop ends.
func (p *place) serving(flags ...string) (link string, stop func()) {
	p.t.Helper()
	link, _, stop = p.servingBy(flags...)
	return link, stop
}

// servingBy starts limpet serve, and returns its pid, too.
func (p *place) servingBy(flags ...string) (link string, pid int, stop func()) {
	p.t.Helper()
	cmd := p.command(append([]string{"serve"}, flags...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
		_ = cmd.Wait()                          // It ends by the signal.
	})
	p.t.Cleanup(stop)
	link, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(p.t, err)
	return strings.TrimSpace(link), cmd.Process.Pid, stop
}

// tab is one of the browser, which has nothing in common with others. It fails its test if the page asks anybody else than limpet serve, or
// has anything to say in the browser's console.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	asked  []string // the addresses of all requests
	faults []string // what is in the console, and is nothing for a page that works
	wanted []string // parts of faults that are the test's

	foreign bool // the page is another one, which may ask for anything
}

// open opens a link in a new tab.
func open(t *testing.T, link string) *tab {
	t.Helper()
	b := &tab{t: t}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	_, err := chromedp.Run(b.ctx, chromedp.Navigate("about:blank")) // The tab lives as long as the context of its first action.
	require.NoError(t, err)
	origin, _, _ := strings.Cut(link, "/#")
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, url := range b.asked {
			if b.foreign {
				break
			}
			own := strings.HasPrefix(url, origin+"/") || strings.HasPrefix(url, strings.Replace(origin, "http:", "ws:", 1)+"/") || url == "about:blank"
			assert.True(t, own, "the page asked for %s", url)
		}
		for _, fault := range b.faults {
			assert.True(t, b.isWanted(fault), "the page's console has: %s", fault)
		}
	})
	b.do(chromedp.Navigate(link))
	return b
}

func (b *tab) isWanted(fault string) bool {
	for _, part := range b.wanted {
		if strings.Contains(fault, part) {
			return true
		}
	}
	return false
}

// note keeps what the browser tells of the page.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.asked = append(b.asked, e.URL)
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("%s: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s%s", e.Type, arg.Description, arg.Value))
		}
	case *log.EventEntryAdded:
		b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// do has the browser do something. The page may take an element out, as a list puts its items into another order, between
// its being found and being pressed: then it is looked for again, and nothing was done with it.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testenv.Patience)
	defer cancel()
	for _, step := range steps {
		err := chromedp.Do(ctx, step)
		for err != nil && strings.Contains(err.Error(), "Could not find node with given id") {
			err = chromedp.Do(ctx, step)
		}
		require.NoError(b.t, err)
	}
}

// value is that of an expression of JavaScript; a promise is waited for.
func value[T any](b *tab, js string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testenv.Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Log("the page was:\n", b.text("body"))
	}
	require.NoError(b.t, err, "%s", js)
	return v
}

// sees waits until an expression of JavaScript holds: it is looked at whenever the page changes.
func (b *tab) sees(js string) {
	b.t.Helper()
	value[bool](b, `new Promise((done) => {
		const look = () => { if (`+js+`) { observer.disconnect(); done(true); } };
		const observer = new MutationObserver(look);
		observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		look();
	})`)
}

// reads waits until the element that a selector chooses has a text.
func (b *tab) reads(selector, text string) {
	b.t.Helper()
	b.sees(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))", quote(selector), quote(text)))
}

// text is that of the element that a selector chooses, as a person sees it.
func (b *tab) text(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testenv.Patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%s)?.innerText ?? \"\"", quote(selector)))) // Without it is empty.
	return text
}

// quote makes a literal of JavaScript.
func quote(text string) string {
	b, _ := json.Marshal(text) // A text cannot fail.
	return string(b)
}
