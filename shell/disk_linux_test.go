package shell_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/shell"
)

// smallDisk is a shell whose files are on a disk of the given size, and the file
// that fills it.
func smallDisk(t *testing.T, size string) (sh *shell.PersistentShell, ballast string) {
	t.Helper()
	dir := mountTmpfs(t, "size="+size, 0)
	sh = start(t, &shell.Options{RuntimeDir: dir, SaveDelay: time.Hour})
	run(t, sh, "x=kept")
	return sh, filepath.Join(dir, "ballast")
}

func fill(ballast string) {
	_ = exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=4k").Run() // It fails when the disk is full.
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	disk, ok := errors.AsType[*ipc.DiskError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.NotEmpty(t, disk.Dir)
	assert.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "make room there")
}

func TestOnAFullDiskNothingRunsUntilThereIsRoom(t *testing.T) {
	sh, ballast := smallDisk(t, "256k")
	fill(ballast)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, req := range []command.Request{
		{Script: "echo hello; true"},
		{Script: "ls /nonexistent || true"},
		{Script: "true | true"},
		{Script: "cat", Stdin: strings.NewReader("hello")},
		{Script: "echo hello", MergeStderr: true},
	} {
		req.Script = ": >" + ran + "; " + req.Script
		res, err := sh.Do(testenv.Context(t), req)
		wantFull(t, err)
		assert.Equal(t, command.CodeUnknown, res.ExitCode, req.Script)
		assert.Nil(t, res.Restart)
	}
	assert.NoFileExists(t, ran)

	require.NoError(t, os.Remove(ballast))
	assert.Equal(t, "kept", says(t, sh, "echo $x"))
	assert.Equal(t, 0, run(t, sh, "ls /nonexistent || true").ExitCode)
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: strings.NewReader("hello")})
	require.NoError(t, err)
	assert.Equal(t, "hello", res.Stdout.String())
}

// The disk fills while the command runs: what it did is told, and that it may not
// be all.
func TestADiskThatFillsUnderACommandIsAnErrorBesideItsResult(t *testing.T) {
	for _, test := range []struct {
		name, script, stdin string
		code                int
	}{
		{"echo", "echo hello; true", "", 0},
		{"a code of its own", "echo hello; (exit 3)", "", 3},
		{"a list", "ls /nonexistent || true", "", command.CodeUnknown},
		{"a pipeline", "true | false | true", "", command.CodeUnknown},
		{"bash ends", "echo hello; exit 5", "", 5},
		{"stdin", "cat; (exit 4)", "hello", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			sh, ballast := smallDisk(t, "256k")
			req := command.Request{Script: "dd if=/dev/zero of=" + ballast + " bs=4k 2>/dev/null; " + test.script}
			if test.stdin != "" {
				req.Stdin = strings.NewReader(test.stdin)
			}
			res, err := sh.Do(testenv.Context(t), req)
			wantFull(t, err)
			assert.ErrorContains(t, err, "may be incomplete")
			assert.Equal(t, test.code, res.ExitCode)
			require.NoError(t, os.Remove(ballast))
			assert.Equal(t, "kept", says(t, sh, "echo $x"))
		})
	}
}

func TestOutputThatIsLargerThanTheDiskIsAnError(t *testing.T) {
	sh, _ := smallDisk(t, "128k")
	res, err := sh.Run(testenv.Context(t), "for i in {1..30000}; do echo line $i; done; true")
	wantFull(t, err)
	assert.Equal(t, 0, res.ExitCode)
	assert.True(t, strings.HasPrefix(res.Stdout.String(), "line 1\nline 2\n"))
	// Its file was cut: there is room again.
	assert.Equal(t, "kept", says(t, sh, "echo $x"))

	// It need not be full any more when the command ends.
	_, err = sh.Run(testenv.Context(t), "for i in {1..30000}; do echo line $i; done 2>/dev/null; sleep .3; : >/dev/stdout")
	wantFull(t, err)
	assert.Equal(t, "kept", says(t, sh, "echo $x"))
}

func TestAStopOnAFullDiskKeepsItsOwnError(t *testing.T) {
	sh, ballast := smallDisk(t, "256k")
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: "dd if=/dev/zero of=" + ballast + " bs=4k 2>/dev/null; sleep 60", Timeout: 500 * time.Millisecond,
	})
	assert.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	require.NoError(t, os.Remove(ballast))
	assert.Equal(t, "kept", says(t, sh, "echo $x"))
}

// A script with a pipeline reports its exit code in a file. If that goes, nobody
// knows the code.
func TestAnExitCodeThatWasDeletedIsNotMadeUp(t *testing.T) {
	// Without events its files are made anew when limpet looks at the output, every 50 ms.
	sh := start(t, &shell.Options{Poll: 100 * time.Millisecond, SaveDelay: time.Hour})
	run(t, sh, "x=1")
	lost := 0
	for range 10 {
		res, err := sh.Run(testenv.Context(t), "sleep 0.1; rm -rf ${BASH_SOURCE%/*}; true | (exit 4)")
		assert.Nil(t, res.Restart)
		if err == nil { // They were back in time.
			assert.Equal(t, 4, res.ExitCode)
			continue
		}
		lost++
		assert.ErrorIs(t, err, ipc.ErrDeleted)
		assert.ErrorContains(t, err, "while the command ran")
		assert.ErrorContains(t, err, "set RuntimeDir")
		assert.True(t, as[*ipc.DiskError](err), "%T", err)
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
		assert.Nil(t, res.Receipt.Pipeline)
		assert.Equal(t, "1", says(t, sh, "echo $x"))
	}
	assert.NotZero(t, lost)
	assert.Equal(t, 3, run(t, sh, "true | true; return 3").ExitCode) // It has no such report, and needs none.
}
