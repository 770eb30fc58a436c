package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// brought is where this program is brought to, once; cache makes it.
var (
	brought string
	cache   = sync.OnceValue(func() string {
		dir, err := os.MkdirTemp("", "limpet-cache")
		if err != nil {
			panic(err)
		}
		brought = dir
		return dir
	})
)

// farMachine is a machine with a session, which is reached by a script: see cut.
type farMachine struct {
	t         *testing.T
	home, how string
	there     string // the script that reaches it
}

func newFarMachine(t *testing.T) *farMachine {
	testenv.NeedProc(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	home := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "here"))
	m := &farMachine{t: t, home: home, how: filepath.Join(home, "how")}
	m.there = "exec env -i HOME=" + home + " XDG_CACHE_HOME=" + cache() + " GORACE=atexit_sleep_ms=0 sh"
	m.reachBy(m.there)
	t.Cleanup(func() {
		m.reachBy(m.there)
		_ = m.command("hosts", "close", "--all").Run() // The test may have failed.
		endKept(filepath.Join(home, ".local/state/limpet/keep"))
	})
	return m
}

func (m *farMachine) reachBy(script string) {
	require.NoError(m.t, os.WriteFile(m.how, []byte(script), 0o600))
}

// cut breaks the connection, and lets nobody reach the machine until mend.
func (m *farMachine) cut() {
	m.t.Helper()
	m.reachBy("exit 1")
	m.kill()
}

func (m *farMachine) mend() { m.reachBy(m.there) }

// kill breaks the connection.
func (m *farMachine) kill() {
	m.t.Helper()
	list, err := host.ListShared(context.Background())
	require.NoError(m.t, err)
	require.Len(m.t, list, 1)
	require.NoError(m.t, syscall.Kill(list[0].PID, syscall.SIGKILL))
}

func (m *farMachine) args(args ...string) []string {
	return append([]string{"term", args[0], "-s", "s", "--on", "exec:sh " + m.how}, args[1:]...)
}

func (m *farMachine) command(args ...string) *exec.Cmd {
	cmd := exec.Command("limpet", args...)
	cmd.Dir = m.home // A connection of a command belongs to its directory.
	return cmd
}

