package jobs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/transport"
)

func TestAJobRunsWhereAndAsItIsTold(t *testing.T) {
	base := testenv.TempDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(base, "sub"), 0o700))
	r := open(t, &jobs.Options{Dir: base, Env: []string{"PATH=" + os.Getenv("PATH"), "A=1", "B=1", "LIMPET_SESSION=outer"}})
	for _, row := range []struct {
		spec jobs.Spec
		want string
	}{
		{jobs.Spec{Command: `echo $PWD; pwd -P`}, base + "\n" + base + "\n"},
		{jobs.Spec{Command: `pwd`, Dir: "sub"}, base + "/sub\n"},
		{jobs.Spec{Command: `pwd`, Dir: "/"}, "/\n"},
		{jobs.Spec{Command: `echo $A $B $C`, Env: []string{"B=2", "C=3"}}, "1 2 3\n"},
		{jobs.Spec{Command: `echo "[${LIMPET_SESSION-none}]"`}, "[none]\n"},
		{jobs.Spec{Command: `read x; echo "[$x] $?"`}, "[] 1\n"},
		{jobs.Spec{Command: `test -t 0 || test -t 1 || echo none`}, "none\n"},
		{jobs.Spec{Command: `echo out; echo err >&2; echo out`}, "out\nerr\nout\n"},
		{jobs.Spec{Command: `echo a >/dev/stdout; echo b >/dev/stderr; echo c`}, "a\nb\nc\n"},
		{jobs.Spec{Command: `echo "unterminated`}, "bash: -c: line 1: unexpected EOF while looking for matching `\"'\n"},
		{jobs.Spec{Command: `printf 'no newline'`}, "no newline"},
		{jobs.Spec{Command: `cat /proc/self/stat >/dev/null; ls /proc/self/fd | wc -w`}, "4\n"}, // ls has its directory open.
	} {
		_, out := run(t, r, row.spec)
		assert.Equal(t, row.want, out, row.spec.Command)
	}
}

func TestTheExitOfAJobIsTrue(t *testing.T) {
	r := open(t, nil)
	for _, row := range []struct {
		command string
		code    int
		signal  syscall.Signal
	}{
		{"true", 0, 0},
		{"exit 7", 7, 0},
		{"exit 255", 255, 0},
		{"no-such-program", 127, 0},
		{"set -e; false; echo not", 1, 0},
		{"kill -9 $$", -1, syscall.SIGKILL},
		{"kill -TERM $$", -1, syscall.SIGTERM},
		{"exec sleep 0", 0, 0},
		{"(kill -9 $BASHPID); exit $?", 137, 0},
	} {
		job, _ := run(t, r, jobs.Spec{Command: row.command})
		assert.Equal(t, jobs.Exited, job.State, row.command)
		assert.Equal(t, row.code, job.Exit.Code, row.command)
		assert.Equal(t, row.signal, job.Exit.Signal, row.command)
		assert.Empty(t, job.Exit.Stopped, row.command)
		assert.False(t, job.Leftover, row.command)
	}
}

func TestACommandIsAsLongAsItLikes(t *testing.T) {
	script := "x=" + strings.Repeat("a", 1<<20) + "\necho ${#x}"
	_, out := run(t, open(t, nil), jobs.Spec{Command: script})
	assert.Equal(t, "1048576\n", out)
}

func TestWhatCannotBeStartedIsAClearErrorAndLeavesNothing(t *testing.T) {
	r := open(t, nil)
	ctx := testenv.Context(t)
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, row := range []struct {
		ctx  context.Context
		spec jobs.Spec
		want string
		is   error
	}{
		{ctx, jobs.Spec{}, "script is empty", command.ErrEmptyScript},
		{ctx, jobs.Spec{Command: "a\x00b"}, "NUL", nil},
		{ctx, jobs.Spec{Command: "true", Dir: "/no/where"}, `"/no/where"`, os.ErrNotExist},
		{ctx, jobs.Spec{Command: "true", Dir: "/dev/null"}, "not a directory", nil},
		{ctx, jobs.Spec{Command: "true", Env: []string{"novalue"}}, "NAME=value", nil},
		{ctx, jobs.Spec{Command: "true", Watch: []string{"("}}, "missing closing )", nil},
		{ctx, jobs.Spec{Command: "true", Lifetime: "forever"}, `there are "program" and "detached"`, nil},
		{ctx, jobs.Spec{Command: "true", PTY: true, Size: jobs.Size{Rows: 10}}, "10 rows and 0 columns: wants 1 to 32767", nil},
		{ctx, jobs.Spec{Command: "true", Timeout: -1}, "negative", nil},
		{over, jobs.Spec{Command: "true"}, "canceled", context.Canceled},
	} {
		_, err := r.Start(row.ctx, row.spec)
		require.ErrorContains(t, err, row.want)
		assert.ErrorContains(t, err, "jobs: start: ")
		if row.is != nil {
			assert.ErrorIs(t, err, row.is)
		}
	}
	var dirErr *transport.DirError
	_, err := r.Start(ctx, jobs.Spec{Command: "true", Dir: "/no/where"})
	assert.ErrorAs(t, err, &dirErr)
	list, err := r.List(jobs.Filter{})
	require.NoError(t, err)
	assert.Empty(t, list)
	entries, err := os.ReadDir(r.Dir())
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the lock alone")
}

