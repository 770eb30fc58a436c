package host_test

import (
	"bytes"
	"crypto/rand"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
)

// randomFile makes a file of so many bytes, which it returns.
func randomFile(t *testing.T, path string, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	_, err := rand.Read(b)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b, 0o640))
	return b
}

// files reaches the files of a machine.
func files(t *testing.T, h *host.Host) *transfer.Remote {
	t.Helper()
	r, err := h.Files()
	require.NoError(t, err)
	return r
}

// The connection is cut at random moments, while a large file and many small ones are copied, to and fro. All of them are whole, and
// nothing is beside them.
func TestACopySurvivesCuts(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sharing(t)
	everyWay(t, copyWhileItIsCut)
}

func copyWhileItIsCut(t *testing.T, m machine) {
	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 4))
	var cuts atomic.Int64
	here := testenv.TempDir(t)
	source := filepath.Join(here, "s")
	want := map[string][]byte{"large": randomFile(t, filepath.Join(source, "large"), 24<<20)}
	for _, name := range []string{"a", "b", "c", "d/e", "d/f", "d/g/h"} {
		want[name] = randomFile(t, filepath.Join(source, name), random.IntN(700<<10))
	}
	for round := range testenv.Repeats(2, 3, 100) {
		h := dial(t, m.target, &host.Options{Times: short, Share: round%2 == 1, Lost: func(error) { cuts.Add(1) }})
		for _, out := range []bool{true, false} {
			from, to, path, as, dest := transfer.Source(files(t, h)), transfer.Sink(&transfer.Local{}), filepath.Join(m.home, "s"), filepath.Join(here, "back"), filepath.Join(here, "back")
			if out {
				from, to, path, as, dest = &transfer.Local{}, files(t, h), source, filepath.Join(m.home, "s"), filepath.Join(m.home, "s")
			}
			require.NoError(t, os.RemoveAll(dest))
			over := make(chan struct{})
			plan := make([]time.Duration, 1+random.IntN(4))
			for i := range plan {
				plan[i] = time.Duration(random.IntN(80)) * time.Millisecond
			}
			go func() {
				defer close(over)
				for _, after := range plan {
					time.Sleep(after)
					m.kill(connectOf(h))
				}
			}()
			c := transfer.New(from, to, &transfer.Options{Lost: host.LostFiles, Note: func(path, why string, _ bool) { t.Errorf("round %d: %s: %s", round, path, why) }})
			err := c.Copy(testenv.Context(t), path, as)
			<-over
			require.NoError(t, err, "round %d", round)
			for name, b := range want {
				got, err := os.ReadFile(filepath.Join(dest, name))
				require.NoError(t, err)
				assert.True(t, bytes.Equal(b, got), "round %d: %s", round, name)
			}
			entries, err := filepath.Glob(filepath.Join(dest, ".limpet*"))
			require.NoError(t, err)
			assert.Empty(t, entries)
		}
		require.NoError(t, h.Disconnect())
	}
	t.Logf("%d cuts", cuts.Load())
}

func TestALimpetThatCannotCopyIsSaid(t *testing.T) {
	testenv.Slow(t)
	const old = `printf '%s bash /bin/bash\n%s system Linux x86_64\n%s uid 0\n%s limpet 1 1 /bin/true\n%s end 0\n' "$m" "$m" "$m" "$m" "$m"
read -r line
echo "limpet-ready $m {\"protocol\":[1,1],\"version\":\"0.1\",\"place\":\"x\"}"; exec sleep 1000
`
	to, err := host.ParseTarget(liar(t, old))
	require.NoError(t, err)
	h, err := host.Dial(testenv.Context(t), to, &host.Options{Reconnect: -1})
	require.NoError(t, err)
	_, err = h.Files()
	require.ErrorIs(t, err, host.ErrNoFiles)
	require.ErrorContains(t, err, "limpet 0.1 is there, which is too old; bring it up to date")
	_ = h.Disconnect() // It does not answer.
}

// How fast a copy is beside cat, and beside a cat whose bytes are summed up at both ends, as a copy's are. A command in a kept session does
// not wait for it.
func TestHowFastACopyIsOverSSH(t *testing.T) {
	testenv.OnlyAll(t)
	startSSHD(t)
	here, there := testenv.TempDir(t), testenv.TempDir(t)
	const size = 256 << 20
	file := filepath.Join(here, "f")
	b := randomFile(t, file, size)
	ctx := t.Context() // It takes its time.
	h := dial(t, "ssh://there", nil)
	k, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	far := files(t, h)
	took := map[string]time.Duration{}
	measure := func(what string, run func() error) {
		began := time.Now()
		require.NoError(t, run(), what)
		if d := time.Since(began); took[what] == 0 || d < took[what] {
			took[what] = d
		}
	}
	cat := func(script, from string) func() error {
		return func() error {
			return exec.Command("sh", "-c", strings.NewReplacer("FROM", from, "THERE", there, "HERE", here).Replace(script)).Run()
		}
	}
	for _, dir := range []string{here, there} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	}
	for range 5 { // What is fastest counts: others use this machine, too.
		measure("cat out", cat("cat FROM | ssh there 'cat >THERE/cat'", file))
		measure("summed out", cat("tee HERE/fifo <FROM | ssh there 'tee THERE/cat | sha256sum' & sha256sum <HERE/fifo; wait", file))
		require.NoError(t, os.RemoveAll(filepath.Join(there, "f")))
		measure("copy out", func() error { return transfer.New(&transfer.Local{}, far, nil).Copy(ctx, file, there) })
		measure("cat in", cat("ssh there 'cat THERE/f' >HERE/cat", ""))
		measure("summed in", cat("ssh there 'tee THERE/fifo <THERE/f & sha256sum <THERE/fifo >/dev/null; wait' | tee HERE/cat | sha256sum", ""))
		require.NoError(t, os.RemoveAll(filepath.Join(here, "back")))
		measure("copy in", func() error {
			return transfer.New(far, &transfer.Local{}, nil).Copy(ctx, filepath.Join(there, "f"), filepath.Join(here, "back"))
		})
	}
	got, err := os.ReadFile(filepath.Join(here, "back"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(b, got))

	var slowest time.Duration
	done := make(chan error, 1)
	require.NoError(t, os.RemoveAll(filepath.Join(there, "f")))
	go func() { done <- transfer.New(&transfer.Local{}, far, nil).Copy(ctx, file, there) }()
	commands := 0
	for over := false; !over; commands++ {
		began := time.Now()
		_, err := k.Run(ctx, "true")
		require.NoError(t, err)
		slowest = max(slowest, time.Since(began))
		select {
		case err := <-done:
			require.NoError(t, err)
			over = true
		default:
		}
	}
	t.Logf("%v; beside a copy %d times true, the slowest %v", took, commands, slowest)
	for _, way := range []string{" out", " in"} {
		copied := float64(took["copy"+way])
		t.Logf("copy%s: %.0f %% of cat, %.0f %% of cat that is summed up", way, 100*float64(took["cat"+way])/copied, 100*float64(took["summed"+way])/copied)
	}
	assert.Less(t, slowest, 2*time.Second)
}
