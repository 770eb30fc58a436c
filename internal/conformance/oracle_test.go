package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

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
	stdout, stderr := capture(t, row, "out"), capture(t, row, "err")
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, bashPath())
	cmd.Args = []string{"bash", "-c", row.Script}
	cmd.Dir, cmd.Env = dir, []string{}
	cmd.Stdout, cmd.Stderr = stdout.writer, stderr.writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = longest
	err := cmd.Run()
	want := conformance.Answer{Stdout: stdout.text(), Stderr: stderr.text(), Status: cmd.ProcessState.ExitCode()}
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

// captured is a stream of the oracle's.
type captured struct {
	writer io.Writer
	text   func() string
}

// capture makes a file for a stream, opened for appending as the shells do it, so
// that a job that the row leaves behind holds nobody up. A piped row leaves process
// substitutions instead, which a pipe waits for.
func capture(t *testing.T, row conformance.Row, ext string) captured {
	t.Helper()
	if row.Piped {
		var buf bytes.Buffer
		return captured{&buf, buf.String}
	}
	f, err := os.OpenFile(filepath.Join(base, row.Name+"."+ext), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	require.NoError(t, err)
	return captured{f, func() string {
		defer f.Close() // Read by name.
		b, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		return string(b)
	}}
}
