package shell_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	dir := testenv.MountTmpfs(t, "size="+size, 0)
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
		{"a list", "ls /nonexistent || true", "", 0},
		{"a pipeline", "true | false | true", "", command.CodeUnknown},
		{"bash ends", inBash + "echo hello; exit 5", "", 5},
		{"a fork ends", "echo hello; exit 5", "", 5},
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
	testenv.Slow(t)
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
	testenv.Slow(t)
	sh, ballast := smallDisk(t, "256k")
	res, err := sh.Do(testenv.Context(t), command.Request{
		Script: "dd if=/dev/zero of=" + ballast + " bs=4k 2>/dev/null; sleep 60", Timeout: 500 * time.Millisecond,
	})
	assert.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, command.CodeTimeout, res.ExitCode)
	require.NoError(t, os.Remove(ballast))
	assert.Equal(t, "kept", says(t, sh, "echo $x"))
}

// The state of a shell is written to its runtime directory, and must not fill that for
// good.
func TestALargeStateDoesNotFillTheRuntimeDirectory(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	sh := start(t, &shell.Options{RuntimeDir: dir, SaveDelay: time.Microsecond})
	run(t, sh, "small=kept; printf -v large '%01000000d' 7")
	saveState(t, sh)
	for range 3 {
		assert.Equal(t, "1000000", says(t, sh, "echo ${#large}"))
		saveState(t, sh)
	}
	_, err := sh.Run(testenv.Context(t), killBash)
	require.True(t, as[*shell.DeadError](err), "%v", err)
	assert.Equal(t, "kept 1000000", says(t, sh, "echo $small ${#large}"), "it fits when it is restored, too")
	assert.Equal(t, "kept 1000000", says(t, sh, "echo $small ${#large}"))
}

// saveState has the state of the shell saved.
func saveState(t *testing.T, sh *shell.PersistentShell) {
	t.Helper()
	_, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
}

func TestAStateThatDoesNotFitIsNotSavedAndTheCommandsGoOn(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	var log logBuffer
	sh := start(t, &shell.Options{RuntimeDir: dir, SaveDelay: time.Microsecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	run(t, sh, "small=kept")
	saveState(t, sh)
	run(t, sh, "printf -v large '%02000000d' 7; small=lost")
	_, err := sh.Checkpoint(testenv.Context(t))
	wantFull(t, err)
	for range 3 {
		assert.Equal(t, "2000000 lost", says(t, sh, "echo ${#large} $small"))
	}
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "state was not saved") }, testenv.Patience, time.Millisecond)

	res, err := sh.Run(testenv.Context(t), killBash)
	require.True(t, as[*shell.DeadError](err), "%v", err)
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.String(), "there was no room to save it")
	assert.Equal(t, "kept 0", says(t, sh, "echo $small ${#large}"), "the state before is there")

	// What fits again is saved again.
	res = run(t, sh, "printf -v large '%02000000d' 7; small=new; exit 0")
	require.Len(t, res.Receipt.NotKept, 1, "nor does that of a fork fit")
	assert.Contains(t, res.Receipt.NotKept[0], "no room")
	assert.Equal(t, "kept 0", says(t, sh, "echo $small ${#large}"))
	run(t, sh, "printf -v large '%02000000d' 7; small=new; "+inBash+"exit 0")
	run(t, sh, "unset large; small=new")
	saveState(t, sh)
	res, err = sh.Run(testenv.Context(t), killBash)
	require.True(t, as[*shell.DeadError](err), "%v", err)
	assert.NotContains(t, res.Restart.String(), "no room")
	assert.Equal(t, "new", says(t, sh, "echo $small"))
}

// logBuffer is a log that can be read while it is written to.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A script is not left behind in the runtime directory either.
func TestALargeScriptDoesNotFillTheRuntimeDirectory(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	sh := start(t, &shell.Options{RuntimeDir: dir, SaveDelay: time.Hour})
	assert.Equal(t, "900000", says(t, sh, "x="+strings.Repeat("x", 900_000)+"; echo ${#x}"))
	assert.Equal(t, "900000", says(t, sh, "echo ${#x}"))
}

// A script with a pipeline reports its exit code in a file. If that goes, nobody
// knows the code.
func TestAnExitCodeThatWasDeletedIsNotMadeUp(t *testing.T) {
	testenv.Slow(t)
	// Without events its files are made anew when limpet looks at the output, every 50 ms.
	sh := start(t, &shell.Options{Poll: 100 * time.Millisecond, SaveDelay: time.Hour})
	run(t, sh, "x=1")
	lost := 0
	for began := time.Now(); lost < 3 && time.Since(began) < testenv.Patience; { // On a busy machine it looks seldom at the right moment.
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
	assert.Equal(t, 3, lost)
	assert.Equal(t, 3, run(t, sh, "true | true; exit 3").ExitCode) // It has no such report, and needs none.
}
