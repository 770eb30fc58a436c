package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/transport/transporttest"
)

// commandsKeepThePromises checks what a shell promises its callers in sessions of a machine, over one connection.
func commandsKeepThePromises(t *testing.T, h *host.Host, traits ...transporttest.Trait) {
	var made atomic.Int64
	transporttest.RunSessions(t, func(t *testing.T) transporttest.Session {
		s, err := h.Session(testenv.Context(t), fmt.Sprintf("p%d", made.Add(1)), &keeper.Spec{})
		require.NoError(t, err)
		return s
	}, traits...)
}

func TestCommandsOverThereKeepThePromises(t *testing.T) {
	testenv.Slow(t)
	commandsKeepThePromises(t, dial(t, machineOf(t, "dash").target, nil))
}

func TestCommandsOverSSHKeepThePromises(t *testing.T) {
	testenv.OnlyAll(t)
	s := startSSHD(t)
	state := testenv.TempDir(t)
	endSessions(t, filepath.Join(state, "limpet", "keep"))
	commandsKeepThePromises(t, dial(t, "exec:ssh -T -p "+s.port+" 127.0.0.1 XDG_STATE_HOME="+state+" exec sh", nil))
}

func TestCommandsInAContainerKeepThePromises(t *testing.T) {
	testenv.OnlyAll(t)
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			commandsKeepThePromises(t, dial(t, engine+"://"+running(t, engineOf(t, engine), os.TempDir()), nil))
		})
	}
}
