package host_test

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// While the machine is dialled again, which may take minutes, the input of a command stays open there: it has all of it in the end.
func TestALongOutageCostsNoInput(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	const outage = 40 * time.Second // More than the 30 s for which a client is waited for that does not say how long it may be away.
	m := machineOf(t, "sh")
	target, to := switched(t)
	works := "exec " + strings.TrimPrefix(m.target, "exec:")
	to(works)
	h := dial(t, target, &host.Options{Times: short})
	ctx, cancel := context.WithTimeout(t.Context(), outage+4*testenv.Patience)
	defer cancel()
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	stdin, more := io.Pipe()
	type came struct {
		res command.Result
		err error
	}
	over := make(chan came, 1)
	go func() {
		res, err := s.Do(ctx, command.Request{Script: "head -c 3; echo >" + m.home + "/begun; cat; exit 3", Stdin: stdin})
		over <- came{res, err}
	}()
	_, err = io.WriteString(more, "abc")
	require.NoError(t, err)
	testenv.AwaitFile(t, m.home+"/begun")
	to("exit 1")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	time.Sleep(outage) // That is what is tried.
	to(works)
	_, err = io.WriteString(more, "defg")
	require.NoError(t, err)
	require.NoError(t, more.Close())
	got := <-over
	require.NoError(t, got.err)
	assert.Equal(t, 3, got.res.ExitCode)
	assert.Equal(t, "abcdefg", got.res.Stdout.String())
}
