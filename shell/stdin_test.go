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
	testenv.Slow(t)
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

// What bash reads its commands from is open to no script, by no number, wherever that runs. A
// script may have any number for itself.
func TestNoScriptReadsWhatBashReads(t *testing.T) {
	// Each number by itself, or what only bash can tell.
	const all = `for i in {3..300}; do read -t 0.01 -u $i x 2>/dev/null && echo "$i [$x]"; { read -t 0.01 x <&$i && echo "$i [$x]"; } 2>/dev/null; done; echo end`
	for _, row := range []struct{ script, want string }{
		{`exec 12<<<data; read -u 12 x; echo "[$x]"`, "[data]"},
		{`exec 13>lk; echo x >&13; cat lk`, "x"},
		{`exec 10>a; exec 11>b; echo x >&10; echo y >&11; cat a b`, "x\ny"},
		{`exec 14>out; (echo x >&14); cat out`, "x"},
		{`exec 63>out; echo x >&63; cat out`, "x"},
		{`exec 70>out 71>out2; echo x >&70; cat out`, "x"},
		{`exec 200>out 203<out; echo x >&200; cat <&203`, "x"},
		{`f=10; read -t 5 -u $f x 2>/dev/null; echo "[$x]"`, "[]"},
		{`cat <&10 2>/dev/null; cat /dev/fd/11 2>/dev/null; echo end`, "end"},
		{all, "end"},
		{`{ ` + all + `; } | cat`, "end"},
		{`f() { ` + all + `; }; f; exit 3`, "end"},
		{`(` + all + `)`, "end"},
	} {
		for _, in := range []string{"", inBash} {
			for _, stdin := range []string{"no input", "input"} {
				t.Run(in+row.script+", "+stdin, func(t *testing.T) {
					t.Parallel()
					opts := &shell.Options{}
					if stdin == "input" {
						opts.Stdin = input(t, "")
					}
					sh := start(t, opts)
					assert.Equal(t, row.want, strings.TrimSuffix(run(t, sh, in+row.script).Stdout.String(), "\n"))
					assert.Equal(t, "next", says(t, sh, "echo next"))
				})
			}
		}
	}
}

// A trap for EXIT of bash itself runs with bash's own stdin: there it finds end-of-file.
func TestATrapThatReadsOnTheWayOutEnds(t *testing.T) {
	testenv.Slow(t)
	for _, trap := range []string{
		"read x", "cat >/dev/null", "sort | wc -l >/dev/null", "x=$(cat)", "bash -c cat", "f() { cat; }; f", "cat & wait", "read -t 100 x", "cat | cat",
	} {
		t.Run(trap, func(t *testing.T) {
			t.Parallel()
			sh := start(t, nil)
			res := run(t, sh, inBash+"trap '"+trap+"; echo cleaned' EXIT; exit 3")
			assert.Equal(t, 3, res.ExitCode)
			assert.Equal(t, "cleaned\n", res.Stdout.String())
			require.NotNil(t, res.Restart)
			assert.Equal(t, "next", says(t, sh, "echo next"))
		})
	}
}
