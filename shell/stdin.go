package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/oneshot"
)

// doStdin runs a request that brings its stdin: in a fresh bash, which can read
// it without taking bash's own commands for input.
func (s *PersistentShell) doStdin(ctx context.Context, req command.Request) (command.Result, error) {
	env, err := s.bash.environ(ctx)
	if ctx.Err() != nil {
		return command.Result{ExitCode: command.CodeUnknown}, limits.NotBegun(ctx)
	}
	if err != nil {
		return command.Result{ExitCode: command.CodeUnknown}, err
	}
	if req.Dir == "" {
		req.Dir = s.bash.dir()
	} else if !filepath.IsAbs(req.Dir) {
		req.Dir = filepath.Join(s.bash.dir(), req.Dir)
	}
	req.Timeout = limits.Pick(req.Timeout, s.opts.Timeout)
	req.IdleTimeout = limits.Pick(req.IdleTimeout, s.opts.IdleTimeout)
	if s.runner == nil {
		s.runner = oneshot.NewInSession(s.entry, &oneshot.Options{
			Bash: s.opts.Bash, Env: []string{}, RuntimeDir: s.opts.RuntimeDir, Transport: s.opts.Transport,
			OutputLimit: s.opts.OutputLimit, Ladder: s.opts.Ladder,
		})
	}
	return s.runner.DoWithEnv(ctx, env, req)
}

// environ asks bash for what it exports, byte for byte. "env -0" is the one
// way that needs no quoting; a fresh bash costs ten times as much anyway.
func (b *bash) environ(ctx context.Context) ([]string, error) {
	const longest = 16 << 20 // Linux allows no environment that large.
	res, err := b.runInternal(ctx, printEnviron(b.exchange.Names), longest)
	if err != nil {
		return nil, fmt.Errorf("shell: reading the shell's environment: %w", err)
	}
	if res.ExitCode != 0 {
		return nil, fmt.Errorf("shell: reading the shell's environment with env -0, of /usr/bin or /bin: %w", res.Err())
	}
	if res.Stdout.Total == 0 {
		return nil, errNoEnviron // LIMPET_SESSION, at least, is always there.
	}
	var env []string
	for entry := range bytes.SplitSeq(res.Stdout.Bytes(), []byte{0}) {
		if name, _, ok := strings.Cut(string(entry), "="); ok && name != "_" {
			env = append(env, string(entry))
		}
	}
	return env, nil
}

// printEnviron takes env where all systems have it, but for containers of little more than a busybox: what PATH has may
// be something else. "[[" is no builtin, and has no name but its own.
func printEnviron(n script.Names) string {
	return fmt.Sprintf("([[ -x /usr/bin/env ]] && %[1]sexec /usr/bin/env -0; %[1]sexec /bin/env -0)", n)
}

// runInternal runs a script of limpet's own that leaves the shell as it was.
func (b *bash) runInternal(ctx context.Context, script string, limit int64) (command.Result, error) {
	opts, status := b.opts, b.status
	own := *opts
	own.OutputLimit = limit
	b.opts = &own
	res, err := b.run(ctx, command.Request{Script: script, Timeout: -1, IdleTimeout: -1}, nil)
	b.opts, b.status = opts, status
	return res, err
}

var errNoEnviron = errors.New("shell: reading the shell's environment: env -0 printed nothing; is there a function named builtin?")
