package guard_test

import (
	"bufio"
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

	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

const (
	helperVar = "LIMPET_TEST_HELPER"
	patience  = 30 * time.Second
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(helperVar); role {
	case "":
		testenv.Reap()
		os.Exit(m.Run())
	case "program":
		if err := program(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		fmt.Printf("no helper %q\n", role)
		os.Exit(2)
	}
}

// program guards two sessions with a process each, and obeys the words on its
// stdin: "forget" closes the first one, "close" both.
func program() error {
	entries := strings.Fields(os.Getenv("LIMPET_TEST_ENTRIES"))
	var pids []string
	for _, entry := range entries {
		if err := guard.Watch("/bin/bash", entry, os.Getenv("LIMPET_TEST_DIR")); err != nil {
			return err
		}
		// It ignores what a program may ignore.
		cmd := exec.Command("/bin/bash", "-c", "trap '' TERM HUP; echo; exec sleep 1000")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), entry}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := bufio.NewReader(out).ReadByte(); err != nil {
			return err
		}
		pids = append(pids, fmt.Sprint(cmd.Process.Pid))
	}
	fmt.Println(strings.Join(pids, " "))
	words := bufio.NewScanner(os.Stdin)
	for words.Scan() {
		switch words.Text() {
		case "forget":
			guard.Forget(entries[0])
		case "close":
			for _, entry := range entries {
				guard.Forget(entry)
			}
		}
		fmt.Println("done")
	}
	return words.Err()
}

type guarded struct {
	cmd   *exec.Cmd
	tell  func(word string)
	stats []proc.Stat
	dir   string
}

func start(t *testing.T) guarded {
	t.Helper()
	base := filepath.Join(t.TempDir(), "limpet-0")
	g := guarded{dir: filepath.Join(base, "program")}
	require.NoError(t, os.MkdirAll(g.dir, 0o700))
	unique := fmt.Sprint(os.Getpid(), "-", time.Now().UnixNano())
	entries := "LIMPET_SESSION=a" + strings.ReplaceAll(unique, " ", "") + " LIMPET_SESSION=b" + strings.ReplaceAll(unique, " ", "")
	exe, err := os.Executable()
	require.NoError(t, err)
	g.cmd = exec.Command(exe)
	g.cmd.Env = append(os.Environ(), helperVar+"=program", "LIMPET_TEST_DIR="+g.dir, "LIMPET_TEST_ENTRIES="+entries)
	stdin, err := g.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := g.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, g.cmd.Start())
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	for _, field := range strings.Fields(line) {
		var pid int
		_, err := fmt.Sscan(field, &pid)
		require.NoError(t, err, line)
		st, err := proc.Read(pid)
		require.NoError(t, err)
		g.stats = append(g.stats, st)
	}
	require.Len(t, g.stats, 2)
	g.tell = func(word string) {
		_, err := fmt.Fprintln(stdin, word)
		require.NoError(t, err)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_ = g.cmd.Process.Kill() // It may have ended.
		_ = g.cmd.Wait()         // As above.
		for _, entry := range strings.Fields(entries) {
			proc.KillAll(entry)
		}
	})
	return g
}

func (g guarded) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, g.cmd.Process.Kill())
	_ = g.cmd.Wait() // Killed.
}

func alive(st proc.Stat) bool {
	now, err := proc.Read(st.PID)
	return err == nil && now.ID() == st.ID() && !now.Zombie()
}

func gone(path string) bool { _, err := os.Stat(path); return os.IsNotExist(err) }

func TestNothingOfAKilledProgramLivesOn(t *testing.T) {
	testenv.Slow(t)
	g := start(t)
	g.kill(t)
	require.Eventually(t, func() bool { return !alive(g.stats[0]) && !alive(g.stats[1]) && gone(g.dir) }, patience, time.Millisecond)
	assert.DirExists(t, filepath.Dir(g.dir), "the user's directory is not the program's")
}

func TestASessionThatWasForgottenIsLeftAlone(t *testing.T) {
	testenv.Slow(t)
	g := start(t)
	g.tell("forget")
	g.kill(t)
	require.Eventually(t, func() bool { return !alive(g.stats[1]) && gone(g.dir) }, patience, time.Millisecond)
	assert.True(t, alive(g.stats[0]))
}

func TestNothingIsKilledWhenAllWasClosedInGoodOrder(t *testing.T) {
	testenv.Slow(t)
	g := start(t)
	g.tell("close") // It waits for the guard.
	assert.True(t, alive(g.stats[0]))
	assert.True(t, alive(g.stats[1]))
}

func TestWatchWithoutABashFailsAndTheNextOneSucceeds(t *testing.T) {
	path := os.Getenv("PATH")
	t.Setenv("PATH", "/nowhere")
	require.Error(t, guard.Watch("/no/such/bash", "LIMPET_SESSION=x", t.TempDir()))
	t.Setenv("PATH", path)
	require.NoError(t, guard.Watch("/bin/bash", "LIMPET_SESSION=x", t.TempDir()))
	guard.Forget("LIMPET_SESSION=x")
}
