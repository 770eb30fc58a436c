package transporttest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// 12. Jobs of earlier commands survive a timeout; `jobs`, `wait` and `kill %1`
// work in later commands.
func earlierJobs(t *testing.T, s suite) {
	x := s.start(t)
	x.want("", "sleep 1000 & first=$!; setsid sleep 1001 & (sleep 1002 &)")
	x.want("", "mkfifo go; { read <go; exit 7; } & second=$!")
	for _, script := range []string{"sleep 50", "while :; do :; done", "sleep 50 | cat", "sleep 51 & wait"} {
		_, stop := x.stopped(shell.ErrTimeout, command.Request{Script: script, Timeout: short})
		assert.True(t, stop.Outcome.ShellSurvived)
		for _, p := range stop.Outcome.Signalled {
			assert.NotContains(t, p.Command, "sleep 100", "signalled a job of an earlier command")
		}
	}
	x.wantOnly(4)
	res := x.run("jobs")
	assert.Equal(t, 3, strings.Count(res.Stdout.String(), "Running"), res.Stdout.String())
	x.want("7\n", "echo >go; wait $second; echo $?")
	x.want("143\n", "kill %1; wait $first; echo $?")
	x.want("", "kill %2; wait")
	testenv.Await(t, "the jobs' end", func() bool { return len(testenv.Marked(x.mark)) == 2 })
	x.want("", "jobs")
}

// 15. `pkill -f WORD` where WORD is in the command itself kills neither the
// shell nor the caller.
func pkill(t *testing.T, s suite) {
	_, err := exec.LookPath("pkill")
	require.NoError(t, err, "install procps, as ./test does")
	x := s.start(t)
	x.setState()
	pid := x.pid()
	word := "word-" + strings.TrimPrefix(x.mark, "LIMPET_SESSION=")
	// By the test's own name of the job: the word is nobody else's.
	x.want("", "bash -c 'exec -a "+word+" sleep 1000' & bash -c 'until [[ $(tr \"\\0\" \" \" </proc/'$!'/cmdline) == "+word+"* ]]; do :; done'")
	x.want("0\n", "pkill -f "+word+"; echo $?")
	testenv.Await(t, "the job's end", func() bool { return len(testenv.Marked(x.mark)) == 1 })
	x.want("1\n", "pkill -f "+word+"; echo $?")
	x.want("1\n", "pkill -9 -f 'echo.*"+word+"'; echo $?; : "+word)
	assert.Equal(t, pid, x.pid())
	x.wantState()
}
