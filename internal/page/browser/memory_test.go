package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal"
)

// memory is what a tab and limpet serve hold, in bytes.
type memory struct {
	heap  int // of the tab's JavaScript, after a collection
	tab   int // resident, of the process that renders the tab
	serve int // resident, of limpet serve
}

func (m memory) String() string {
	const mega = 1e6
	return fmt.Sprintf("heap of the tab %.1f MB, its process %.0f MB, limpet serve %.1f MB", float64(m.heap)/mega, float64(m.tab)/mega, float64(m.serve)/mega)
}

// unwatched has the browser tell the test of no more requests: it would keep what they were answered in the tab's process.
func (b *tab) unwatched() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.Disable, cdp.Empty{})
		return err
	}))
}

// memory measures the tab and a limpet serve. The tab must be the one that works most in the browser.
func (b *tab) memory(serve int) (m memory) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return err
		}
		usage, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		m.heap = int(usage.UsedSize + usage.BackingStorageSize)
		return err
	}))
	all, err := chromedp.CallBrowser(b.ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	require.NoError(b.t, err)
	busiest := &systeminfo.ProcessInfo{CPUTime: -1}
	for _, one := range all.ProcessInfo {
		if one.Type == "renderer" && one.CPUTime > busiest.CPUTime {
			busiest = one
		}
	}
	m.tab, m.serve = resident(b.t, int(busiest.ID)), resident(b.t, serve)
	return m
}

// resident returns how much memory of a process is resident, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kilo, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kilo << 10
}

// grows measures the memory of a tab that shows what does not end, and fails the test if its heap or limpet serve grows on and on.
func (b *tab) grows(serve int) {
	b.t.Helper()
	b.t.Log("at its beginning: ", b.memory(serve))
	begun := time.Now()
	var first, last memory
	for _, part := range []time.Duration{10, 2, 1} {
		<-time.After(time.Until(begun.Add(*measure / part)))
		last = b.memory(serve)
		b.t.Logf("after %v: %v", time.Since(begun).Round(time.Second), last)
		if first == (memory{}) {
			first = last
		}
	}
	assert.Less(b.t, last.heap, 2*first.heap)
	assert.Less(b.t, last.tab, 2*first.tab)
	assert.Less(b.t, last.serve, 2*first.serve)
}

func TestMemoryOfATerminalThatPrintsOn(t *testing.T) {
	measures(t)
	p := newPlace(t)
	id := p.starts("build", "exec yes")
	link, serve, _ := p.servingBy()
	b := open(t, link)
	b.unwatched()
	b.opens(id)
	b.shows("y")
	b.grows(serve)
	var info terminal.Info
	require.NoError(t, json.Unmarshal([]byte(p.limpet("term", "-s", "build", "info", id, "--json")), &info))
	t.Logf("the terminal has printed %d MB", info.Bytes/1e6)
}

func TestMemoryOfACommandThatPrintsOn(t *testing.T) {
	measures(t)
	p := newPlace(t)
	p.limpet("run", "-s", "build", "true")
	link, serve, _ := p.servingBy()
	b := open(t, link)
	b.unwatched()
	b.reads("#sessions .name", "build")
	b.do(chromedp.Click(`#sessions button[data-key^="build "]`, chromedp.NodeVisible))
	b.reads("#log .script", "true")
	p.begins("run", "-s", "build", "yes")
	b.reads("#log .line", "y")
	b.grows(serve)
	t.Log("the page says: ", b.text("#log .note:not([hidden])"))
}
