package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// goneTerm is a terminal whose host ends when its screen was asked for.
type goneTerm struct {
	asked
	screen string
	end    int64
}

func (g goneTerm) Screen() (terminal.Snapshot, error) {
	e := screen.New(terminal.DefaultSize, nil)
	defer e.Close()
	_, err := io.WriteString(e, g.screen)
	return terminal.Snapshot{Screen: e.Screen(), Offset: g.end}, err
}

func (goneTerm) follow(int64) (viewer, error) { return nil, remote.ErrGone }

func TestOutputBehindThePaintedScreenIsShownFromTheRecord(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close() // Nothing is in it.
	for painted, want := range map[string]bool{"": true, "a": true, "a24 80\r\n": false} {
		past := goneTerm{screen: "a24 80\r\n", end: 8}
		a := &attachment{flags: &termAttachFlags{readOnly: true}, out: null, t: &reached{
			asked: goneTerm{screen: painted, end: int64(len(painted))}, recorded: func() (asked, error) { return past, nil },
		}}
		a.shown.Store(-1)
		require.ErrorIs(t, a.show(context.Background()), remote.ErrGone)
		unseen := a.unseen(terminal.Info{Bytes: past.end})
		if want {
			assert.Contains(t, unseen, "24 80", "%q was painted", painted)
		} else {
			assert.Empty(t, unseen, "%q was painted", painted)
		}
	}
}
