package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

func TestCodesOfConnections(t *testing.T) {
	lost := &host.Error{Op: "ask", Target: "ssh://build", Err: fmt.Errorf("%w: gone", host.ErrLost)}
	for _, row := range []struct {
		err  error
		want int
	}{
		{&host.Error{Op: "reach", Err: host.ErrUnreached}, codeFailed},
		{lost, codeFailed},
		{&jobs.Error{Op: "list", Err: lost}, codeFailed},
		{&lostError{&terminal.Error{Op: "attach", Err: errors.Join(lost, remote.ErrUnreachable)}}, codeFailed},
		{fmt.Errorf("%w: %w", wire.ErrMayHaveRun, lost), codeUnknown},
		{errors.Join(&signalError{syscall.SIGINT}, lost), codeSignal + int(syscall.SIGINT)},
		{&jobs.Error{Op: "list", Err: wire.ErrUnreachable}, codeCannot},
		{&terminal.Error{Op: "wait", Err: remote.ErrUnreachable}, codeCannot},
	} {
		assert.Equal(t, row.want, codeOf(row.err), "%v", row.err)
	}
}
