package wire_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// The terminals of a session are reached below it, by the protocol that they have by themselves.
func TestTerminalsOfASession(t *testing.T) {
	s := serve(t, "socket").client(t).Session("s")
	ctx := testenv.Context(t)
	_, err := s.Run(ctx, "mkdir here; cd here; export E=exported")
	require.NoError(t, err)
	c := s.Terminals()
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	list, err := c.List(ctx)
	require.NoError(t, err)
	assert.Empty(t, list)

	info, err := s.StartTerminal(ctx, terminal.Spec{Line: `echo "${PWD##*/}|$E"; PS1='> ' exec bash --norc --noprofile`, Size: terminal.Size{Cols: 90, Rows: 20}})
	require.NoError(t, err)
	assert.Equal(t, "s", info.Session)
	list, err = c.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, info.ID, list[0].ID)

	term := c.Terminal(info.ID)
	_, err = term.Wait(ctx, terminal.WaitOptions{Text: "here|exported"})
	require.NoError(t, err)
	enter, err := keys.Key("Enter")
	require.NoError(t, err)
	require.NoError(t, term.Send(keys.Text("stty size"), enter))
	_, err = term.Wait(ctx, terminal.WaitOptions{Text: "20 90"})
	require.NoError(t, err)
	require.NoError(t, term.Resize(terminal.Size{Cols: 91, Rows: 21}))
	v, err := term.Attach(0)
	require.NoError(t, err)
	var seen bytes.Buffer
	for {
		chunk, err := v.Next(ctx)
		require.NoError(t, err)
		seen.Write(chunk.Data)
		if bytes.Contains(seen.Bytes(), []byte("20 90")) {
			break
		}
	}
	require.NoError(t, term.Close())
	for err == nil {
		_, err = v.Next(ctx)
	}
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, v.Close())
	now, err := term.Info()
	require.NoError(t, err)
	assert.True(t, now.State.Ended())
	assert.ErrorIs(t, term.Send(keys.Text("x")), terminal.ErrEnded)
	_, err = c.Terminal("term-none").Info()
	assert.ErrorIs(t, err, terminal.ErrNotFound)
	_, err = s.StartTerminal(ctx, terminal.Spec{})
	assert.ErrorIs(t, err, terminal.ErrNothingToRun)
}

// A client that is closed says so, and one whose program is gone says that.
func TestTerminalsOfASessionThatIsGone(t *testing.T) {
	served := serve(t, "socket")
	s := served.client(t).Session("s")
	closed := s.Terminals()
	require.NoError(t, closed.Close())
	_, err := closed.List(testenv.Context(t))
	require.ErrorIs(t, err, terminal.ErrClosed)

	none := served.client(t).Session("none").Terminals()
	defer none.Close() // It cannot fail.
	_, err = none.List(context.Background())
	require.ErrorContains(t, err, "there is none of that name")
}
