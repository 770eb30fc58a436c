//go:build linux

package shell_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/shell"
)

// doer is a shell or a Runner.
type doer interface {
	Do(context.Context, command.Request) (command.Result, error)
	Close() error
}

// stopped runs a script until there is a file "ready", stops it, and returns what
// became of it.
func stopped(t *testing.T, sh doer, dir, script string) (command.Result, interrupt.Outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Do(ctx, command.Request{Script: script})
		done <- answer{res, err}
	}()
	awaitFile(t, filepath.Join(dir, "ready"))
	cancel()
	got := await(t, done)
	require.ErrorIs(t, got.err, context.Canceled, script)
	stop, ok := errors.AsType[*interrupt.Error](got.err)
	require.True(t, ok)
	return got.res, stop.Outcome
}

// workDir is a directory with "stub", a script that deals with SIGINT and exits, and
// "lib", which sets a trap for it.
func workDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stub"), []byte("trap 'exit 0' INT; echo >ready; sleep 50 & wait"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib"), []byte("trap : INT"), 0o600))
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	require.NoError(t, exec.Command("cp", bash, filepath.Join(dir, "bash-5.2")).Run())
	return dir
}

// goesOn are scripts of which some shell, or another, might go on after it was
// stopped: it would make the file X. A file CLEAN is made by a trap that shall run.
var goesOn = []struct {
	script string
	clean  bool
	here   bool // in the session's bash alone; see docs/rough-edges.md
}{
	// Under job control bash goes on after a child that was stopped.
	{script: `set -m; echo >ready; sleep 50; touch X`},
	{script: `set -m; echo >ready; sleep 50 | cat; touch X`},
	{script: `set -m; (echo >ready; sleep 50; touch X); touch X`},
	{script: `set -m; sleep 50 & echo >ready; fg; touch X`},
	{script: `set -m; sleep 50 & echo >ready; wait; touch X`},
	{script: `bash -c 'set -m; echo >ready; sleep 50; touch X'; touch X`},
	{script: `bash -mc 'echo >ready; sleep 50; touch X'; touch X`},
	{script: `set -m; echo >ready; while :; do /bin/true; (($? == 147)) && : >X; done`}, // 147: it was stopped.

	// A shell that stopped itself must not be woken to be stopped.
	{script: `echo >ready; kill -STOP $$; touch X; sleep 5; :`},
	{script: `echo >ready; for ((i = RANDOM % 4000; i > 0; i--)); do :; done; kill -STOP $$; touch X; sleep 5; :`},
	{script: `( (echo >ready; kill -STOP $BASHPID; : >X; sleep 1); : ); :`},

	// Traps that no text shows.
	{here: true, script: `eval "$(<lib)"; echo >ready; sleep 50; : >X`},
	{here: true, script: `x=tr; ${x}ap : INT; echo >ready; sleep 50; : >X`},
	{here: true, script: `"tr"'ap' : INT; echo >ready; sleep 50; : >X`},
	{here: true, script: `tr\ap : INT; echo >ready; sleep 50; : >X`},
	{here: true, script: `mapfile -t -c1 -C 'eval $(<lib) #' a <lib; echo >ready; sleep 50; : >X`},

	{here: true, script: `trap : INT; echo >ready; sleep 50; : >X`},
	{here: true, script: `trap : INT; echo >ready; sleep 50 | cat; : >X`},
	{here: true, script: `trap : INT; echo >ready; for ((i = 0; i < 2000000; i++)); do :; done; : >X`},
	{here: true, clean: true, script: `trap ": >CLEAN" EXIT; trap : INT; echo >ready; sleep 50; : >X`},

	// A shell that ignores SIGINT, above a child that does not.
	{script: `(trap "" INT; echo >ready; env --default-signal=INT sleep 50; touch X); :`},
	{script: `sh -c 'trap "" INT; echo >ready; env --default-signal=INT sleep 50; touch X'; :`},

	// Shells by other names, over a child that deals with SIGINT.
	{script: `bash -c 'bash stub; touch X; sleep 5'; :`},
	{script: `(bash stub; touch X; sleep 5); :`},
	{script: `./bash-5.2 -c 'bash stub; touch X; sleep 5'; :`},
	{script: `sh -c 'bash stub; touch X; sleep 5'; :`},

	// They may clean up.
	{clean: true, script: `bash -c 'trap ": >CLEAN" EXIT; echo >ready; sleep 50; touch X'; :`},
	{clean: true, script: `bash -c 'trap ": >CLEAN" EXIT; bash stub; touch X'; :`},
	{clean: true, script: `bash -c 'trap ": >CLEAN" EXIT INT TERM; bash stub; touch X'; :`},
	{clean: true, script: `(trap ": >CLEAN" EXIT; bash stub; touch X); :`},
}

func TestNoShellGoesOnAfterAStop(t *testing.T) {
	testenv.Slow(t)
	for _, row := range goesOn {
		t.Run(row.script, func(t *testing.T) {
			t.Parallel()
			dir := workDir(t)
			check := func(sh doer) {
				stopped(t, sh, dir, row.script)
				require.NoError(t, sh.Close())
				assert.NoFileExists(t, filepath.Join(dir, "X"))
				if row.clean {
					assert.FileExists(t, filepath.Join(dir, "CLEAN"))
				}
				for _, made := range []string{"ready", "X", "CLEAN"} {
					_ = os.Remove(filepath.Join(dir, made)) // It may not be there.
				}
			}
			for range 3 {
				check(start(t, &shell.Options{Dir: dir}))
			}
			if row.here {
				return
			}
			check(oneshot.New(&oneshot.Options{Dir: dir, RuntimeDir: t.TempDir()}))
		})
	}
}

