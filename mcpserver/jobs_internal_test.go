package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

func TestHowAJobEndedInAnAnswer(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, row := range []struct {
		job  jobs.Job
		want jobOut
		text string
	}{
		{
			jobs.Job{ID: "job-a", Command: "a\nb", Dir: "/d", Session: "s", State: jobs.Running, PID: 7, Elapsed: 1500 * time.Millisecond, Quiet: time.Second, Output: jobs.Output{End: 12}},
			jobOut{Job: "job-a", Command: "a\nb", Dir: "/d", Session: "s", State: "running", PID: 7, ElapsedSeconds: 1.5, QuietSeconds: 1, OutputBytes: 12},
			"job-a: running, pid 7, for 1.5 s, quiet for 1 s, 12 bytes of output, session s, in /d: a …",
		},
		{
			jobs.Job{ID: "job-a", Command: "a", State: jobs.Exited, Dir: "/", Elapsed: 3 * time.Hour, Exit: &jobs.Exit{Code: 2, Stopped: jobs.ByTimeout}},
			jobOut{Job: "job-a", Command: "a", State: "exited", Dir: "/", ElapsedSeconds: 10800, ExitCode: code(2), StoppedBy: "timeout"},
			"job-a: exited, exit code 2, stopped at its timeout, after 10800 s, 0 bytes of output, in /: a",
		},
		{
			jobs.Job{ID: "job-a", Command: "a", State: jobs.Exited, Dir: "/", Leftover: true, Warnings: []string{"careful"}, Output: jobs.Output{Lost: 3}, Exit: &jobs.Exit{Code: -1, Signal: syscall.SIGSEGV}},
			jobOut{Job: "job-a", Command: "a", State: "exited", Dir: "/", Leftover: true, Signal: "signal 11 (segmentation fault)", Warnings: []string{"careful", "the disk had no room for 3 bytes of its output"}},
			"job-a: exited, signal 11 (segmentation fault), after 0 s, 0 bytes of output, processes that it has started run on, careful, the disk had no room for 3 bytes of its output, in /: a",
		},
		{
			jobs.Job{ID: "job-a", Command: "a", State: jobs.Lost, Dir: "/", Elapsed: 1614 * time.Millisecond, Exit: &jobs.Exit{Code: -1, Why: "nobody saw how it ended", Stopped: jobs.ByRequest}},
			jobOut{Job: "job-a", Command: "a", State: "lost", Dir: "/", ElapsedSeconds: 1.614, Why: "nobody saw how it ended", StoppedBy: "stop"},
			"job-a: lost (nobody saw how it ended), stopped on request, after 1.614 s, 0 bytes of output, in /: a",
		},
		{
			jobs.Job{ID: "job-a", Command: "a", State: jobs.Lost, Dir: "/", Exit: &jobs.Exit{Code: -1, Why: "nobody saw how it ended"}},
			jobOut{Job: "job-a", Command: "a", State: "lost", Dir: "/", Why: "nobody saw how it ended"},
			"job-a: lost (nobody saw how it ended), 0 bytes of output, in /: a",
		},
	} {
		got := jobOf(row.job)
		assert.Equal(t, &row.want, got)
		assert.Equal(t, row.text, got.String())
	}
	long := jobOf(jobs.Job{Command: "x" + strings.Repeat("é", longestCommand)})
	assert.Equal(t, "x"+strings.Repeat("é", (longestCommand-1)/2)+"…", long.Command, "no character is cut")
}

func TestAListOfJobsIsBounded(t *testing.T) {
	var all []jobs.Job
	for i := range 2*mostJobs + 6 {
		job := jobs.Job{ID: fmt.Sprint(i), State: jobs.Running}
		if i%2 == 1 {
			job.State = jobs.Exited
		}
		all = append(all, job)
	}
	list, omitted := wanted(all, "")
	assert.Equal(t, mostJobs+6, omitted)
	assert.Equal(t, all[mostJobs+6:], list, "the last ones are kept")
	list, omitted = wanted(all, "finished")
	assert.Equal(t, 3, omitted)
	assert.Len(t, list, mostJobs)
	assert.Equal(t, "7", list[0].ID)
	assert.Contains(t, jobListOut{Jobs: []*jobOut{jobOf(list[0])}, Omitted: omitted}.text(), "[3 older jobs are left out: session and state narrow the list]\n7: exited")
	list, omitted = wanted(all[:4], "running")
	assert.Zero(t, omitted)
	assert.Equal(t, []jobs.Job{all[0], all[2]}, list)
}

