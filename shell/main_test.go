package shell_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// helperVar names the part that the test binary plays instead of running tests.
const helperVar = "LIMPET_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		helper, ok := helpers[role]
		if !ok {
			fmt.Fprintf(os.Stderr, "no helper %q\n", role)
			os.Exit(2)
		}
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shell.SetRestorePatience(2 * time.Second) // Some tests wait for a bash that hangs.
	os.Exit(testenv.Main(m))
}

// helpers are the programs that the test binary can be.
var helpers = map[string]func() error{
	"poll":  pollHelper,
	"start": startHelper,
}

// helper returns a command that runs the test binary as a helper.
func helper(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	require.Contains(t, helpers, role)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), helperVar+"="+role), env...)
	return cmd
}

// start starts a shell that is closed at the end of the test.
func start(t *testing.T, opts *shell.Options) *shell.PersistentShell {
	t.Helper()
	own := shell.Options{}
	if opts != nil {
		own = *opts
	}
	if own.RuntimeDir == "" {
		own.RuntimeDir = t.TempDir()
	}
	if own.Dir == "" {
		own.Dir = t.TempDir()
	}
	sh, err := shell.Start(testenv.Context(t), &own)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

// run runs a script that bash must be able to report on.
func run(t *testing.T, sh *shell.PersistentShell, script string) command.Result {
	t.Helper()
	res, err := sh.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return res
}

// says runs a script and returns its stdout without the last newline.
func says(t *testing.T, sh *shell.PersistentShell, script string) string {
	t.Helper()
	return strings.TrimSuffix(run(t, sh, script).Stdout.String(), "\n")
}

// bashPID returns the pid of the shell's bash.
func bashPID(t *testing.T, sh *shell.PersistentShell) int {
	t.Helper()
	pid, err := strconv.Atoi(says(t, sh, `\builtin echo $$`))
	require.NoError(t, err)
	return pid
}

// awaitFile waits until a file is there, which a script made for the test.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, testenv.Patience, time.Millisecond, "%s never appears", path)
}

// inBash begins a script that runs in the session's bash itself, as those do that deal with
// its jobs: what ends the script ends bash.
const inBash = "jobs >/dev/null; "

// killBash is a command that kills the session's bash.
const killBash = `bash -c 'kill -9 $PPID'`

// begin runs a script in the background and returns, when the script has made
// its file "begun", the channel on which the answer comes.
func begin(t *testing.T, sh *shell.PersistentShell, ctx context.Context, script string) <-chan answer {
	t.Helper()
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Run(ctx, ": >"+begun+"; "+script)
		done <- answer{res, err}
	}()
	awaitFile(t, begun)
	return done
}

type answer struct {
	res command.Result
	err error
}

func await(t *testing.T, done <-chan answer) answer {
	t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(testenv.Patience):
		require.FailNow(t, "the command does not return")
		return answer{}
	}
}

// diskUse is what a file really takes, without its holes.
func diskUse(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	require.NoError(t, err)
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}
