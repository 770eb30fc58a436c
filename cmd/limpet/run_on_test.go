package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Over a connection that is there, a command costs its caller one request, and so one round trip.
func TestRunOnAnotherMachineAsksOnce(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	far := testenv.TempDir(t)
	tap := testenv.NewTap(t, func() *exec.Cmd { return farConnect(p, far) })
	run := func(args ...string) string {
		return p.limpet(append([]string{"run", "--on", tap.Target()}, args...)...)
	}
	assert.Equal(t, `limpet: session "s" is new, in `+far+"\n/usr", run("-s", "s", "cd /usr; pwd"), "it is told first")
	for _, row := range []struct {
		args string
		says string
		asks int
	}{
		{"-s s", "out in /usr", 1},
		{"-s s --existing", "out in /usr", 1},
		{"-s s --dir /", "out in /", 1},
		{"", "out in " + far, 1},
		{"--bash bash", "out in " + far, 1},
		{"--bash bash -s t", `limpet: session "t" is new, in ` + far + "\nout in " + far, 2}, // It would be refused for one that is there.
	} {
		before := tap.Requests()
		assert.Equal(t, row.says, run(append(strings.Fields(row.args), "echo out in $PWD")...), row.args)
		assert.Equal(t, before+row.asks, tap.Requests(), row.args)
	}
	assert.Equal(t, "1\n2", run("x=1; echo $x", "echo $((x + 1))"), "two scripts have one session")
	assert.Equal(t, "s\nt", p.limpet("session", "list", "--on", tap.Target(), "-q"), "the others have ended")

	// What cannot be opened is told as ever, and is no result.
	for args, row := range map[string]struct {
		code int
		says string
	}{
		"-s none --existing --json": {codeNotFound, `there is none of that name; leave --existing out to make it`},
		"-s s --login":              {codeUsage, `--login says how a session is made, and session "s" is there`},
	} {
		cmd := p.command(append(append([]string{"run", "--on", tap.Target()}, strings.Fields(args)...), "echo >"+filepath.Join(far, "ran"))...)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		require.Error(t, err, args)
		assert.Equal(t, row.code, cmd.ProcessState.ExitCode(), args)
		assert.Empty(t, string(out), args)
		assert.Contains(t, said.String(), row.says, args)
	}
	assert.NoFileExists(t, filepath.Join(far, "ran"))
	p.limpet("session", "close", "--on", tap.Target(), "s", "t")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// The session of a script ends behind it, which may take its time. A signal that comes meanwhile does not replace the exit code of the script.
func TestASignalBehindAScriptOnAnotherMachine(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	target, far := tappedMachine(t, p)
	closing := filepath.Join(far, "closing")
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := p.command("run", "--on", target, "(trap 'echo >"+closing+"' TERM HUP; while :; do sleep 0.05; done) & echo out; exit 3")
		var said strings.Builder
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		testenv.AwaitFile(t, closing)
		require.NoError(t, cmd.Process.Signal(sig))
		require.Error(t, cmd.Wait())
		assert.Equal(t, 3, cmd.ProcessState.ExitCode(), "%v: %s", sig, said.String())
		require.NoError(t, os.Remove(closing))
	}
	assert.Empty(t, p.limpet("session", "list", "--on", target, "-q"))
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A script that may have run has a line of JSON, whatever is known of its session.
func TestAScriptOnAnotherMachineThatMayHaveRunIsTold(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	far := testenv.TempDir(t)
	tap := testenv.NewTap(t, func() *exec.Cmd { return farConnect(p, far) })
	ran := filepath.Join(far, "ran")
	p.limpet("run", "--on", tap.Target(), "true")
	tap.Hold(testenv.TapAnswers)
	cmd := p.command("run", "--json", "--on", tap.Target(), "echo >"+ran+"; sleep 1000", "echo another")
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	require.NoError(t, cmd.Start())
	testenv.AwaitFile(t, ran)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	assert.Equal(t, codeSignal+int(syscall.SIGINT), cmd.ProcessState.ExitCode(), said.String())
	assert.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
	assert.Contains(t, out.String(), "it may have run")
	assert.Contains(t, said.String(), "may be there, and stay")
	tap.Release(testenv.TapAnswers)
	testenv.Await(t, "the session to end", func() bool { return p.limpet("session", "list", "--on", tap.Target(), "-q") == "" })
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// tappedMachine is a machine that is reached by a target, and its home. Its connections are shared.
func tappedMachine(t *testing.T, p *mcpPlace) (target, far string) {
	t.Helper()
	tap, far := tapOf(t, p)
	return tap.Target(), far
}

// tapOf is tappedMachine, for a test that holds or cuts its connections.
func tapOf(t *testing.T, p *mcpPlace) (tap *testenv.Tap, far string) {
	t.Helper()
	far = testenv.TempDir(t)
	return testenv.NewTap(t, func() *exec.Cmd { return farConnect(p, far) }), far
}

// farConnect is the limpet over there.
func farConnect(p *mcpPlace, far string) *exec.Cmd {
	cmd := exec.Command("limpet", "connect", "--stdio")
	cmd.Env = []string{"HOME=" + far, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", p.mark}
	return cmd
}

// A signal that comes when the way to the other machine stands still is not waited for long, and what may go on there is said in words.
func TestASignalWhereTheOtherMachineDoesNotAnswer(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	tap, _ := tapOf(t, p)
	on := []string{"--on", tap.Target()}
	p.limpet(append([]string{"run", "-s", "named"}, append(on, "true")...)...)
	for _, args := range [][]string{{}, {"-s", "named"}} {
		cmd := p.command(append(append(append([]string{"run"}, on...), args...), "echo out; sleep 1000")...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var said strings.Builder
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		tap.Hold(testenv.TapAnswers)
		tap.Hold(testenv.TapRequests)
		began := time.Now()
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.Error(t, cmd.Wait())
		assert.Less(t, time.Since(began), 12*time.Second, "2.5 s, and not 20")
		assert.Equal(t, codeSignal+int(syscall.SIGINT), cmd.ProcessState.ExitCode(), said.String())
		assert.Contains(t, said.String(), "what became of the command is not known")
		assert.NotContains(t, said.String(), "context ")
		tap.Release(testenv.TapAnswers)
		tap.Release(testenv.TapRequests)
		if len(args) == 0 {
			assert.Contains(t, said.String(), "may be there, and stay")
			testenv.Await(t, "the session to end", func() bool { return p.limpet(append([]string{"session", "list", "-q"}, on...)...) == "named" })
		}
	}
	p.limpet(append([]string{"session", "close", "named"}, on...)...)
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A signal is told once, whatever it has ended.
func TestASignalThatEndsARequestToAnotherMachineIsToldOnce(t *testing.T) {
	p := newMCPPlace(t)
	tap, _ := tapOf(t, p)
	p.limpet("jobs", "-s", "st", "--on", tap.Target(), "start", "true")
	tap.Hold(testenv.TapAnswers)
	before := tap.Requests()
	cmd := p.command("jobs", "-s", "st", "--on", tap.Target(), "start", "true")
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	testenv.Await(t, "the request", func() bool { return tap.Requests() > before })
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	assert.Equal(t, codeSignal+int(syscall.SIGINT), cmd.ProcessState.ExitCode())
	assert.Equal(t, 1, strings.Count(said.String(), "got SIGINT"), said.String())
	tap.Release(testenv.TapAnswers)
	p.limpet("session", "close", "--on", tap.Target(), "st")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A job, and a terminal, whose start is lost with the connection may have started: the error names what shows it.
func TestAStartThatIsLostWithTheConnectionMayHaveStarted(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	tap, _ := tapOf(t, p)
	for _, what := range []string{"jobs", "term"} {
		where := []string{"-s", "st", "--on", tap.Target()}
		start := append(append([]string{what}, where...), "start", "true")
		before := tap.Requests()
		p.limpet(start...)
		requests := tap.Requests() - before

		ran := filepath.Join(testenv.TempDir(t), "ran")
		runs := p.command(append(append([]string{"run"}, where...), "echo >"+ran+"; sleep 1000")...)
		require.NoError(t, runs.Start())
		testenv.AwaitFile(t, ran)
		before = tap.Requests()
		cmd := p.command(start...)
		var said strings.Builder
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		testenv.Await(t, "the request, which waits for the command that runs", func() bool { return tap.Requests() == before+requests })
		tap.Cut()
		require.Error(t, cmd.Wait())
		assert.Equal(t, codeFailed, cmd.ProcessState.ExitCode(), said.String())
		assert.Contains(t, said.String(), "it may have started, and is not started again; limpet "+what+" list --session st --on "+tap.Target()+" shows it if it has")
		p.limpet("session", "interrupt", "--on", tap.Target(), "st")
		require.Error(t, runs.Wait()) // It was dialled again.
	}
	p.limpet("session", "close", "--on", tap.Target(), "st")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}
