package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/transport"
)

// Caps says what this machine can enforce.
type Caps struct {
	Bwrap   string // its path
	Version string
	Overlay bool // Scratch is to be had
	Patched bool // it does not follow symlinks that a sandbox has left (CVE-2026-87766), of 0.12 on; a distribution's may not either
}

// probed are the results by bwrap and user: the kernel's answer does not change
// while a program runs, but for who asks.
var probed struct {
	mu  sync.Mutex
	key string
	err error
}

// Probe starts a sandbox with every restriction there is, in an empty
// directory, and says what this machine can enforce, or an [*Error] that names
// the cause and the remedy. The result is kept until bwrap changes. It takes some
// milliseconds, and [StartTimeout] at most.
func Probe(ctx context.Context) (Caps, error) {
	b, err := findBackend()
	if err != nil {
		return Caps{}, err
	}
	caps := Caps{Bwrap: b.path, Version: fmt.Sprintf("%d.%d", b.major, b.minor), Overlay: b.atLeast(0, 11), Patched: b.atLeast(0, 12)}
	probed.mu.Lock()
	defer probed.mu.Unlock()
	key := fmt.Sprint(b.id, os.Geteuid())
	if probed.key != key || ctx.Err() != nil {
		probed.key, probed.err = key, smoke(ctx)
		if ctx.Err() != nil {
			probed.key = "" // It says nothing about the machine.
		}
	}
	return caps, probed.err
}

// smoke tries the usual policy, with limits, which are set while the sandbox waits.
func smoke(ctx context.Context) error {
	return Try(ctx, func(workspace string) Policy {
		p := WorkspaceWrite(workspace)
		p.Limits.NoFile = 64 // Enough for sh, and not above what the program itself has.
		return p
	})
}

// emptyDir makes a directory that can be a workspace.
func emptyDir() (string, error) {
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := private.MkdirTemp(base, "limpet-probe-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		real := realPath(dir)
		if why, err := tooWide(real); err == nil && why == "" {
			return real, nil
		}
		_ = os.RemoveAll(dir) // As in smoke.
		errs = append(errs, fmt.Errorf("%s can be no workspace", base))
	}
	return "", &Error{Code: ErrBadWorkspace, Detail: "no directory to try a sandbox in: " + errors.Join(errs...).Error(), Hint: "set TMPDIR to another directory"}
}

// Try starts a sandbox by the preset in an empty directory, in which next to nothing
// runs, and says whether this machine can enforce the policy: nil, or an [*Error]
// with the cause and the remedy. It takes some milliseconds, and [StartTimeout] at
// most.
func Try(ctx context.Context, preset func(workspace string) Policy) error {
	dir, err := emptyDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // Best effort: it is empty.
	t, err := New(preset(dir))
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return &Error{Code: ErrMount, Detail: err.Error()}
	}
	defer null.Close() // Read only.
	conn, err := t.Start(ctx, transport.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 42"}, Dir: t.policy.FS.Workspace, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: null,
	})
	if err != nil {
		return err
	}
	defer conn.Close() // Always nil: it has no stdin of ours.
	timer := time.NewTimer(StartTimeout)
	defer timer.Stop()
	select {
	case <-conn.Done():
	case <-timer.C:
		return &Error{Code: ErrStartTimeout, Detail: "a sandboxed sh did not end in " + StartTimeout.String()}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if exit := conn.Exit(); exit.Code != 42 {
		_, said := conn.Said()
		return explain(string(said), fmt.Errorf("a sandboxed sh exited with %d, not 42: %s", exit.Code, strings.TrimSpace(string(said))))
	}
	return nil
}
