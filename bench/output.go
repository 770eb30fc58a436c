package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/shell"
)

const megabyte = 1 << 20

// redirected is what the large output is compared with: the shell writes it to
// a file and nobody reads it.
const redirected = "bash -c 'cmd >file'"

// output measures what it costs that output goes through limpet's files. Limpet
// keeps the ends of it, within its default limit, and gives back the rest;
// the other side truncates the file of the time before. So both pay once per
// command for the memory to be freed.
func (b *bench) output() error {
	size := int64(b.some(256)) * megabyte
	script := fmt.Sprintf("head -c %d /dev/zero", size)
	file := filepath.Join(b.files, "output")
	defer os.Remove(file) // b.close does it too, but it is large.

	limpet, oneshot, bash := &limpetSide{}, &oneshotSide{}, &bashSide{flag: "-c"}
	for _, s := range []side{limpet, oneshot, bash} {
		if err := s.open(b, b.files); err != nil {
			return err
		}
		defer s.close() // What it says afterwards changes no sample.
	}
	r := rules{rounds: 24, batch: 1, pause: 20 * time.Millisecond}
	if b.quick {
		r.rounds = 8
	}
	all, err := b.contest(fmt.Sprintf("%d MB of output", size/megabyte), script, r, []entrant{
		{limpetName, timed(limpet, script, size)},
		{oneshot.name(), timed(oneshot, script, size)},
		{redirected, timed(bash, script+" >"+file, 0)},
	})
	if err != nil {
		return err
	}
	b.report.compare(all, within(redirected, 1.2))
	return nil
}

// The bounds of the flood. The disk's is the room that limpet asks for before
// it uses /dev/shm.
const (
	floodLimit  = 1 * megabyte // per stream
	floodMemory = 32 * megabyte
	floodDisk   = 256 * megabyte
)

// flood shows that memory and disk stay bounded while a command writes far
// more than is kept.
func (b *bench) flood() error {
	size := int64(b.some(10)) << 30
	opts := b.shellOptions()
	opts.OutputLimit = floodLimit
	sh, err := shell.Start(b.ctx, opts)
	if err != nil {
		return err
	}
	defer sh.Close() // Always nil.
	debug.FreeOSMemory()
	resetPeak()

	ctx, cancel := context.WithCancel(b.ctx)
	peaks := make(chan usage)
	go func() { peaks <- watchUsage(ctx, b.files, 3*time.Millisecond) }()
	began := time.Now()
	res, err := sh.Run(b.ctx, fmt.Sprintf("head -c %d /dev/zero", size))
	took := time.Since(began)
	cancel()
	peak := <-peaks
	if err != nil {
		return err
	}
	if res.ExitCode != 0 || res.Stdout.Total != size {
		return fmt.Errorf("exit code %d, %d bytes of output, not %d", res.ExitCode, res.Stdout.Total, size)
	}
	peak.rss = max(peak.rss, peakRSS())
	what := fmt.Sprintf("%d GB of output, of which 1 MB is kept", size>>30)
	rate := float64(size) / megabyte / took.Seconds()
	b.report.fact(what, fmt.Sprintf("took %s, %.0f MB/s", show(took), rate), "", true)
	b.report.fact(what+": memory", fmt.Sprintf("peak: heap %s, Go in all %s, resident %s", mb(peak.heap), mb(peak.goSys), mb(peak.rss)),
		"Go's under "+mb(floodMemory), peak.goSys < floodMemory)
	b.report.fact(what+": disk", "peak "+mb(peak.disk), "under "+mb(floodDisk), peak.disk < floodDisk)
	return nil
}

// usage is what the program had at most.
type usage struct{ heap, goSys, rss, disk int64 }

// watchUsage samples every so often until ctx ends.
func watchUsage(ctx context.Context, dir string, every time.Duration) (peak usage) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.heap = max(peak.heap, int64(m.HeapInuse))
		peak.goSys = max(peak.goSys, int64(m.Sys-m.HeapReleased))
		peak.disk = max(peak.disk, allocated(dir))
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
	}
}

// allocated is what the files below dir take on disk: a file that limpet has
// punched a hole into is smaller than it says.
func allocated(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // Files come and go.
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}

// resetPeak forgets the highest resident size so far (proc(5), clear_refs).
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakRSS is the highest resident size since; 0 where there is no /proc.
func peakRSS() int64 { return statusField("VmHWM:") }

// statusField is a size in /proc/self/status.
func statusField(name string) int64 { return statusOf("self", name) }

func statusOf(pid, name string) int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "status")) // Empty where there is no /proc.
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			var kb int64
			_, _ = fmt.Sscan(rest, &kb) // 0 if it is no number.
			return kb << 10
		}
	}
	return 0
}
