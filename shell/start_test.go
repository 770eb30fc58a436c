//go:build linux

package shell_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bash")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

// oldBash answers the first line as a bash of macOS would.
const oldBash = `#!/bin/sh
read -r line
last=${line##* }
line=${line% *}
first=${line##* }
printf '<%s>' "$first" "$last" 0 '3.2.57(1)-release' "$PWD" "$first" "$last"
cat >/dev/null
`

func TestStartRefusesWhatIsNoBash(t *testing.T) {
	for _, test := range []struct {
		name string
		bash string
		want string
	}{
		{"missing", "/no/such/bash", "install it"},
		{"not executable", "/etc/passwd", "permission denied; make it executable (chmod +x), or set Options.Bash to the path of another one"},
		{"a directory", t.TempDir(), "is a directory; set Options.Bash to the path of a bash"},
		{"too old", program(t, oldBash), "bash 3.2.57(1)-release is too old: limpet needs 4.4 or newer"},
		{"ends at once", program(t, "#!/bin/sh\necho nothing here >&2\nexit 3\n"),
			"exit status 3): it said: nothing here; Options.Bash wants a bash, 4.4 or newer"},
		{"killed", program(t, "#!/bin/sh\nkill -9 $$\n"), "killed by signal 9"},
		{"another program", "/bin/cat", "; Options.Bash wants a bash, 4.4 or newer"},
		{"another shell", program(t, "#!/bin/sh\necho 'Illegal option --' >&2\nexit 2\n"), "; Options.Bash wants a bash, 4.4 or newer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sh, err := shell.Start(testenv.Context(t), &shell.Options{Bash: test.bash, RuntimeDir: t.TempDir(), StartTimeout: 2 * time.Second})
			require.Nil(t, sh)
			started, ok := errors.AsType[*shell.StartError](err)
			require.True(t, ok, "%T: %v", err, err)
			assert.ErrorContains(t, err, test.want)
			assert.NotEmpty(t, started.Argv)
		})
	}
}

// startHelper starts a shell as the first session of a program, whose guard
// cannot be started either, and says what came of it.
func startHelper() error {
	sh, err := shell.Start(context.Background(), &shell.Options{
		Bash: os.Getenv("LIMPET_TEST_BASH"), RuntimeDir: os.Getenv("LIMPET_TEST_DIR"),
	})
	if sh != nil {
		return errors.New("it started")
	}
	if _, ok := errors.AsType[*shell.StartError](err); !ok {
		return fmt.Errorf("no StartError but %T: %w", err, err)
	}
	fmt.Print(err)
	// The next one finds the guard as it should be.
	sh, err = shell.Start(context.Background(), &shell.Options{RuntimeDir: os.Getenv("LIMPET_TEST_DIR")})
	if err != nil {
		return err
	}
	return sh.Close()
}

func TestStartRefusesWhatCannotBeExecuted(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no program", "no program\n", "exec format error; Options.Bash wants a bash"},
		{"no interpreter", "#!/no/such/interpreter\n", "no such file or directory; Options.Bash wants a bash"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := helper(t, "start", "LIMPET_TEST_BASH="+program(t, test.text), "LIMPET_TEST_DIR="+t.TempDir()).CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), test.want)
		})
	}
}

