package browser_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// One of each for all tests.
var (
	limpet  string          // the program
	browser context.Context // nil if there is no chromium
)

func TestMain(m *testing.M) {
	testenv.Reap()
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) (code int) {
	if testing.Short() {
		return m.Run() // Each test skips itself.
	}
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "limpet-browser-")
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil && code == 0 {
			code = fail(err)
		}
	}()
	limpet = filepath.Join(dir, "limpet")
	build := exec.Command("go", "build", "-o", limpet, "./cmd/limpet")
	build.Dir = "../../.." // As the library's own tests build it.
	if out, err := build.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("%w: %s", err, out))
	}
	program := installed()
	if program == "" {
		return m.Run() // As above.
	}
	end, err := startBrowser(program, filepath.Join(dir, "profile"))
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := end(); err != nil && code == 0 {
			code = fail(err)
		}
	}()
	return m.Run()
}

// installed returns the path of the browser for the tests; empty if there is none. The headless shell of chromium has no windows, and takes less than
// half of the processor's time. The tests pass in both, so it comes first. ./test all, measurements and pictures prefer chromium itself.
func installed() string {
	names := []string{"chromium-headless-shell", "chromium"}
	if testenv.All() || *measure > 0 || *pictures != "" {
		slices.Reverse(names)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startBrowser starts chromium, which end ends. What it leaves running all the same is killed by the reaper, and fails the tests.
func startBrowser(program, profile string) (end func() error, err error) {
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.DisableGPU, chromedp.WindowSize(1200, 800),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// All of it is asked for by limpet's address: nothing else is to be had.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Env("HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile), // Crash reports, fonts' caches.
	)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocated)
	begun := time.AfterFunc(testenv.Patience, cancel)
	_, err = chromedp.Run(ctx, chromedp.Navigate("about:blank"))
	begun.Stop()
	end = func() error {
		err := chromedp.Cancel(ctx)
		stop()
		chromedp.FromContext(ctx).Allocator.Wait()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return err
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting chromium: %w", err), end())
	}
	browser = ctx
	return end, nil
}
