package jobs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func TestAJobReadsWhatIsWritten(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "cat; echo end", Stdin: true})
	for i := range 100 {
		n, err := r.Write(job.ID, fmt.Appendf(nil, "%d ", i))
		require.NoError(t, err)
		assert.Positive(t, n)
	}
	require.NoError(t, r.Submit(job.ID, "last"))
	require.NoError(t, r.CloseStdin(job.ID))
	job = end(t, r, job.ID)
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&want, "%d ", i)
	}
	assert.Equal(t, want.String()+"last\nend\n", output(t, r, job.ID))
}

func TestEndOfFileComesBehindAllThatWasWritten(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	for range 20 {
		job := start(t, r, jobs.Spec{Command: "wc -c", Stdin: true})
		n, err := r.Write(job.ID, make([]byte, 200_000))
		require.NoError(t, err)
		assert.Equal(t, 200_000, n)
		require.NoError(t, r.CloseStdin(job.ID))
		end(t, r, job.ID)
		assert.Equal(t, "200000\n", output(t, r, job.ID))
	}
}

func TestWritingSaysWhyItCannotBe(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	deaf := start(t, r, jobs.Spec{Command: "sleep 1000", Stdin: true})
	n, err := r.Write(deaf.ID, make([]byte, 1<<20))
	assert.ErrorIs(t, err, jobs.ErrNotRead)
	assert.Positive(t, n)
	assert.Less(t, n, 1<<20)

	without := start(t, r, jobs.Spec{Command: "sleep 1000"})
	for _, err := range []error{
		r.Submit(without.ID, "x"), r.CloseStdin(without.ID), r.Resize(without.ID, jobs.Size{Rows: 1, Cols: 1}),
	} {
		assert.ErrorIs(t, err, jobs.ErrNotPossible)
		assert.ErrorContains(t, err, "start it with")
	}

	over, _ := run(t, r, jobs.Spec{Command: "true", Stdin: true})
	assert.ErrorIs(t, r.Submit(over.ID, "x"), jobs.ErrFinished)
	assert.ErrorIs(t, r.CloseStdin(over.ID), jobs.ErrFinished)
	assert.ErrorIs(t, r.Submit("job-nobody", "x"), jobs.ErrNotFound)
	assert.ErrorIs(t, r.Submit("../../etc", "x"), jobs.ErrNotFound)

	closed := start(t, r, jobs.Spec{Command: "cat; echo closed; sleep 1000", Stdin: true})
	require.NoError(t, r.CloseStdin(closed.ID))
	until(t, r, closed.ID, "closed")
	assert.ErrorIs(t, r.Submit(closed.ID, "x"), jobs.ErrNotPossible)
	assert.ErrorContains(t, r.Submit(closed.ID, "x"), "its stdin is closed")
	assert.Error(t, r.CloseStdin(closed.ID))

	// One that has closed its stdin by itself.
	refusing := start(t, r, jobs.Spec{Command: "exec <&-; echo closed; exec sleep 1000", Stdin: true})
	until(t, r, refusing.ID, "closed")
	testenv.Await(t, "its refusal", func() bool { return r.Submit(refusing.ID, "x") != nil })
	assert.ErrorIs(t, r.Submit(refusing.ID, "x"), jobs.ErrNotPossible)
}

func TestAJobOnATerminal(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{
		Command: `tty >/dev/null && stty size && echo $TERM; trap 'stty size' WINCH; while read -p '> ' x; do echo "got $x"; done; echo bye`,
		PTY:     true, Size: jobs.Size{Rows: 10, Cols: 33},
	})
	until(t, r, job.ID, "^10 33$")
	until(t, r, job.ID, "^xterm-256color$")
	until(t, r, job.ID, "^> $")
	require.NoError(t, r.Submit(job.ID, "hello"))
	until(t, r, job.ID, "^got hello$")
	require.NoError(t, r.Resize(job.ID, jobs.Size{Rows: 20, Cols: 44}))
	require.NoError(t, r.Submit(job.ID, ""))
	until(t, r, job.ID, "^20 44$")
	assert.Error(t, r.Resize(job.ID, jobs.Size{}))
	require.NoError(t, r.CloseStdin(job.ID))
	until(t, r, job.ID, "bye$")
	job = end(t, r, job.ID)
	assert.Zero(t, job.Exit.Code)
	assert.ErrorIs(t, r.Resize(job.ID, jobs.Size{Rows: 1, Cols: 1}), jobs.ErrFinished)
}

// Ctrl-C is typed at the terminal, and interrupts what is in its foreground.
func TestCtrlCReachesTheForegroundProgram(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `bash --norc -i`, PTY: true})
	// What prints is in the foreground by then. Between two commands of a line nobody is: the
	// second one would not be interrupted.
	require.NoError(t, r.Submit(job.ID, "PS1='ready> '; sh -c 'echo started; exec sleep 1000'"))
	until(t, r, job.ID, "^started")
	_, err := r.Write(job.ID, []byte{3})
	require.NoError(t, err)
	until(t, r, job.ID, "^ready> ")
	require.NoError(t, r.Submit(job.ID, "exit 5"))
	assert.Equal(t, 5, end(t, r, job.ID).Exit.Code)
}

// Nor can what nobody has read keep it from its end.
func TestAJobOnATerminalThatReadsNothingEnds(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "echo up; until [[ -e go ]]; do sleep 0.01; done; exit 3", PTY: true, Dir: t.TempDir()})
	until(t, r, job.ID, "up")
	_, err := r.Write(job.ID, []byte(strings.Repeat("line\n", 50_000)))
	assert.ErrorIs(t, err, jobs.ErrNotRead)
	require.NoError(t, r.CloseStdin(job.ID))
	require.NoError(t, os.WriteFile(filepath.Join(job.Dir, "go"), nil, 0o600))
	assert.Equal(t, 3, end(t, r, job.ID).Exit.Code)
}

// All that was written to a terminal before the end is there.
func TestATerminalsLastWordsAreKept(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	for range 30 {
		_, out := run(t, r, jobs.Spec{Command: "seq 1 2000", PTY: true})
		assert.True(t, strings.HasSuffix(out, "\r\n2000\r\n"), "%q", out[max(len(out)-20, 0):])
	}
}
