package sessions

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/session"
)

func TestWhatIsLeftOutOfAScriptIsSaid(t *testing.T) {
	var out bytes.Buffer
	w := newWatched(&out, false, true)
	require.NoError(t, w.print("id", session.Event{Kind: session.BeginEvent, Session: "build", Dir: "/", Script: "first\nsec", Cut: 7}))
	require.NoError(t, w.print("id", session.Event{Kind: session.BeginEvent, Session: "build", Dir: "/", Script: "whole\n"}))
	assert.Equal(t, "/ $ first\n  > sec\n-- 7 bytes more of the script are not shown\n/ $ whole\n", out.String())
}
