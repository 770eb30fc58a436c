package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/shell"
)

// sessions opens many shells at once and runs a command in each.
func (b *bench) sessions() error {
	n := b.some(500)
	debug.FreeOSMemory()
	instances, rss := inotifyInstances(), statusField("VmRSS:")
	shells := make([]*shell.PersistentShell, 0, n)
	defer func() { closeAll(shells) }()

	began := time.Now()
	for range n {
		sh, err := shell.Start(b.ctx, b.shellOptions())
		if err != nil {
			return fmt.Errorf("session %d: %w", len(shells)+1, err)
		}
		shells = append(shells, sh)
	}
	opened := time.Since(began)

	began = time.Now()
	bashes := make([]string, n)
	for i, sh := range shells {
		res, err := sh.Run(b.ctx, "echo $$")
		if err == nil {
			err = res.Err()
		}
		if err != nil {
			return fmt.Errorf("a command in session %d: %w", i+1, err)
		}
		bashes[i] = strings.TrimSpace(res.Stdout.String())
	}
	ran := time.Since(began)
	debug.FreeOSMemory()
	instances = inotifyInstances() - instances
	rss = statusField("VmRSS:") - rss
	bashRSS, bashOwn := memoryOf(bashes)

	began = time.Now()
	closeAll(shells)
	closed := time.Since(began)
	shells = nil

	what := fmt.Sprintf("%d sessions open at once", n)
	b.report.fact(what, fmt.Sprintf("opened in %s, a command in each in %s, all closed in %s", show(opened), show(ran), show(closed)), "", true)
	b.report.fact(what+": inotify instances", strconv.Itoa(instances), "1", instances == 1)
	b.report.fact(what+": memory of one", fmt.Sprintf("%d KB in Go; its bash %s resident, %s of it not shared",
		rss/int64(n)>>10, mb(bashRSS), mb(bashOwn)), "", true)
	return nil
}

func closeAll(shells []*shell.PersistentShell) {
	var wait sync.WaitGroup
	for _, sh := range shells {
		wait.Go(func() { _ = sh.Close() }) // Always nil.
	}
	wait.Wait()
}

// descriptors returns what the open descriptors of this process are.
func descriptors() []string {
	names, _ := filepath.Glob("/proc/self/fd/*") // None where there is no /proc.
	var links []string
	for _, name := range names {
		if link, err := os.Readlink(name); err == nil { // The directory's own is gone.
			links = append(links, link)
		}
	}
	return links
}

func inotifyInstances() (n int) {
	for _, link := range descriptors() {
		if link == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// memoryOf returns the median resident size of processes, and of the part that
// is theirs alone: the program's text is there once for all of them.
func memoryOf(pids []string) (rss, own int64) {
	var all, private []int64
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
		if err != nil {
			continue
		}
		size := make(map[string]int64)
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
				n, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it is no number.
				size[fields[0]] = n << 10
			}
		}
		all = append(all, size["Rss:"])
		private = append(private, size["Private_Clean:"]+size["Private_Dirty:"])
	}
	return median(all), median(private)
}

// kinds of commands for the leak check: each leaves something of its own to be
// cleaned up.
var kinds = []string{"true", "x=$((x+1))", "echo hello", "cd /; cd - >/dev/null", "f() { :; }; f", "false || :", "echo error >&2", "echo a | { read -r b; }", "/bin/true", "sleep 0 &"}

// leaks counts goroutines and descriptors before and after many commands in
// one shell.
func (b *bench) leaks() error {
	sh, err := shell.Start(b.ctx, b.shellOptions())
	if err != nil {
		return err
	}
	defer sh.Close() // Always nil.
	many := func(n int) error {
		for i := range n {
			res, err := sh.Run(b.ctx, kinds[i%len(kinds)])
			if err = errors.Join(err, res.Err()); err != nil {
				return fmt.Errorf("command %d: %w", i+1, err)
			}
		}
		time.Sleep(300 * time.Millisecond) // The last job ends, the state is saved.
		return nil
	}
	n := b.some(10_000)
	if err := many(100); err != nil { // What a shell keeps ready, it has now.
		return err
	}
	goroutines, fds := runtime.NumGoroutine(), len(descriptors())
	began := time.Now()
	if err := many(n); err != nil {
		return err
	}
	took := time.Since(began)
	moreGoroutines, moreFDs := runtime.NumGoroutine()-goroutines, len(descriptors())-fds
	what := fmt.Sprintf("%d commands in one shell", n)
	b.report.fact(what, fmt.Sprintf("took %s; goroutines %d%+d, descriptors %d%+d", show(took), goroutines, moreGoroutines, fds, moreFDs),
		"no growth", moreGoroutines <= 0 && moreFDs <= 0)
	return nil
}
