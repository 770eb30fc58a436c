package watch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// The queue of an inotify instance is bounded (inotify(7), max_queued_events), and
// what does not fit in is lost: also the events of other sessions than the one that
// filled it. While the watcher is kept from reading, a command floods its directory.
// What happens in another one is then seen by the overflow alone.
func TestAnEventThatIsLostInAFloodIsMadeUpFor(t *testing.T) {
	testenv.Slow(t)
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	require.NoError(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	most += 1 << 12 // What is read of it, and stuck on its way, makes room.

	var w Watcher
	flooded, other := w.Watch(t.TempDir()), w.Watch(t.TempDir())
	defer flooded.Close()
	defer other.Close()
	require.NoError(t, flooded.Err)
	require.NoError(t, other.Err)

	w.mu.Lock() // Nobody reads on.
	flood := exec.Command("bash", "-c", `for ((i = 0; i < $1; i += 2)); do echo >a; echo >b; done`, "flood", strconv.Itoa(most))
	flood.Dir = flooded.dir
	said, err := flood.CombinedOutput()
	record := os.WriteFile(filepath.Join(other.dir, "record"), []byte("x"), 0o600)
	w.mu.Unlock()
	require.NoError(t, err, "%s", said)
	require.NoError(t, record)
	select {
	case <-other.C:
	case <-time.After(testenv.Patience):
		require.FailNow(t, "the end of the other session's command is not noticed")
	}
}
