package jobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// Whoever may write to the directory may put there what he likes. Nobody waits for it.
func TestWhatIsNoFileHangsNobody(t *testing.T) {
	testenv.Slow(t)
	for _, file := range []string{"exit.json", "owner.json", "spec.json", "process.json", "beat", "control", "stdin", "events.jsonl", "log/0000000000000000003-1"} {
		t.Run(file, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "jobs")
			r, err := jobs.Open(dir, nil)
			require.NoError(t, err)
			job, _ := run(t, r, jobs.Spec{Command: "echo hi", Notify: true})
			require.NoError(t, r.Close())
			path := filepath.Join(dir, job.ID, file)
			_ = os.Remove(path) // It may not be there.
			require.NoError(t, syscall.Mkfifo(path, 0o600))
			r, err = jobs.Open(dir, nil)
			require.NoError(t, err)
			_, _ = r.Poll(job.ID, nil)              // It may be an error, or not.
			_, _ = r.Log(job.ID, jobs.LogOptions{}) // As above.
			_, _ = r.History(job.ID)                // As above.
			_, err = r.List(jobs.Filter{})          // Others are listed in any case.
			assert.NoError(t, err)
			_ = r.Forget(job.ID) // As above.
			require.NoError(t, r.Close())
		})
	}
}

func TestPathsAndEnvironmentsNeedNotBeUTF8(t *testing.T) {
	base := filepath.Join(t.TempDir(), "l\xe4tin 'q' \"d\"\n$x")
	require.NoError(t, os.MkdirAll(base, 0o700))
	r := openIn(t, filepath.Join(base, "jobs"), nil)
	_, out := run(t, r, jobs.Spec{Command: `printf %s "$V" | od -An -tx1; pwd`, Env: []string{"V=\xe4\xff"}, Dir: base})
	assert.Equal(t, " e4 ff\n"+base+"\n", out)
}

// A job stops its supervisor, which has the same user.
func TestAJobThatStopsItsSupervisorIsStoppedAllTheSame(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "read x; kill -STOP $PPID; exit 3", Stdin: true})
	require.NoError(t, r.Submit(job.ID, ""))
	testenv.Await(t, "its end", func() bool { return !testenv.Alive(job.PID) })
	s, err := r.Stop(testenv.Context(t), job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Exited, s.Job.State)
	assert.Equal(t, 3, s.Job.Exit.Code)
}

func TestATerminalThatIsOpenedAgainGoesOn(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, nil)
	job, out := run(t, r, jobs.Spec{Command: "echo first; exec </dev/null >/dev/null 2>&1; sleep 0.1; seq 1 20000 >/dev/tty; exit 3", PTY: true})
	assert.Equal(t, 3, job.Exit.Code)
	assert.True(t, strings.HasSuffix(out, "\r\n20000\r\n"), "%q", out[max(len(out)-20, 0):])
}

// What the program ignores, as under nohup, its jobs do not.
func TestAJobIgnoresNothingThatItsProgramDoes(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.Command("bash", "-c", `trap '' HUP INT TERM TSTP TTIN TTOU CONT PIPE; exec "$@"`, "bash", self, dir)}
	p.begin(t, "hold")
	id := p.start(t, jobs.Spec{Command: "grep SigIgn /proc/self/status"})
	reader := openIn(t, dir, &jobs.Options{ReadOnly: true})
	end(t, reader, id)
	assert.Equal(t, "SigIgn:\t0000000000000000\n", output(t, reader, id))
}

func TestSmallPiecesGetOn(t *testing.T) {
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: "printf '€€ab'"})
	got := ""
	for range 5 {
		p, err := r.Poll(job.ID, &jobs.PollOptions{Bytes: 2})
		require.NoError(t, err)
		got += p.New
	}
	assert.Equal(t, "€€ab", got)
}
