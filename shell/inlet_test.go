package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// reading runs a script in the shell itself, with something to read.
func reading(t *testing.T, sh *shell.PersistentShell, script, stdin string) command.Result {
	t.Helper()
	res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Stdin: strings.NewReader(stdin)})
	require.NoError(t, err, script)
	return res
}

func TestStdinInTheShellIsReadThere(t *testing.T) {
	runtime := testenv.TempDir(t)
	sh := start(t, &shell.Options{StdinInShell: true, RuntimeDir: runtime})
	pid := run(t, sh, "echo $$").Stdout.String()
	res := reading(t, sh, "read -r a; read -r b; cd /usr; echo $$", "one\ntwo\nthree\n")
	assert.Equal(t, pid, res.Stdout.String())
	assert.Equal(t, "one two /usr\n", run(t, sh, "echo $a $b $PWD").Stdout.String())
	for _, row := range []struct{ script, stdin, out string }{
		{"cat", "", ""},
		{"cat", "no newline", "no newline"},
		{"cat; echo end", "a\n", "a\nend\n"},
		{"set -e; read -r c; cat", "1\n2\n", "2\n"},                   // In a fork.
		{"exit $(wc -l)", "1\n2\n", ""},                               // As above.
		{"exec 3<&0; read -r d <&3; exec 3<&-; cat", "x\ny\n", "y\n"}, // With descriptors.
		{"exec 70<&0; cat <&70; exec 70<&-", "z\n", "z\n"},            // With limpet's own.
		{"while read -r l; do echo [$l]; done", "1\n2\n", "[1]\n[2]\n"},
		{"{ cat & wait; }", "", ""},
		{"cat <&0 | cat", "pipe\n", "pipe\n"},
		{"bash -s", "echo from stdin\n", "from stdin\n"},
		{"head -c 1; cat >/dev/null", strings.Repeat("x", 1<<20), "x"},
	} {
		assert.Equal(t, row.out, reading(t, sh, row.script, row.stdin).Stdout.String(), row.script)
		assert.Empty(t, run(t, sh, "cat").Stdout.String(), "behind %s", row.script)
	}
	assert.Equal(t, pid, run(t, sh, "echo $$").Stdout.String())
	pipes := 0
	require.NoError(t, filepath.WalkDir(runtime, func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		if e.Type()&os.ModeNamedPipe != 0 {
			pipes++
		}
		return nil
	}))
	assert.Zero(t, pipes, "the pipes are gone")
}

func TestStdinInTheShellIsStoppedWithItsCommand(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, &shell.Options{StdinInShell: true})
	run(t, sh, "x=kept")
	r, w := io.Pipe()
	defer w.Close() // It ends the goroutine that reads.
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "echo before; cat; echo never", Stdin: r, Timeout: 300 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, "before\n", res.Stdout.String())
	for range 20 { // Also before bash has opened the pipe.
		ctx, cancel := context.WithTimeout(testenv.Context(t), 500*time.Microsecond)
		_, err := sh.Do(ctx, command.Request{Script: "cat", Stdin: endless{}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	assert.Equal(t, "kept\n", run(t, sh, "echo $x").Stdout.String())
}

// endless is a Reader without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestWhatALeftoverReadsEndsWithItsCommand(t *testing.T) {
	sh := start(t, &shell.Options{StdinInShell: true})
	file := filepath.Join(testenv.TempDir(t), "file")
	r, w := io.Pipe()
	defer w.Close() // As above.
	go func() { _, _ = io.WriteString(w, "some\n") }()
	_, err := sh.Do(testenv.Context(t), command.Request{Script: fmt.Sprintf("read -r line; exec 9<&0; { cat <&9; echo over; } >%s & exec 9<&-", file), Stdin: r})
	require.NoError(t, err)
	assert.Equal(t, "over", testenv.AwaitFile(t, file))
}

func TestAReaderThatFailsInTheShellIsTold(t *testing.T) {
	sh := start(t, &shell.Options{StdinInShell: true})
	failed := errors.New("the line is dead")
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: io.MultiReader(strings.NewReader("some\n"), broken{failed})})
	require.ErrorIs(t, err, failed)
	require.EqualError(t, err, "shell: reading the command's stdin: the line is dead")
	assert.Equal(t, "some\n", res.Stdout.String())
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestMuchIsReadInTheShell(t *testing.T) {
	sh := start(t, &shell.Options{StdinInShell: true})
	much := bytes.Repeat([]byte("0123456789abcde\n"), 4<<16)
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "n=$(wc -c)", Stdin: bytes.NewReader(much)})
	require.NoError(t, err)
	assert.Zero(t, res.ExitCode)
	assert.Equal(t, fmt.Sprintln(len(much)), run(t, sh, "echo $n").Stdout.String())
}
