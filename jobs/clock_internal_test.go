package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

const day = 24 * time.Hour

// moved moves a time in a record of a job, as if the clock had been set by as much in the other direction since.
func moved(t *testing.T, path, field string, by time.Duration) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(b, &record))
	at, err := time.Parse(time.RFC3339Nano, record[field].(string))
	require.NoError(t, err)
	record[field] = at.Add(by)
	b, err = json.Marshal(record)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

func TestAJobStaysWhenTheClockIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": -day, "back": day} {
		t.Run(name, func(t *testing.T) {
			r, c := opened(t, Options{})
			id := finish(t, r, Spec{Command: "echo x"})
			moved(t, filepath.Join(r.dir, id, "exit.json"), "ended", by)
			moved(t, filepath.Join(r.dir, id, "process.json"), "started", by)
			j, err := r.find("", id)
			require.NoError(t, err)
			r.remember(j, func(m *memo) { m.Seen += int64(by) })
			r.expire()
			require.Equal(t, []string{id}, listed(t, r))
			c.pass(DefaultRetain + time.Minute)
			r.expire()
			assert.Empty(t, listed(t, r), "and no longer")
		})
	}
}

// That the clock was set while it ran.
func TestAJobTakesItsTimeWhateverTheClockSays(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": -day, "back": day} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := Open(dir, nil)
			require.NoError(t, err)
			id := finish(t, r, Spec{Command: "echo x", Lifetime: Detached})
			require.NoError(t, r.Close())
			moved(t, filepath.Join(dir, id, "process.json"), "started", by)
			r, err = Open(dir, &Options{ReadOnly: true})
			require.NoError(t, err)
			defer r.Close()
			list, err := r.List(Filter{})
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Positive(t, list[0].Elapsed)
			assert.Less(t, list[0].Elapsed, time.Minute)
		})
	}
}

// The times of files are as the clock was; a wait for silence asks for none of them twice.
func TestAWaitForSilenceGoesByNoClockThatIsSet(t *testing.T) {
	r, _ := opened(t, Options{})
	ctx := testenv.Context(t)
	job, err := r.Start(ctx, Spec{Command: "echo x; sleep 1000"})
	require.NoError(t, err)
	_, err = r.Wait(ctx, WaitOptions{IDs: []string{job.ID}, Pattern: "x"})
	require.NoError(t, err)
	logs, err := filepath.Glob(filepath.Join(r.dir, job.ID, "log", "*"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	ahead := time.Now().Add(day)
	require.NoError(t, os.Chtimes(logs[0], ahead, ahead))
	w, err := r.Wait(ctx, WaitOptions{IDs: []string{job.ID}, Silence: 100 * time.Millisecond, Timeout: 5 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, WaitSilent, w.Reason)

	ago := time.Now().Add(-day)
	require.NoError(t, os.Chtimes(logs[0], ago, ago))
	list, err := r.List(Filter{})
	require.NoError(t, err)
	assert.Less(t, list[0].Quiet, time.Minute)
}
