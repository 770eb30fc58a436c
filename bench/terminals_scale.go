package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// manyTerminals has many terminals that do nothing, and weighs them: first as nobody looks
// at their screens, then when somebody has.
func (b *bench) manyTerminals() error {
	for _, n := range []int{100, 1000} {
		if err := b.idleTerminals(b.some(n)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) idleTerminals(n int) error {
	return b.withTerminals(n, func(r *terminal.Registry) error {
		goroutines, fds := runtime.NumGoroutine(), len(descriptors())
		heap, rss := liveHeap(), statusField("VmRSS:")
		began := time.Now()
		list := make([]*terminal.Terminal, n)
		for i := range list {
			t, err := r.Start(b.ctx, terminal.Spec{Argv: []string{"sleep", "1000"}})
			if err != nil {
				return fmt.Errorf("terminal %d: %w", i+1, err)
			}
			list[i] = t
		}
		started := time.Since(began)
		unseen, resident := liveHeap()-heap, statusField("VmRSS:")-rss
		goroutines, fds = runtime.NumGoroutine()-goroutines, len(descriptors())-fds
		for _, t := range list {
			if _, err := t.Screen(); err != nil {
				return err
			}
		}
		seen := liveHeap() - heap
		before := cpuOf(nil)
		began = time.Now()
		time.Sleep(idleFor)
		idle := before.until(cpuOf(nil), time.Since(began))

		began = time.Now()
		listed, err := r.List()
		if err != nil {
			return err
		}
		list = nil
		running := 0
		for _, info := range listed {
			if info.State == terminal.Running {
				running++
			}
		}
		if running != n {
			return fmt.Errorf("%d of %d terminals run", running, n)
		}
		took := time.Since(began)
		began = time.Now()
		if err := r.Close(); err != nil {
			return err
		}
		closed := time.Since(began)

		each := func(total int) string { return digits(float64(total) / float64(n)) }
		what := fmt.Sprintf("%d idle terminals at once", n)
		b.report.fact(what, fmt.Sprintf("started in %s, listed in %s, all closed in %s; %s", show(started), show(took), show(closed), idle), "", true)
		b.report.fact(what+": of the program for one", fmt.Sprintf("%d KB in Go (%s KB of heap, %s KB when the screen was looked at), %s goroutines, %s descriptors",
			resident/int64(n)>>10, each(int(unseen>>10)), each(int(seen>>10)), each(goroutines), each(fds)), "", true)
		return nil
	})
}
