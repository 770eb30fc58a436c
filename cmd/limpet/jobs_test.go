package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/jobs"
)

func TestCtrlCLeavesALogAndTheJobRunsOn(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	home := t.TempDir()
	state := home + "/jobs"
	out, err := exec.Command("limpet", "jobs", "start", "--timeout", "1m", "--state", state, "echo hello; exec tail -f /dev/null").Output()
	require.NoError(t, err)
	id := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		out, err := exec.Command("limpet", "jobs", "stop", "--state", state, id).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	})

	tm := onTerminal(t, home, "xterm", "jobs", "log", "--state", state, "--follow", id)
	tm.sees("hello")
	tm.types(ctrlC)
	tm.exits(130)

	tm = onTerminal(t, home, "xterm", "jobs", "list", "--state", state)
	tm.sees("running")
	tm.exits(0)

	// A text that somebody is to type is no text for write.
	tm = onTerminal(t, home, "xterm", "jobs", "write", "--state", state, id)
	tm.sees("no text")
	tm.exits(2)
}

func TestTheTableOfJobsFitsTheTerminal(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	list := []jobs.Job{
		{ID: "job-make-aaaaaaaa", Command: "make \x1b[31m\n\tall " + strings.Repeat("x", 100), State: jobs.Running, Started: started, Elapsed: 90 * time.Second, Quiet: 1500 * time.Millisecond, Task: "a\tb"},
		{ID: "job-bbbbbbbb", Command: "true", State: jobs.Exited, Exit: &jobs.Exit{Code: -1, Signal: 9, Stopped: jobs.ByRequest}, Elapsed: 26 * time.Hour},
		{ID: "job-cccccccc", Command: "true", State: jobs.Lost, Exit: &jobs.Exit{Code: -1, Why: "?"}},
	}
	assert.Equal(t, `ID                 STATE           ELAPSED  QUIET  OUTPUT  TASK  COMMAND
job-make-aaaaaaaa  running         1m30s    1.5s   0       a b   make ?[31m; ...
job-bbbbbbbb       SIGKILL (stop)  26h0m0s  -      0       -     true
job-cccccccc       lost            -        -      0       -     true
`, jobTable(list, 80))
	assert.Equal(t, "lost: ?, 0 bytes of output", describe(list[2]), "it is not known when it ended")
	assert.Contains(t, jobTable(list, 0), "make ?[31m; all xxxxx")
}

func TestAFollowerPrintsWholeLines(t *testing.T) {
	for _, row := range []struct {
		chunks []string
		want   []string
	}{
		{[]string{"a\nb", "c\nd"}, []string{"a\n", "bc\n", "d"}},
		{[]string{"\x1b[3", "1mred\x1b[0m\xc3", "\xa4\n"}, []string{"redä\n"}},
	} {
		var got []string
		to := follower{plain: true, print: func(c chunkJSON) error {
			got = append(got, c.Text)
			return nil
		}}
		at := int64(0)
		for _, text := range row.chunks {
			require.NoError(t, to.take(jobs.Chunk{Offset: at, Data: []byte(text)}))
			at += int64(len(text))
		}
		require.NoError(t, to.flush())
		assert.Equal(t, row.want, got)
	}
}