// jobCall is a call to a server whose session has a job, and its id.
func jobCall(t *testing.T, opts session.Options, command string) (*call, string) {
	t.Helper()
	if opts.Shell == nil {
		opts.Shell = &shell.Options{}
	}
	opts.Shell.Dir, opts.Shell.RuntimeDir = testenv.TempDir(t), testenv.TempDir(t)
	sessions, err := session.New(&opts)
	require.NoError(t, err)
	server, err := New(sessions, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, sessions.Close())
	})
	sess, err := sessions.Open(testenv.Context(t), "default", nil)
	require.NoError(t, err)
	job, err := sess.StartJob(testenv.Context(t), jobs.Spec{Command: command, Notify: true})
	require.NoError(t, err)
	return &call{server: server, request: &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}}, job.ID
}

func TestACancelledJobWaitReturnsWhatThereIs(t *testing.T) {
	c, id := jobCall(t, session.Options{}, "echo so far; sleep 1000")
	_, err := waitForJob(testenv.Context(t), c, jobWaitIn{Jobs: []string{id}, Pattern: "so far", TimeoutSeconds: 60})
	require.NoError(t, err)
	sess, err := c.server.sessions.Get("default")
	require.NoError(t, err)
	sess.Notify("something has happened")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out, err := waitForJob(ctx, c, jobWaitIn{Jobs: []string{id}, TimeoutSeconds: 60})
	require.NoError(t, err)
	assert.Equal(t, "cancelled", out.Reason)
	assert.Equal(t, "so far\n", out.Output)
	assert.Equal(t, "running", out.Job.State)
	assert.Contains(t, out.text(), "[cancelled after")
	assert.Empty(t, out.Notices, "nobody may read them")
	assert.Equal(t, []string{"something has happened"}, sess.Notices())
}

func TestAnInterruptEndsAJobWaitAndNotTheJob(t *testing.T) {
	source := interrupt.New()
	c, id := jobCall(t, session.Options{Shell: &shell.Options{Interrupts: source}}, "sleep 1000")
	source.Stop(nil)
	out, err := waitForJob(testenv.Context(t), c, jobWaitIn{Jobs: []string{id}, TimeoutSeconds: testenv.Patience.Seconds()})
	require.NoError(t, err)
	assert.Equal(t, "interrupted", out.Reason)
	assert.Equal(t, "running", out.Job.State)
}

// endedCall is a call, and a job that has ended with exit code 3.
func endedCall(t *testing.T) (c *call, id string) {
	t.Helper()
	c, id = jobCall(t, session.Options{}, "exit 3")
	r, err := c.server.sessions.Jobs()
	require.NoError(t, err)
	testenv.Await(t, "the end of the job", func() bool {
		job, err := r.Get(id)
		return err == nil && job.State.Finished()
	})
	return c, id
}

func TestACancelledAnswerTakesNoNotices(t *testing.T) {
	c, id := endedCall(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := listJobs(ctx, c, jobListIn{Session: "default"})
	require.NoError(t, err)
	sess, err := c.server.sessions.Get("default")
	require.NoError(t, err)
	var notices []string
	testenv.Await(t, "the end to be told", func() bool {
		notices = sess.Notices()
		return len(notices) > 0
	})
	assert.Contains(t, notices[0], id)
}

// Reading a log, or killing, already marks an end as told. If the call is cancelled before it has an answer, the next answer tells the end.
func TestACallThatIsCancelledEarlyLeavesTheEndToBeTold(t *testing.T) {
	c, id := endedCall(t)
	sess, err := c.server.sessions.Get("default")
	require.NoError(t, err)
	one, err := sess.StartTerminal(testenv.Context(t), terminal.Spec{Argv: []string{"sleep", "1000"}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = logOfJob(ctx, c, jobLogIn{Job: id})
	require.NoError(t, err)
	killed, err := killTerminal(ctx, c, terminalIn{Terminal: one.ID()})
	require.NoError(t, err)
	require.True(t, killed.Killed)
	assert.Empty(t, sess.Notices())
	c.complete(ctx)
	told := sess.Notices()
	require.Len(t, told, 2)
	assert.Contains(t, told, "job "+id+" (exit 3) has ended: exit 3")
	assert.Contains(t, told, "a call was cancelled that has ended terminal "+one.ID()+" (sleep 1000)")
}
