package shell_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// input returns a file with a text to read.
func input(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // Read only.
	return f
}

func TestCommandsReadTheStdinOfTheShellAndLeaveTheRest(t *testing.T) {
	in := input(t, "one\ntwo\nthree\nfour\n")
	sh := start(t, &shell.Options{Stdin: in})
	assert.Equal(t, "one", says(t, sh, "read -r x; echo $x"))
	assert.Equal(t, "one", says(t, sh, "echo $x"), "it was read by the shell itself")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: strings.NewReader("of the request")})
	require.NoError(t, err)
	assert.Equal(t, "of the request", res.Stdout.String())
	assert.Equal(t, "two", says(t, sh, "head -n 1 >/dev/null </dev/null; read -r x; echo $x"))
	assert.Equal(t, "three", says(t, sh, inBash+"read -r x; echo $x; exit 3"))
	assert.Equal(t, "four", says(t, sh, "cat | cat"), "a new bash goes on with it")
	assert.Empty(t, says(t, sh, "cat"))
}

func TestWhatNobodyReadsStaysInTheStdinOfTheShell(t *testing.T) {
	in := input(t, "one\n")
	init := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(init, []byte("cat\n"), 0o600))
	sh := start(t, &shell.Options{Stdin: in, InitFiles: []string{init}})
	assert.Equal(t, "hi", says(t, sh, "echo hi"))
	require.NoError(t, sh.Close())
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(rest))
}

// What a script starts has the file at 0, and nowhere else: a writer at the other end
// of a pipe would wait for a reader that is none.
func TestProgramsHaveTheStdinOfTheShellOnce(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	sh := start(t, &shell.Options{Stdin: input(t, "")})
	const list = "for f in /proc/self/fd/*; do readlink $f; done | grep -c /input$"
	assert.Equal(t, "1", says(t, sh, "bash -c '"+list+"'"))
}

func TestAReadOfTheStdinOfTheShellIsStopped(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close() // Nothing is written.
	defer r.Close() // As above.
	sh := start(t, &shell.Options{Stdin: r})
	for _, script := range []string{"x=kept; read -r y", "x=kept; cat"} {
		_, err = sh.Do(testenv.Context(t), command.Request{Script: script, Timeout: 300 * time.Millisecond})
		require.ErrorIs(t, err, shell.ErrTimeout)
		assert.Equal(t, "kept", says(t, sh, "echo $x; unset x"))
	}
}

// Bash keeps its own descriptor 0 in a copy while a script reads, and the script can close
// the copy.
func TestWhatIsOnStdinIsNeverRun(t *testing.T) {
	closeAll := `for fd in {3..40}; do eval "exec $fd<&-"; done`
	for _, script := range []string{
		"exec 10<&-", "exec 11<&-", "exec 12<&-", "exec 13<&-", "exec 14<&-", "exec 15<&-", closeAll, "ulimit -n 10", closeAll + "; ulimit -n 10",
		closeAll + "; set -u; echo $nosuch", closeAll + "; exit 3", closeAll + "; set -e; false", closeAll + "; kill -INT $$; :", "enable -n test; " + closeAll,
		closeAll + "; return 3", closeAll + "; eval 'test() { :; }; exec() { :; }'",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close() // Read only.
			for range 200 { // More than the block that bash reads at a time.
				_, err = w.WriteString("touch " + dir + "/ran; echo ran\n")
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			sh := start(t, &shell.Options{Stdin: r})
			run(t, sh, "x=1")
			_, _ = sh.Run(testenv.Context(t), script) // It may have ended bash.
			res, err := sh.Run(testenv.Context(t), "echo hi $x")
			require.NoError(t, err)
			assert.Equal(t, "hi 1\n", res.Stdout.String())
			require.NoError(t, sh.Close())
			assert.NoFileExists(t, filepath.Join(dir, "ran"))
		})
	}
}
