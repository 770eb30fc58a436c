package sandbox_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// Without a /proc a shell is a shell all the same.
func TestNestedWeakHasNoProc(t *testing.T) {
	workspace, policy := usual(t)
	policy.Proc.NestedWeak = true
	sh := start(t, workspace, policy)
	assert.Equal(t, "none", says(t, sh, "x=1; ls -A /proc; : 2>/dev/null >/proc/x || echo none"))
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 1000 & sleep 1000", Timeout: 300 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrTimeout)
	for x, end := range []string{"exit 3", ending} {
		res, err := sh.Run(testenv.Context(t), fmt.Sprintf("x=%d; %s", x, end))
		require.NoError(t, err)
		assert.Equal(t, 3, res.ExitCode, end)
		assert.Equal(t, end == ending, res.Restart != nil, end)
		assert.Equal(t, strconv.Itoa(x), says(t, sh, "echo $x"), end)
	}

	p := sandbox.AllowDomains(workspace, "example.com")
	p.Proc.NestedWeak = true
	_, err = sandbox.New(p)
	assert.ErrorContains(t, err, "the proxy of DomainsNet needs a /proc")
}
