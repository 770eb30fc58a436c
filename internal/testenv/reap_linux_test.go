package testenv_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// endVar says how a test binary ends that leaves processes behind.
const endVar = "LIMPET_TEST_END"

var ends = map[string]func(){
	"pass":  func() {},
	"fail":  func() { os.Exit(3) },
	"panic": func() { panic("on purpose") },
	"hang":  func() { select {} },
}

func TestMain(m *testing.M) {
	testenv.Reap()
	if end, ok := ends[os.Getenv(endVar)]; ok {
		if err := leave(); err != nil {
			fmt.Println(err)
		}
		end()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// leave starts processes that have nothing to do with this one any more: neither a parent,
// nor a session, nor an environment. It prints its own pid and theirs.
func leave() error {
	cmd := exec.Command("bash", "-c", `setsid env -i sleep 1001 & (env -i sleep 1002 & echo $! $(env -i setsid -f bash -c 'echo $$; exec sleep 1003 >/dev/null')); echo $!`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	first, _ := lines.ReadString('\n') // Too few pids fail the test.
	second, err := lines.ReadString('\n')
	fmt.Println(os.Getpid(), strings.TrimSpace(first), strings.TrimSpace(second))
	return err
}

func TestNothingOutlivesTheTests(t *testing.T) {
	testenv.Slow(t)
	for _, row := range []struct {
		end    string
		kill   func(outer *os.Process, tests int) error
		code   int // -1: a signal ended it
		stderr string
	}{
		{end: "pass", code: 1, stderr: `"sleep 1003"`},
		{end: "fail", code: 3},
		{end: "panic", code: 2, stderr: "panic: on purpose"},
		{end: "hang", code: -1, kill: func(outer *os.Process, _ int) error { return outer.Kill() }},
		{end: "hang", code: 128 + 9, kill: func(_ *os.Process, tests int) error { return syscall.Kill(tests, syscall.SIGKILL) }},
		{end: "hang", code: 2, stderr: "SIGQUIT: quit", kill: func(outer *os.Process, _ int) error { return outer.Signal(syscall.SIGQUIT) }},
		{end: "hang", code: 128 + 15, kill: func(outer *os.Process, _ int) error { return outer.Signal(syscall.SIGTERM) }},
	} {
		t.Run(fmt.Sprintf("%s, %d", row.end, row.code), func(t *testing.T) {
			t.Parallel()
			exe, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), testenv.OwnReaper, endVar+"="+row.end)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			var pids []int
			for _, field := range strings.Fields(line) {
				pid, err := strconv.Atoi(field)
				require.NoError(t, err, line)
				pids = append(pids, pid)
			}
			require.Len(t, pids, 4)
			if row.kill != nil {
				for _, pid := range pids {
					assert.True(t, testenv.Alive(pid), pid)
				}
				require.NoError(t, row.kill(cmd.Process, pids[0]))
			}
			_ = cmd.Wait() // The code says more.
			testenv.Await(t, "the end of all", func() bool { return !slices.ContainsFunc(pids, testenv.Alive) })
			assert.Equal(t, row.code, cmd.ProcessState.ExitCode(), stderr.String())
			assert.Contains(t, stderr.String(), row.stderr)
		})
	}
}