func TestAMissingBashIsANoBashError(t *testing.T) {
	_, err := shell.Start(testenv.Context(t), &shell.Options{Bash: "/no/such/bash"})
	_, ok := errors.AsType[*transport.NoBashError](err)
	assert.True(t, ok, "%v", err)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAProgramThatSaysNothingEndsWithTheStartTimeout(t *testing.T) {
	_, err := shell.Start(testenv.Context(t), &shell.Options{
		Bash: program(t, "#!/bin/sh\nexec sleep 60\n"), RuntimeDir: t.TempDir(), StartTimeout: 200 * time.Millisecond,
	})
	require.ErrorContains(t, err, "StartTimeout")
}

func TestStartObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errWhy)
	_, err := shell.Start(ctx, nil)
	require.ErrorIs(t, err, errWhy)

	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	_, err = shell.Start(ctx, &shell.Options{Bash: program(t, "#!/bin/sh\nexec sleep 60\n"), RuntimeDir: t.TempDir()})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheContextOfStartBoundsTheStartOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sh, err := shell.Start(ctx, &shell.Options{RuntimeDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	cancel()
	assert.Equal(t, "alive", says(t, sh, "echo alive"))
}

func TestStartRefusesBadOptions(t *testing.T) {
	_, err := shell.Start(testenv.Context(t), &shell.Options{Dir: "/no/such/dir"})
	dir, ok := errors.AsType[*shell.DirError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, "/no/such/dir", dir.Dir)
	assert.ErrorIs(t, err, os.ErrNotExist)

	for _, entry := range []string{"NAME", "=x", "A=secret\x00"} {
		_, err := shell.Start(testenv.Context(t), &shell.Options{Env: []string{entry}})
		_, ok := errors.AsType[*command.EnvError](err)
		assert.True(t, ok, "%q: %v", entry, err)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestAReadOnlyRuntimeDirIsAClearError(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=64k", unix.MS_RDONLY)
	_, err := shell.Start(testenv.Context(t), &shell.Options{RuntimeDir: dir})
	disk, ok := errors.AsType[*ipc.DiskError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.ErrorIs(t, err, unix.EROFS)
	assert.ErrorContains(t, err, "set RuntimeDir")
	assert.Contains(t, disk.Dir, dir)
}

func TestAMissingRuntimeDirIsAClearError(t *testing.T) {
	_, err := shell.Start(testenv.Context(t), &shell.Options{RuntimeDir: "/no/such/dir"})
	_, ok := errors.AsType[*ipc.DiskError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAFullRuntimeDirIsAClearErrorAndTheShellGoesOnWhenThereIsRoom(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=512k", 0)
	sh := start(t, &shell.Options{RuntimeDir: dir})
	run(t, sh, "x=kept")
	ballast := filepath.Join(dir, "ballast")
	_ = exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=4k").Run() // It fails when the disk is full.
	long := "echo " + strings.Repeat("x", 100_000)
	_, err := sh.Run(testenv.Context(t), long)
	_, ok := errors.AsType[*ipc.DiskError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "make room")
	require.NoError(t, os.Remove(ballast))
	assert.Equal(t, "kept", says(t, sh, "echo $x"))
	assert.Equal(t, 100_001, int(run(t, sh, long).Stdout.Total))
}

func TestInitFilesAreSourcedInOrder(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a b"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("x=1; f() { echo f; }; alias ll=ls; echo noise"), 0o600))
	require.NoError(t, os.WriteFile(b, []byte("x=${x}2; declare -a list=(p q)"), 0o600))
	sh := start(t, &shell.Options{InitFiles: []string{a, b}})
	assert.Equal(t, "12 f q", says(t, sh, `echo $x $(f) ${list[1]}`))
}

func TestAnInitFileThatExitsIsAStartError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rc")
	require.NoError(t, os.WriteFile(file, []byte("exit 4"), 0o600))
	_, err := shell.Start(testenv.Context(t), &shell.Options{InitFiles: []string{file}, RuntimeDir: t.TempDir()})
	started, ok := errors.AsType[*shell.StartError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 4, started.Code)
	assert.ErrorContains(t, err, "while it ran")
}

func TestNothingIsLeftInTheRuntimeDirAfterClose(t *testing.T) {
	dir := t.TempDir()
	sh, err := shell.Start(testenv.Context(t), &shell.Options{RuntimeDir: dir})
	require.NoError(t, err)
	run(t, sh, "echo x; sleep 1000 & echo $!")
	require.NoError(t, sh.Close())
	require.NoError(t, sh.Close())
	found, err := filepath.Glob(filepath.Join(dir, "limpet-*", "*"))
	require.NoError(t, err)
	assert.Empty(t, found)
}

// Two sessions of one program share a directory and a guard. Whoever closes
// must leave alone what another has just begun to use.
func TestStartsBesideClosesAlwaysSucceed(t *testing.T) {
	testenv.Slow(t)
	dir, errs := t.TempDir(), make(chan error, 2)
	for range 2 {
		go func() {
			errs <- func() error {
				for range 60 {
					sh, err := shell.Start(context.Background(), &shell.Options{RuntimeDir: dir, StartTimeout: testenv.Patience})
					if err != nil {
						return err
					}
					_, err = sh.Run(context.Background(), "true")
					if err := errors.Join(err, sh.Close()); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range 2 {
		assert.NoError(t, <-errs)
	}
}

// pollHelper runs a shell in a user namespace, in which there are no inotify instances. To use up those
// of the user is not enough: other programs give theirs back meanwhile.
func pollHelper() error {
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0); err != nil {
		return err
	}
	var log strings.Builder
	sh, err := shell.Start(context.Background(), &shell.Options{
		RuntimeDir: os.Getenv("LIMPET_TEST_DIR"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		return err
	}
	defer sh.Close()
	for range 50 {
		res, err := sh.Run(context.Background(), "echo polled; (exit 3)")
		if err != nil || res.ExitCode != 3 || res.Stdout.String() != "polled\n" {
			return errors.Join(err, errors.New("wrong answer: "+res.Stdout.String()))
		}
	}
	if !strings.Contains(log.String(), "polling for results") {
		return errors.New("the log does not say that it polls: " + log.String())
	}
	return nil
}

func TestAShellWithoutInotifyInstancesPollsAndSaysSo(t *testing.T) {
	cmd := helper(t, "poll", "LIMPET_TEST_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{ // As root, who may set the namespace's limits.
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skip("no user namespace is to be had here: " + err.Error())
	}
	require.NoError(t, cmd.Wait(), out.String())
}

func TestThePollOptionWorksAsEventsDo(t *testing.T) {
	sh := start(t, &shell.Options{Poll: time.Millisecond})
	for i := range 20 {
		res := run(t, sh, "x=$((x+1)); echo $x; (exit 4)")
		assert.Equal(t, 4, res.ExitCode)
		assert.Equal(t, string(rune('0'+(i+1)%10)), res.Stdout.String()[len(res.Stdout.String())-2:][:1])
	}
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 60", Timeout: 200 * time.Millisecond})
	assert.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, "20", says(t, sh, "echo $x"))
}
