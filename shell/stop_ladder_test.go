//go:build linux

package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
)

// terms begins with SIGTERM, and gives much time for it.
var terms = command.Ladder{{Signal: syscall.SIGTERM, Grace: time.Minute}, {Signal: syscall.SIGKILL, Grace: time.Second}}

// intFirst begins with SIGINT, as the ladder does that a shell has by itself.
var intFirst = command.Ladder{{Signal: syscall.SIGINT, Grace: 200 * time.Millisecond}, terms[0], terms[1]}

// stoppedBy is stopped with a ladder of the request's own.
func stoppedBy(t *testing.T, sh doer, dir, script string, ladder command.Ladder) interrupt.Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Do(ctx, command.Request{Script: script, Ladder: ladder})
		done <- answer{res, err}
	}()
	awaitFile(t, filepath.Join(dir, "ready"))
	cancel()
	got := await(t, done)
	stop, ok := errors.AsType[*interrupt.Error](got.err)
	require.True(t, ok, "%v", got.err)
	return stop.Outcome
}

// A trap for the step's signal runs, with the programs that it starts. It takes longer
// than a shell that has missed a signal waits for the next one.
func TestATrapForTheLaddersSignalRuns(t *testing.T) {
	testenv.Slow(t)
	const cleanup = `/bin/sleep 0.3 && : >CLEAN`
	for _, row := range []struct {
		script string
		ladder command.Ladder
	}{
		{`bash -c 'trap "` + cleanup + `" TERM; echo >ready; sleep 60'`, terms},
		{`bash -c 'trap "` + cleanup + `" TERM; echo >ready; sleep 60; exit 3'; :`, terms},
		{`bash -c 'trap "` + cleanup + `; exit" TERM; echo >ready; while :; do :; done'; :`, terms},
		{`bash -c 'trap "` + cleanup + `" EXIT; echo >ready; sleep 60; :'; :`, terms},
		{`sh -c 'trap "` + cleanup + `" TERM; echo >ready; sleep 60; :'; :`, terms},
		{`(trap "` + cleanup + `" TERM; echo >ready; sleep 60); :`, terms},
		{`bash -c 'trap "" INT; trap "` + cleanup + `" TERM; echo >ready; sleep 60; :'; :`, intFirst},
	} {
		t.Run(row.script, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			check := func(sh doer, script string) {
				outcome := stoppedBy(t, sh, dir, script, row.ladder)
				assert.Empty(t, outcome.Killed)
				require.NoError(t, sh.Close())
				assert.FileExists(t, filepath.Join(dir, "CLEAN"))
				for _, made := range []string{"ready", "CLEAN"} {
					_ = os.Remove(filepath.Join(dir, made)) // It may not be there.
				}
			}
			check(start(t, &shell.Options{Dir: dir}), row.script)
			check(oneshot.New(&oneshot.Options{Dir: dir, RuntimeDir: t.TempDir()}), row.script)
		})
	}
	t.Run("the script's own bash", func(t *testing.T) {
		for _, row := range []struct {
			script string
			ladder command.Ladder
		}{
			{`trap "` + cleanup + `" TERM; echo >ready; sleep 60; :`, terms},
			{`trap "" INT; trap "` + cleanup + `" TERM; echo >ready; sleep 60; :`, intFirst},
		} {
			dir := t.TempDir()
			r := oneshot.New(&oneshot.Options{Dir: dir, RuntimeDir: t.TempDir()})
			assert.Empty(t, stoppedBy(t, r, dir, row.script, row.ladder).Killed)
			require.NoError(t, r.Close())
			assert.FileExists(t, filepath.Join(dir, "CLEAN"))
		}
	})
}
