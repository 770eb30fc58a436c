package host_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
)

// Something stands still for longer than a connection lives without a sign of life: the limpet over there, or what carries the bytes to it,
// as ssh. Commands, input and a file are on their way then, and get there a second time when it goes on, behind those of the next
// connection. Each command has one result, and has run once.
func TestWhatStandsStillAndGoesOnDoesNothingTwice(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for _, what := range []string{"connect", "carrier"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for range testenv.Repeats(1, 1, 5) {
				standsStill(t, what, short, 0)
			}
			if testenv.All() {
				standsStill(t, what, pipe.Times{}, time.Minute)
			}
		})
	}
}

// standsStill has it stand still until the connection is known to be lost, and the next one works, and for so long at least.
func standsStill(t *testing.T, what string, times pipe.Times, atLeast time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience+2*atLeast)
	defer cancel()
	m, here := machineOf(t, "sh"), testenv.TempDir(t)
	// The carrier is between this program and the sh, as ssh and sshd are: when this program has ended its command, what the carrier has
	// of it gets there all the same.
	script := filepath.Join(here, "carry")
	require.NoError(t, os.WriteFile(script, []byte(fmt.Sprintf("sh -c 'echo $$ >>%s/carriers; exec cat' | %s | cat\n", here, strings.TrimPrefix(m.target, "exec:"))), 0o600))
	lost := make(chan error, 100)
	h := dial(t, "exec:sh "+script, &host.Options{Times: times, Lost: func(why error) { lost <- why }})
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	reads, err := h.Session(ctx, "reads", &keeper.Spec{})
	require.NoError(t, err)
	file := randomFile(t, filepath.Join(here, "f"), 4<<20)
	input := randomFile(t, filepath.Join(here, "input"), 2<<20)

	pids := []int{connectOf(h), numbers(t, filepath.Join(here, "carriers"))[0]}
	var stopped []proc.ID
	for _, pid := range pids {
		p, err := proc.Read(pid)
		require.NoError(t, err)
		stopped = append(stopped, p.ID())
	}
	pid := pids[0]
	if what == "carrier" {
		pid = pids[1]
	}
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	began := time.Now()
	goOn := sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // It may have been ended, by what noticed it.
	defer goOn()

	const commands = 5
	var all sync.WaitGroup
	var results [commands]command.Result
	var errs [commands + 2]error
	for i := range commands {
		all.Go(func() {
			results[i], errs[i] = s.Run(ctx, fmt.Sprintf("echo %d >>%s/ran; x+=%[1]d; echo out %[1]d; exit %[1]d", i, here))
		})
	}
	var sum bytes.Buffer
	all.Go(func() {
		_, errs[commands] = reads.Do(ctx, command.Request{Script: "sha256sum", Stdin: bytes.NewReader(input), Stdout: &sum})
	})
	all.Go(func() {
		c := transfer.New(&transfer.Local{}, files(t, h), &transfer.Options{Lost: host.LostFiles})
		errs[commands+1] = c.Copy(ctx, filepath.Join(here, "f"), filepath.Join(m.home, "f"))
	})
	select {
	case why := <-lost:
		require.ErrorIs(t, why, pipe.ErrSilent)
	case <-ctx.Done():
		require.FailNow(t, "nobody has noticed it")
	}
	_, err = h.List(ctx, false)
	require.NoError(t, err, "another connection is there")
	if rest := atLeast - time.Since(began); rest > 0 {
		time.Sleep(rest) // That is what is tried.
	}
	assert.Positive(t, queued(t, pid), "what is to get there a second time")
	goOn()
	all.Wait()
	for i := range commands {
		require.NoError(t, errs[i])
		assert.Equal(t, i, results[i].ExitCode)
		assert.Equal(t, fmt.Sprintf("out %d\n", i), results[i].Stdout.String())
	}
	require.NoError(t, errs[commands])
	assert.Equal(t, fmt.Sprintf("%x  -\n", sha256.Sum256(input)), sum.String())
	require.NoError(t, errs[commands+1])
	// What stood still ends by itself; until then it can do harm.
	for _, id := range stopped {
		const patience = 90 * time.Second // A limpet whose carrier is gone hears nothing for 40 s.
		proc.WaitAny([]proc.ID{id}, patience)
		_, err := proc.Read(id.PID)
		assert.Error(t, err, "%d has ended", id.PID)
	}
	got, err := os.ReadFile(filepath.Join(m.home, "f"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(file, got), "the file is as it was")
	ran := numbers(t, filepath.Join(here, "ran"))
	assert.ElementsMatch(t, []int{0, 1, 2, 3, 4}, ran, "each ran once")
	left, err := filepath.Glob(filepath.Join(m.home, ".limpet*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	require.NoError(t, h.Disconnect())
}

// queued is how many bytes are in the pipes of a process.
func queued(t *testing.T, pid int) (sum int) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || !strings.HasPrefix(to, "pipe:") {
			continue
		}
		f, err := os.OpenFile(fd, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		require.NoError(t, err)
		n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		sum += n
	}
	return sum
}

// numbers are those of a file, one a line.
func numbers(t *testing.T, file string) (list []int) {
	t.Helper()
	testenv.AwaitFile(t, file)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, text := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		list = append(list, n)
	}
	return list
}
