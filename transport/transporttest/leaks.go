package transporttest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// count is what must not grow.
type count struct{ fds, goroutines, children, zombies, files int }

func counted(t *testing.T, dir string) count {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return nil // It may be gone by now.
	}))
	return count{testenv.FDs(t), runtime.NumGoroutine(), len(testenv.Children()), testenv.Zombies(), files}
}

// wantFlat waits until no count is above what it was.
func wantFlat(t *testing.T, dir string, before count) {
	t.Helper()
	var now count
	defer func() { t.Logf("before %+v, now %+v", before, now) }()
	testenv.Await(t, "descriptors, goroutines, processes and files to be as few as before", func() bool {
		now = counted(t, dir)
		return now.fds <= before.fds && now.goroutines <= before.goroutines &&
			now.children <= before.children && now.zombies <= before.zombies && now.files <= before.files
	})
}

// 36. File descriptors, goroutines and zombies are flat over 1000 commands and
// over 50 shells, and over fewer where not all promises are checked.
func flat(t *testing.T, s suite) {
	testenv.NeedProc(t)
	commands, shells := 1000, 50
	if s.least > none {
		commands, shells = 300, 20
	}
	dir := s.runtimeDir(t)
	x := s.start(t, func(o *shell.Options) { o.RuntimeDir = dir })
	round := func(i int) {
		switch {
		case i%100 == 0:
			_, _ = x.stopped(shell.ErrTimeout, command.Request{Script: "sleep 50 | sleep 51", Timeout: short / 6})
		case i%100 == 50:
			assert.Equal(t, 3, x.run("exit 3").ExitCode)
		case i%10 == 0:
			res, err := x.do(command.Request{Script: "cat", Stdin: strings.NewReader("in")})
			require.NoError(t, err)
			assert.Equal(t, "in", res.Stdout.String())
		case i%10 == 1:
			x.want("", "sleep 1000 >/dev/null 2>&1 & kill $!; wait $! || :")
		case i%10 == 2:
			x.want("", "sleep 0.01 &")
		case i%10 == 3:
			x.want("2\n", "echo 1 2>/dev/null | sed s/1/2/")
		default:
			x.want("hi\n", "echo hi")
		}
	}
	for i := range 101 {
		round(i) // Pools fill, and what is made once is made.
	}
	x.run("wait")
	before := counted(t, dir)
	for i := range commands {
		round(i)
	}
	x.run("wait")
	wantFlat(t, dir, before)
	x.wantOnly(0)

	opts := s.options(t)
	opts.RuntimeDir = dir
	before = counted(t, dir)
	for range shells {
		p, err := shell.Start(t.Context(), opts)
		require.NoError(t, err)
		_, err = p.Run(t.Context(), "sleep 1000 & setsid sleep 1001 & echo hi")
		require.NoError(t, err)
		require.NoError(t, p.Close())
	}
	wantFlat(t, dir, before)

	require.NoError(t, x.Close())
	before = counted(t, dir)
	for range shells { // Each is the program's only one now.
		p, err := shell.Start(t.Context(), opts)
		require.NoError(t, err)
		require.NoError(t, p.Close())
	}
	wantFlat(t, dir, before)
	checkEmpty(t, dir)
}