// Bash takes a program that deals with SIGINT, and exits, for one that is done. Where nothing
// comes behind it, that is no harm.
func TestAStoppedProgramCostsTheSessionNoJobs(t *testing.T) {
	for _, script := range []string{
		`bash stub`, `cd . && bash stub`, `bash stub | cat`, `timeout 60 bash stub`,
		`bash -c 'trap : INT; echo >ready; sleep 50; exit 0'`,
		`bash -c 'trap "exit 3" INT; echo >ready; sleep 50; exit 0'`,
		`sh -c 'trap : INT; echo >ready; sleep 50; :'`,
		`python3 -c 'import subprocess, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); open("ready", "w").close(); subprocess.run(["sleep", "50"], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))'`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := workDir(t)
			sh := start(t, &shell.Options{Dir: dir})
			run(t, sh, "sleep 1000 & job=$!")
			stopped(t, sh, dir, script)
			assert.Equal(t, "it runs\n", run(t, sh, `[[ $(jobs -p) == "$job" ]] && echo it runs`).Stdout.String())
		})
	}
}

// By their mark alone these could not be found. When bash has to be replaced they
// are no longer below it.
func TestProcessesWithoutAnEnvironmentEndWithTheirCommand(t *testing.T) {
	for _, script := range []string{
		`trap : INT; env -i sleep 1003 & echo $! >pid; echo >ready; wait`,
		`trap : INT; (env -i sleep 1003 & echo $! >pid); echo >ready; while :; do :; done`,
		`env -i /bin/bash -c 'trap "exit 0" INT; (sleep 1003 & echo $! >pid); echo >ready; sleep 50 & wait'; touch X`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := start(t, &shell.Options{Dir: dir})
			_, outcome := stopped(t, sh, dir, script)
			assert.Empty(t, outcome.Left)
			pid, err := strconv.Atoi(strings.TrimSpace(testenv.AwaitFile(t, filepath.Join(dir, "pid"))))
			require.NoError(t, err)
			assert.False(t, testenv.Alive(pid))
			assert.NoFileExists(t, filepath.Join(dir, "X"))
		})
	}
}

// The state comes back, though bash runs no exit trap after a SIGINT under job control.
func TestAStopUnderJobControlLosesNoState(t *testing.T) {
	testenv.Slow(t)
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir})
	run(t, sh, "set -m; sleep 900 &")
	run(t, sh, "v=kept")
	stopped(t, sh, dir, "echo >ready; fg %1; touch X")
	assert.Equal(t, "kept", says(t, sh, "echo $v"))
	assert.NoFileExists(t, filepath.Join(dir, "X"))
}

// A second Ctrl-C means something else to some programs than the first.
func TestAProgramBelowOneThatIgnoresSIGINTGetsFew(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{`sh -c 'trap "" INT; bash count; :'`, `(trap "" INT; bash count; :)`} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "count"), []byte(
			"exec env --default-signal=INT perl -e '$SIG{INT} = sub { syswrite STDOUT, \"i\" }; open F, \">ready\"; close F; sleep 1 while 1'"), 0o600))
		sh := start(t, &shell.Options{Dir: dir})
		res, _ := stopped(t, sh, dir, script)
		assert.LessOrEqual(t, len(res.Stdout.String()), 6, script)
	}
}

// A shell that is not the session's own puts a SIGINT off, too, if that meets it at a
// bad moment: between two programs.
func TestALoopInAShellOfItsOwnIsStoppedByItsSIGINT(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{
		`bash -c 'echo >ready; while :; do /bin/true; done'`,
		`bash -c '(echo >ready; while :; do /bin/true; done); :'`,
		`sh -c 'echo >ready; while :; do /bin/true | /bin/true; done'`,
	} {
		dir := t.TempDir()
		sh := start(t, &shell.Options{Dir: dir})
		for range 5 {
			res, outcome := stopped(t, sh, dir, script)
			assert.Empty(t, outcome.Killed)
			assert.Nil(t, res.Restart, script)
			require.NoError(t, os.Remove(filepath.Join(dir, "ready")))
		}
	}
}

// The first thread of a process may end before the others. Its state is that of a
// zombie then.
func TestAProcessWhoseFirstThreadHasEndedIsEnded(t *testing.T) {
	dir := t.TempDir()
	source := `#include <pthread.h>
#include <unistd.h>
static void *on(void *x) { sleep(100); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, on, 0); pthread_exit(0); }`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.c"), []byte(source), 0o600))
	out, err := exec.Command("gcc", "-pthread", "-o", filepath.Join(dir, "p"), filepath.Join(dir, "p.c")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, script := range []string{
		`./p & echo $! >pid; until grep -q 'State:.Z' /proc/$!/status; do :; done; echo >ready; wait; touch X`,
		`setsid ./p & echo $! >pid; until grep -q 'State:.Z' /proc/$!/status; do :; done; echo >ready; sleep 50; touch X`,
	} {
		sh := start(t, &shell.Options{Dir: dir})
		_, outcome := stopped(t, sh, dir, script)
		assert.Empty(t, outcome.Left)
		pid, err := strconv.Atoi(strings.TrimSpace(testenv.AwaitFile(t, filepath.Join(dir, "pid"))))
		require.NoError(t, err)
		testenv.Await(t, "it is gone", func() bool { return !testenv.Alive(pid) })
		require.NoError(t, os.Remove(filepath.Join(dir, "ready")))
	}
	assert.NoFileExists(t, filepath.Join(dir, "X"))
}
