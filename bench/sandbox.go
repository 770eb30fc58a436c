package main

import (
	"context"
	"os"
	"time"

	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

const unconfinedName = "limpet without one"

// sandboxed measures what a sandbox adds to the start of a shell, and to a
// command in it.
func (b *bench) sandboxed() error {
	if _, err := sandbox.Probe(b.ctx); err != nil {
		b.report.note("left out: what a sandbox costs (%v)", err)
		return nil
	}
	workspace, err := os.MkdirTemp("", "limpet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(workspace) // Nothing is written to it.
	policy := sandbox.WorkspaceWrite(workspace)
	if err := b.sandboxedBy(policy, "in a sandbox"); err != nil || os.Geteuid() != 0 {
		return err
	}
	// Root has more to be kept from, and should be somebody else inside.
	const nobody = 65534
	policy.RunAs = &sandbox.Credential{UID: nobody, GID: nobody}
	const passable = 0o755
	for _, dir := range []string{workspace, b.files} {
		if err := os.Chmod(dir, passable); err != nil {
			return err
		}
	}
	return b.sandboxedBy(policy, "in a sandbox, as another user")
}

func (b *bench) sandboxedBy(policy sandbox.Policy, how string) error {
	workspace := policy.FS.Workspace
	where, err := sandbox.New(policy)
	if err != nil {
		return err
	}
	starts, err := b.contest("start "+how, "", b.usual(80), []entrant{
		{limpetName, func(ctx context.Context) (time.Duration, error) {
			return b.startIn(ctx, &limpetSide{where: where}, workspace)
		}},
		{unconfinedName, func(ctx context.Context) (time.Duration, error) {
			return b.startIn(ctx, &limpetSide{}, workspace)
		}},
	})
	if err != nil {
		return err
	}
	b.report.compare(starts, atMostMore(unconfinedName, 6*time.Millisecond))
	for _, script := range []string{"true", "/bin/true"} {
		all, err := b.contestIn(workspace, "`"+script+"` "+how, script, b.usual(80), &limpetSide{where: where}, &limpetSide{as: unconfinedName})
		if err != nil {
			return err
		}
		b.report.compare(all, atMostMore(unconfinedName, 100*time.Microsecond))
	}
	return nil
}

// startIn starts a shell beside another one, which has made what a program has
// once.
func (b *bench) startIn(ctx context.Context, s *limpetSide, dir string) (time.Duration, error) {
	first, err := shell.Start(ctx, b.shellOptions())
	if err != nil {
		return 0, err
	}
	defer first.Close()               // Always nil.
	time.Sleep(10 * time.Millisecond) // The guard starts beside the shell.
	began := time.Now()
	if err := s.open(b, dir); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, s.close()
}
