package browser_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("pictures", "", "write pictures of the page into a `DIR`")

// draws writes a picture of the window, if that is wanted.
func (b *tab) draws(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644))
}

// prefers has the browser prefer dark or light.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// The page follows the system's dark or light, and fits a narrow window. docs/page/draw takes its pictures from here.
func TestThePageIsDarkLightAndNarrow(t *testing.T) {
	dir, err := os.MkdirTemp("", "demo") // Its name is shown.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	p := newPlaceIn(t, dir)
	require.NoError(t, os.MkdirAll(p.file("shop"), 0o700))
	code := "package shop\n\n// Total is what the goods cost, in cents.\nfunc Total(goods []Item) (sum int) {\n\tfor _, one := range goods {\n\t\tsum += one.Price\n\t}\n\treturn sum\n}\n"
	require.NoError(t, os.WriteFile(p.file("shop/total.go"), []byte(code), 0o600))
	p.limpet("run", "-s", "docs", "cd shop")
	p.limpet("run", "-s", "shop", "cd shop; export MODE=test")
	p.begins("run", "-s", "shop", `ls; printf '\033[32mok\033[0m    shop/cart   0.41s\n\033[31mFAIL\033[0m  shop/total  0.12s\n'; exit 1`)()
	p.limpet("run", "-s", "shop", `for i in 25 50 75 100; do printf '\rdownloading %3d%%' $i; done; echo; echo "fetched 3 modules"`)
	p.limpet("jobs", "start", "-s", "shop", `echo "listening at 127.0.0.1:8080"; exec sleep 1000`)
	id := p.starts("shop", `PS1='> ' exec bash --norc --noprofile -i`)
	p.agent("rm -rf build", "--approve", "ask")
	for _, text := range []string{"cat -n total.go", "grep --color=always -n sum total.go", "ls --color=always -d /usr/bin /etc/hostname"} {
		p.limpet("term", "-s", "shop", "send", "--wait-silence", "300ms", id, text, "Enter")
	}
	b := open(t, p.serve("--allow-typing"))
	background := func() string { return value[string](b, "getComputedStyle(document.body).backgroundColor") }
	b.do(chromedp.EmulateViewport(960, 720), prefers("dark"))
	b.reads("#sessions .name", "shop")
	b.reads("#questions-list .text", "rm -rf build") // It has moved what is below it.
	b.do(chromedp.Click(`#sessions button[data-key^="shop "]`, chromedp.NodeVisible))
	b.reads("#log .line", "fetched 3 modules")
	b.reads("#questions", "A question waits")
	b.reads("#jobs-summary", "Jobs: 1 running")
	assert.Equal(t, "rgb(22, 24, 27)", background())
	b.opens(id)
	b.shows("/etc/hostname")
	b.draws("dark")

	b.do(prefers("light"))
	assert.Equal(t, "rgb(251, 251, 250)", background())
	b.takes()
	b.do(keys(0, "clear"+kb.Enter))
	prompt := row(`text.trim() === ">"`) // Else the terminal echoes what is typed, and the shell again.
	b.sees("!" + row(`text.includes("hostname")`) + " && " + prompt)
	b.do(keys(0, "head -n 4 total.go; seq 3"+kb.Enter))
	b.sees(row(`text.trim() === "3"`))
	b.sees(prompt)
	b.do(keys(0, "# a person types here"))
	b.shows("# a person types here")
	b.draws("light")

	b.do(chromedp.Click("#terminal-close", chromedp.NodeVisible), chromedp.EmulateViewport(390, 780), prefers("dark"))
	b.reads("#log .line", "fetched 3 modules")
	assert.LessOrEqual(t, value[int](b, "document.documentElement.scrollWidth"), 390)
	assert.False(t, strings.Contains(b.text("#sessions"), "undefined"))
	b.draws("narrow")
}