func TestABashThatIsNoneIsAClearError(t *testing.T) {
	for _, bash := range []string{"/no/bash", "/bin/cat"} {
		r := open(t, &jobs.Options{Bash: bash})
		_, err := r.Start(testenv.Context(t), jobs.Spec{Command: "true"})
		var startErr *transport.StartError
		require.ErrorAs(t, err, &startErr)
		assert.ErrorContains(t, err, bash)
	}
}

func TestNoMoreJobsRunThanMay(t *testing.T) {
	r := open(t, &jobs.Options{MaxRunning: 2})
	first := start(t, r, jobs.Spec{Command: "sleep 1000"})
	start(t, r, jobs.Spec{Command: "sleep 1000"})
	_, err := r.Start(testenv.Context(t), jobs.Spec{Command: "true"})
	assert.ErrorIs(t, err, jobs.ErrTooMany)
	assert.ErrorContains(t, err, "2; stop some")
	_, err = r.Stop(testenv.Context(t), first.ID)
	require.NoError(t, err)
	start(t, r, jobs.Spec{Command: "true"})
}

func TestTheIDOfAJobSaysWhatItIsAndNoSecret(t *testing.T) {
	r := open(t, nil)
	for command, want := range map[string]string{
		"make -j4 test":                          "job-make-",
		"cd sub; TOKEN=secret make":              "job-",
		"cd /tmp && /usr/bin/env true":           "job-env-",
		"sudo -n true":                           "job-n-",
		"export A=1; sleep 0":                    "job-sleep-",
		"'quoted program'":                       "job-",
		"./Some_Long-Program.Name.That.Goes.On ": "job-some-long-program-na-",
	} {
		job := start(t, r, jobs.Spec{Command: command})
		assert.Regexp(t, "^"+want+"[a-z0-9]{8}$", job.ID, command)
		end(t, r, job.ID)
	}
}

// Secrets go to the job, and nowhere else.
func TestTheEnvironmentIsWrittenNowhere(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, nil)
	const secret = "hunter2-not-to-be-found"
	job := start(t, r, jobs.Spec{Command: `echo "${#PASSPHRASE}"; read x`, Env: []string{"PASSPHRASE=" + secret}, Stdin: true, Lifetime: jobs.Detached})
	until(t, r, job.ID, "^23$")
	require.NoError(t, filepath.WalkDir(r.Dir(), func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "%s is for its owner alone", path)
		if entry.Type().IsRegular() {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotContains(t, string(b), secret, path)
		}
		return nil
	}))
	supervisors, err := exec.Command("pgrep", "-f", "limpet-supervisor "+filepath.Join(r.Dir(), job.ID)).Output()
	require.NoError(t, err)
	pid := strings.TrimSpace(string(supervisors))
	for _, file := range []string{"environ", "cmdline"} {
		b, err := os.ReadFile(filepath.Join("/proc", pid, file))
		require.NoError(t, err)
		assert.NotContains(t, string(b), secret)
	}
	require.NoError(t, r.CloseStdin(job.ID))
	end(t, r, job.ID)
}

func TestATimeoutEndsAJobAndSaysSo(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	// What is printed before it must come in time on a busy machine too.
	job, out := run(t, r, jobs.Spec{Command: "echo before; sleep 1000; echo after", Timeout: time.Second})
	assert.Equal(t, "before\n", out)
	assert.Equal(t, jobs.ByTimeout, job.Exit.Stopped)
	assert.Contains(t, job.Exit.String(), "timeout")
}
