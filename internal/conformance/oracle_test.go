package conformance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
)

// bashPath and bashVersion are the oracle: the first bash in PATH.
var bashPath = sync.OnceValue(func() string {
	path, err := exec.LookPath("bash")
	if err != nil {
		panic(err) // There is nothing to compare with.
	}
	return path
})

var bashVersion = sync.OnceValue(func() string {
	out, err := exec.Command(bashPath(), "--norc", "-c", `echo "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}"`).Output()
	if err != nil {
		panic(err) // As above.
	}
	return strings.TrimSpace(string(out))
})

// asked keeps the oracle's answers: every test asks the same.
var asked sync.Map

// oracle is what bash -c says to a row, in an empty environment and in the
// row's directory.
func oracle(t *testing.T, row conformance.Row) conformance.Answer {
	t.Helper()
	if known, ok := asked.Load(row.Name); ok {
		return known.(conformance.Answer)
	}
	dir := freshDir(t, row)
	// Files rather than pipes: a row may leave a job that holds them.
	stdout, stderr := capture(t, row, "out"), capture(t, row, "err")
	defer stdout.Close() // Read by name.
	defer stderr.Close() // As above.
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, bashPath())
	cmd.Args = []string{"bash", "-c", row.Script}
	cmd.Dir, cmd.Env = dir, []string{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	want := conformance.Answer{Stdout: read(t, stdout), Stderr: read(t, stderr), Status: cmd.ProcessState.ExitCode()}
	// Jobs that the row left behind. While one of them lives the group's
	// number is theirs; if none does, nobody has it yet.
	_ = syscall.Kill(-cmd.ProcessState.Pid(), syscall.SIGKILL)
	require.NoError(t, ctx.Err(), "the row does not end")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err)
	} else if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		want.Status = 128 + int(status.Signal())
	}
	asked.Store(row.Name, want)
	return want
}

// capture opens a file for a stream as the shells do: for appending.
func capture(t *testing.T, row conformance.Row, ext string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(base, row.Name+"."+ext), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	require.NoError(t, err)
	return f
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	return string(b)
}