// term runs limpet term, and returns what it has printed.
func (m *farMachine) term(args ...string) string {
	m.t.Helper()
	cmd := m.command(m.args(args...)...)
	out, err := cmd.Output()
	require.NoError(m.t, err, "%q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

func (m *farMachine) sit(args ...string) *seat {
	m.t.Helper()
	return onTerminal(m.t, m.home, "xterm", m.args(append([]string{"attach"}, args...)...)...)
}

func TestAttachOutlivesItsConnection(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	id := m.term("start", "--line", prompting)
	m.term("wait", "--prompt", "--timeout", "1m", id)
	tm := m.sit(id)
	tm.sees(prompted)
	tm.types("echo $((6 * 7))\r")
	tm.sees("42\r\n")
	tm.sees("> ")

	m.kill() // It is dialled again at once.
	tm.sees("the connection is lost")
	tm.sees("\x1b[2J") // What said so is painted over.
	tm.sees("42")

	m.cut()
	tm.sees("the connection is lost")
	tm.types("echo $((6 * 8))\r")
	require.NoError(t, pty.Setsize(tm.user, &pty.Winsize{Rows: 30, Cols: 100}))
	m.mend()
	tm.sees("48")
	tm.types("stty size\r")
	tm.sees("30 100")
	tm.types("exit 7\r")
	tm.sees("[" + id + ": exit 7]\r\n")
	tm.exits(7)
	tm.isAsBefore()
	assert.NotContains(t, tm.seen, "limpet: remote:", "it is cut, and not told on a line of its own")
}

// What is not kept of what was printed meanwhile is not shown; the screen is.
func TestAttachPaintsTheScreenBehindAGap(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	tm := onTerminal(t, m.home, "xterm", m.args("start", "--attach", "--buffer", "1", "--dir", m.home, "--line", `echo ready; until [[ -e go ]]; do sleep .01; done; seq 200000; echo "<$((6 * 7))>"; echo >printed; read -r; exit 4`)...)
	tm.sees("ready")
	m.cut()
	tm.sees("the connection is lost")
	require.NoError(t, os.WriteFile(filepath.Join(m.home, "go"), nil, 0o600))
	testenv.AwaitFile(t, filepath.Join(m.home, "printed"))
	m.mend()
	tm.sees("<42>")
	tm.types("\r")
	tm.sees(": exit 4]\r\n")
	tm.exits(4)
	tm.isAsBefore()
	assert.NotContains(t, tm.seen, "\n100000\r\n")
	assert.Contains(t, tm.seen, "200000")
}

// A recording has a marker where the connection was lost, and what is on the screen when there is one again.
func TestARecordingGoesOnBehindAGap(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	id := m.term("start", "--dir", m.home, "--line", `echo ready; until [[ -e go ]]; do sleep .01; done; seq 2000; echo "<$((6 * 7))>"; echo >printed; read -r; echo "<$((7 * 7))>"; exit 4`)
	m.term("wait", "--text", "ready", "--timeout", "1m", id)
	records := m.command(m.args("record", "--json", id, "demo.cast")...)
	var out, said bytes.Buffer
	records.Stdout, records.Stderr = &out, &said
	require.NoError(t, records.Start())
	read := func() string {
		b, _ := os.ReadFile(filepath.Join(m.home, "demo.cast")) // Empty until it is there.
		return string(b)
	}
	testenv.Await(t, "the picture", func() bool { return strings.Contains(read(), "ready") })
	m.cut()
	require.NoError(t, os.WriteFile(filepath.Join(m.home, "go"), nil, 0o600))
	testenv.AwaitFile(t, filepath.Join(m.home, "printed"))
	m.mend()
	testenv.Await(t, "the screen behind the gap", func() bool { return strings.Contains(read(), "<42>") })
	m.term("send", "--enter", id)
	require.NoError(t, records.Wait(), said.String())
	before, behind, found := strings.Cut(read(), `"m","the connection was lost here`)
	require.True(t, found, read())
	assert.NotContains(t, before, "<42>")
	assert.Contains(t, behind, `\u001b[2J`)
	assert.Contains(t, behind, "2000")
	assert.NotContains(t, behind, `1000\r`) // It was printed in the gap.
	assert.Contains(t, behind, "<49>")
	assert.NotContains(t, behind, `"version"`)
	assert.Contains(t, out.String(), `"gaps":1`)
}

// Where nobody will be reached any more, the person is told, and has the terminal back.
func TestAttachEndsWithItsMachine(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	id := m.term("start", "--line", prompting)
	m.term("wait", "--prompt", "--timeout", "1m", id) // Else it attaches to an empty screen now and then.
	tm := m.sit(id)
	tm.sees(prompted)
	m.reachBy("echo 'Error response from daemon: No such container: web' >&2; exit 1")
	m.kill()
	tm.sees("the connection is lost")
	tm.sees("[lost " + id + "]\r\n")
	tm.sees("No such container: web")
	tm.exits(codeFailed)
	tm.isAsBefore()
}

// A person, or a program, that gives up does not wait for the connection.
func TestAConnectionThatIsLostHoldsNobody(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	id := m.term("start", "--line", prompting)
	m.term("wait", "--prompt", "--timeout", "1m", id)
	tm := m.sit(id)
	tm.sees(prompted)
	other := m.sit("--detach-key", "ctrl-]", id)
	other.sees(prompted)
	follow := m.command(m.args("log", "--follow", id)...)
	waits := m.command(m.args("wait", id)...)
	shows := m.command(m.args("wait", "--timeout", "1s", id)...) // It is over in time, too.
	records := m.command(m.args("record", "--from-start", id, "demo.cast")...)
	var said strings.Builder
	records.Stderr = &said
	for _, cmd := range []*exec.Cmd{follow, waits, shows, records} {
		require.NoError(t, cmd.Start())
	}
	testenv.AwaitFile(t, filepath.Join(m.home, "demo.cast"))
	time.Sleep(200 * time.Millisecond) // The others are about to ask.
	m.cut()
	tm.sees("the connection is lost")
	other.sees("the connection is lost")
	began := time.Now()
	tm.types(ctrlBackslash)
	tm.sees("[detached from " + id + "]\r\n")
	tm.exits(0)
	tm.isAsBefore()
	require.NoError(t, other.cmd.Process.Signal(syscall.SIGTERM))
	other.sees("[detached from " + id + "]\r\n")
	other.exits(128 + 15)
	other.isAsBefore()
	for _, cmd := range []*exec.Cmd{follow, waits, records} {
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		_ = cmd.Wait() // Its exit code is looked at.
		want := 128 + 2
		if cmd == records {
			want = 0 // That is how it is ended.
		}
		assert.Equal(t, want, cmd.ProcessState.ExitCode(), "%q", cmd.Args)
	}
	_ = shows.Wait() // As above.
	assert.Equal(t, codeTimeout, shows.ProcessState.ExitCode())
	assert.NotContains(t, said.String(), "what was written before can be played")
	assert.Less(t, time.Since(began), 20*time.Second)
}

// What is followed goes on at the byte where it was.
func TestLogFollowsOverConnections(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	gates := testenv.TempDir(t)
	id := m.term("start", "--buffer", "8MiB", "--line", `for i in {1..60}; do seq 1000; sleep .01; ((i % 15)) || until [[ -e `+gates+`/$i ]]; do sleep .01; done; done; exit 5`)
	follow := m.command(m.args("log", "--follow", id)...)
	out, err := os.Create(filepath.Join(gates, "out"))
	require.NoError(t, err)
	defer out.Close() // It was read.
	var said strings.Builder
	follow.Stdout, follow.Stderr = out, &said
	require.NoError(t, follow.Start())
	var want strings.Builder
	for i := range 60 {
		for j := range 1000 {
			fmt.Fprintf(&want, "%d\r\n", j+1)
		}
		if (i+1)%15 != 0 {
			continue
		}
		// It is connected: it has all that was printed until now.
		testenv.Await(t, "what is followed", func() bool { st, err := out.Stat(); return err == nil && st.Size() == int64(want.Len()) })
		list, err := host.ListShared(context.Background())
		require.NoError(t, err)
		for _, one := range list {
			_ = syscall.Kill(one.PID, syscall.SIGKILL) // It may be gone just now.
		}
		require.NoError(t, os.WriteFile(filepath.Join(gates, strconv.Itoa(i+1)), nil, 0o600))
	}
	require.NoError(t, follow.Wait(), said.String())
	got, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, want.Len(), len(got), said.String())
	assert.True(t, want.String() == string(got))
	assert.Contains(t, said.String(), "the connection is lost")
	assert.Contains(t, said.String(), "exit 5, after")
}

// Most calls of a jobs.Handle take no context: a signal ends those, too, when the keeper does not answer.
func TestASignalEndsACallAboutJobs(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	out, err := m.command("jobs", "start", "-s", "s", "--on", "exec:sh "+m.how, "true").CombinedOutput()
	require.NoError(t, err, "%s", out)
	place, err := keeper.Open(filepath.Join(m.home, ".local/state/limpet/keep"))
	require.NoError(t, err)
	list, err := place.List(testenv.Context(t), false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	pid := list[0].Record.PID
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }() // It is there, for as long as the test.

	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	where := registryFlags{session: "s", at: place, console: newConsole()}
	done, err := where.inSession(ctx, func(all jobs.Handle) error {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		testenv.AwaitStopped(t, pid) // Until then it may answer.
		cancel(&signalError{syscall.SIGTERM})
		_, err := all.List(jobs.Filter{})
		return err
	})
	assert.True(t, done)
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), codeOf(err), "%v", err)
}
