package transporttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// The test binary plays the programs that are to be killed: it runs the test
// that called Run once more, with a role.
const (
	roleVar = "LIMPET_TRANSPORTTEST_ROLE"
	argsVar = "LIMPET_TRANSPORTTEST_ARGS" // separated by newlines

	roleBusy     = "busy"     // DIR RUNTIMEDIR SCRIPT: runs jobs, then SCRIPT, until it is killed
	roleStart    = "start"    // FILE BASH INITFILE DIR: writes to FILE how a start fails
	roleTerminal = "terminal" // FILE: uses a shell and writes to FILE how that went
)

// again is the test binary in a role.
func (s suite) again(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	root, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+root+"$", "-test.count=1")
	// Who is killed removes nothing: what it has is in a directory of ours.
	cmd.Env = append(os.Environ(), roleVar+"="+role, argsVar+"="+strings.Join(args, "\n"), "TMPDIR="+s.tempDir(t))
	return cmd
}

func play(t *testing.T, role string, s suite) {
	args := strings.Split(os.Getenv(argsVar), "\n")
	switch role {
	case roleBusy:
		playBusy(t, s, args[0], args[1], args[2])
	case roleStart:
		playStart(t, s, args[0], args[1], args[2], args[3])
	case roleTerminal:
		playTerminal(t, s, args[0])
	default:
		t.Fatalf("no such role: %q", role)
	}
}

// playBusy writes the mark of its session to the file mark.
func playBusy(t *testing.T, s suite, dir, run, script string) {
	x := s.start(t, func(o *shell.Options) { o.RuntimeDir, o.Dir = run, dir })
	x.want("", "sleep 1000 & setsid sleep 1001 & (setsid bash -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" &)")
	require.NoError(t, os.WriteFile(x.file("mark"), []byte(x.mark+"\n"), 0o600))
	_, _ = x.Run(context.Background(), "echo >ready; "+script) // It never comes back.
}

func playStart(t *testing.T, s suite, path, bash, init, dir string) {
	opts := s.options(t)
	opts.StartTimeout, opts.Bash, opts.RuntimeDir = time.Second, bash, dir
	if init != "" {
		opts.InitFiles = []string{init}
	}
	p, err := shell.Start(t.Context(), opts)
	text := fmt.Sprintf("%T: %v", err, err)
	if err == nil {
		text = "started"
		_ = p.Close() // It should not be there.
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "\n", " ")+"\n"), 0o600))
}

func playTerminal(t *testing.T, s suite, path string) {
	where := "foreground"
	if tty, err := os.Open("/dev/tty"); err == nil {
		if group, err := foreground(tty); err == nil && group != syscall.Getpgrp() {
			where = "background"
		}
		_ = tty.Close() // Nothing was written.
	}
	x := s.start(t)
	said := strings.TrimSpace(x.run("echo hello from bash").Stdout.String())
	// Who writes to the terminal, or reads from it, fails rather than stops.
	x.run("cat </dev/tty; echo x >/dev/tty; stty sane </dev/tty")
	res, _ := x.stopped(shell.ErrTimeout, command.Request{Script: "sleep 1000", Timeout: short})
	text := fmt.Sprintf("%s, %s, %d\n", where, said, res.ExitCode)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// busyProgram starts a program in the role, with a shell in dir, waits until it is
// busy, and returns it with the mark of its session.
func (s suite) busyProgram(t *testing.T, dir, run, script string) (cmd *exec.Cmd, mark string) {
	t.Helper()
	cmd = s.again(t, roleBusy, dir, run, script)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It is dead if all is well.
		_ = cmd.Wait()         // As above.
		for _, st := range testenv.Marked(mark) {
			_ = proc.Signal(st.ID(), syscall.SIGKILL) // The check has failed already.
		}
	})
	testenv.AwaitFile(t, filepath.Join(dir, "ready"))
	return cmd, testenv.AwaitFile(t, filepath.Join(dir, "mark"))
}

// 36. Die-with-parent leaves no orphans: when the program is killed, nothing of
// its sessions lives on, and its runtime directory goes.
func killedProgram(t *testing.T, s suite) {
	testenv.NeedProc(t)
	for _, script := range []string{
		"sleep 1002",
		"while :; do :; done",
		"trap '' TERM HUP INT; while :; do sleep 1; done",
		"yes",
	} {
		run := s.runtimeDir(t)
		cmd, mark := s.busyProgram(t, s.tempDir(t), run, script)
		assert.NotEmpty(t, testenv.Marked(mark))
		began := time.Now()
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // It was killed.
		testenv.AwaitNone(t, mark, "killed during "+script)
		testenv.Await(t, "its directory to be removed", func() bool {
			left, _ := filepath.Glob(filepath.Join(run, "limpet-*", "*")) // The pattern is right.
			return len(left) == 0
		})
		t.Logf("all gone %v after the kill: %s", time.Since(began).Round(time.Millisecond), script)
	}
}

// 38. Leftovers of crashes are swept: when even the guard was killed, the next
// program that starts a shell removes the directory, and not those of programs
// that live.
func sweptAtStart(t *testing.T, s suite) {
	testenv.NeedProc(t)
	run := s.runtimeDir(t)
	cmd, _ := s.busyProgram(t, s.tempDir(t), run, "sleep 1002")
	guards := 0
	all, err := proc.List()
	require.NoError(t, err)
	for _, st := range all {
		if st.PPID == cmd.Process.Pid && strings.Contains(commandLine(st.PID), "limpet-guard") {
			require.NoError(t, proc.Signal(st.ID(), syscall.SIGKILL))
			guards++
		}
	}
	require.Equal(t, 1, guards, "not one guard")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
	dead, err := filepath.Glob(filepath.Join(run, "limpet-*", "*"))
	require.NoError(t, err)
	require.Len(t, dead, 1, "nobody is left to remove it")

	second, _ := s.busyProgram(t, s.tempDir(t), run, "sleep 1003")
	_, err = os.Stat(dead[0])
	assert.ErrorIs(t, err, os.ErrNotExist, "the second's start sweeps it")
	// A third finds the second's directory in use.
	x := s.start(t, func(o *shell.Options) { o.RuntimeDir = run })
	x.want("hi\n", "echo hi")
	left, err := filepath.Glob(filepath.Join(run, "limpet-*", "*"))
	require.NoError(t, err)
	assert.Len(t, left, 2, "those of two living programs")
	require.NoError(t, second.Process.Kill())
}

// commandLine is what proc.Command cuts short.
func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // It may be gone.
	return string(b)
}
