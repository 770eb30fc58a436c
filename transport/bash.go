package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
)

// FindBash returns the absolute path of bash, or of the first one in PATH if
// bash is empty. Errors are [*StartError] that wrap a [*NoBashError].
func FindBash(bash string) (string, error) {
	if bash == "" {
		bash = "bash"
	}
	path, err := exec.LookPath(bash)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &StartError{Argv: []string{bash}, Code: -1, Err: &NoBashError{Err: err}}
	}
	return path, nil
}

// Bash 4.4 is the oldest that is supported: ${x@Q}, and the end of a dozen
// protocol bugs.
const oldestMajor, oldestMinor = 4, 4

// WantsBash is the remedy for a program that was to be a bash and is none.
const WantsBash = "Options.Bash wants a bash, 4.4 or newer"

// CheckVersion returns an error if version, bash's BASH_VERSION, is too old, or that
// of no bash.
func CheckVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("it is no bash: it says its version is %q; %s", version, WantsBash)
	}
	if major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return nil
	}
	return fmt.Errorf("bash %s is too old: limpet needs %d.%d or newer; set Options.Bash to a newer one (on macOS: brew install bash)",
		version, oldestMajor, oldestMinor)
}

// checked are the paths of which CheckBash knows that a bash is there.
var checked sync.Map

// checkTimeout bounds a check. A bash needs some milliseconds.
const checkTimeout = 10 * time.Second

// CheckBash runs the program at path on this machine, for its version, and returns
// a [*StartError] if it is no bash that is new enough. It does so once for each
// path at which there is one. When ctx ends, the error is ctx's.
func CheckBash(ctx context.Context, path string) error {
	if _, ok := checked.Load(path); ok {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, errNoVersion)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--noprofile", "--norc", "-c", `printf %s "$BASH_VERSION"`)
	// Bash sets it itself. Another shell has it from nobody.
	cmd.Env = append(environ.Default(), "BASH_VERSION=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr beginning
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	err := cmd.Run()
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errNoVersion) {
		return context.Cause(ctx)
	}
	failed := &StartError{Argv: []string{path}, Code: -1, Said: strings.TrimSpace(string(stderr.b)), Err: err}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failed.Err, failed.Remedy = errNoBash, WantsBash
		failed.Code = exit.ExitCode()
		if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			failed.Signal = st.Signal()
		}
	}
	switch {
	case ctx.Err() != nil:
		return &StartError{Argv: []string{path}, Code: -1, Err: errNoVersion, Remedy: WantsBash}
	case err != nil:
		if IsNoProgram(err) {
			failed.Remedy = WantsBash
		}
		return failed
	}
	if failed.Err = CheckVersion(strings.TrimSpace(string(stdout.b))); failed.Err != nil {
		return failed
	}
	checked.Store(path, true)
	return nil
}

var (
	errNoVersion = errors.New("it did not say its version in time")
	errNoBash    = errors.New("it ended without saying its version")
)

// IsNoProgram reports whether the error of a start says that the file cannot be
// executed, or that the interpreter in its first line is not there.
func IsNoProgram(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return errors.Is(err, syscall.ENOEXEC) || ok && e.Op == "fork/exec" && errors.Is(err, syscall.ENOENT)
}

// beginning keeps the beginning of what is written to it.
type beginning struct{ b []byte }

func (w *beginning) Write(p []byte) (int, error) {
	const most = 500
	w.b = append(w.b, p[:min(len(p), most-len(w.b))]...)
	return len(p), nil
}
