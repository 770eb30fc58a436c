package transporttest

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

// endless is how long an endless command runs. At a gigabyte a second that is
// far above what is allowed to be kept.
const endless = time.Second

// mostDisk and mostHeap are what an endless command may take for a while: what
// is written between two looks at the files, on a machine that is busy.
const (
	mostDisk = 256 << 20
	mostHeap = 64 << 20
)

// sampler watches what a directory and the heap grow to.
type sampler struct {
	disk, heap int64
	stop, done chan struct{}
}

func sample(dir string) *sampler {
	m := &sampler{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for ticks := time.Tick(20 * time.Millisecond); ; {
			select {
			case <-m.stop:
				return
			case <-ticks:
			}
			m.disk = max(m.disk, testenv.Allocated(dir))
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			m.heap = max(m.heap, int64(mem.HeapAlloc))
		}
	}()
	return m
}

func (m *sampler) check(t *testing.T, what string) {
	t.Helper()
	close(m.stop)
	<-m.done
	t.Logf("%s: at most %d KiB of disk, %d KiB of heap", what, m.disk>>10, m.heap>>10)
	assert.Less(t, m.disk, int64(mostDisk), what)
	assert.Less(t, m.heap, int64(mostHeap), what)
}

// 28. `yes` for long: memory and disk stay bounded, the session stays usable.
func endlessOutput(t *testing.T, s suite) {
	dir := s.runtimeDir(t)
	x := s.start(t, func(o *shell.Options) { o.RuntimeDir = dir })
	x.setState()
	for _, script := range []string{"yes", "yes >&2", "cat /dev/zero", "yes | tee /dev/stderr", "while :; do echo y; done"} {
		m := sample(dir)
		res, _ := x.stopped(shell.ErrTimeout, command.Request{Script: script, Timeout: endless})
		m.check(t, script)
		assert.LessOrEqual(t, len(res.Stdout.Bytes()), shell.DefaultOutputLimit+100)
		assert.Positive(t, res.Stdout.Total+res.Stderr.Total)
		x.wantState()
	}
	m := sample(dir)
	_, err := x.do(command.Request{Script: "yes", Timeout: endless, Stdout: slowWriter{}})
	require.ErrorIs(t, err, shell.ErrTimeout)
	m.check(t, "yes, with a slow reader")

	// A job goes on writing when its command is long done.
	m = sample(dir)
	x.run("yes &") // What it wrote before the command ended is the command's.
	_, _ = x.stopped(shell.ErrTimeout, command.Request{Script: "sleep 1000", Timeout: endless})
	m.check(t, "yes &")
	x.want("", "kill %1; wait")
	testenv.Await(t, "the disk to be given back", func() bool { return testenv.Allocated(dir) < 8<<20 })
	x.wantState()
}

// slowWriter takes a chunk a tenth of a second.
type slowWriter struct{}

func (slowWriter) Write(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond) // It is slow: that is the point.
	return len(p), nil
}

// 29. `grep -r x` over the directory of the captures cannot feed on its own
// output without bound: whether it ends or has to be stopped, disk and memory
// stay bounded meanwhile.
func grepCaptures(t *testing.T, s suite) {
	dir := s.runtimeDir(t)
	x := s.start(t, func(o *shell.Options) {
		o.RuntimeDir = dir
		o.Ladder = interrupt.Ladder{{Signal: 9, Grace: time.Second}}
	})
	x.want("", "cd "+dir)
	for _, script := range []string{"grep -r x .",
		"yes x | head -c 100000; grep -r x .", "yes x | head -c 100000; grep -r x . | cat",
		"yes x | head -c 100000; grep -ar . . >&2", "yes x | head -c 100000; cat limpet-*/*/*/out/* | tee /dev/stderr",
	} {
		m := sample(dir)
		res, err := x.do(command.Request{Script: script, Timeout: endless})
		if err != nil {
			require.ErrorIs(t, err, shell.ErrTimeout)
			t.Logf("fed on itself until it was stopped: %s, %d bytes", script, res.Stdout.Total+res.Stderr.Total)
		}
		m.check(t, script)
		x.run("cd " + dir)
		x.want("fine\n", "echo fine")
	}
}
