package sandbox_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// lifecycleProbes try to live on, and to be somewhere else after a change.
var lifecycleProbes = []probe{
	survives("a process, after Close", `sleep 600`, (*world).closeShell),
	survives("one that is stopped, after Close", `bash -c 'kill -STOP $$'`, (*world).closeShell),
	survives("one that ignores signals, after Close", `nohup bash -c 'trap "" TERM INT; while :; do sleep 1; done'`, (*world).closeShell),
	survives("one that forks and forks, after Close", `bash -c 'while :; do (sleep .05 &); sleep .02; done'`, (*world).closeShell),
	survives("a process, after Reset", `sleep 600`, func(w *world) { w.tell(order{Reset: true}) }),
	survives("a process, when the program is killed", `sleep 600`, (*world).killProgram),
	survives("a process, when the first process is killed", `sleep 600`, (*world).killFirst),
	survives("a process, when bubblewrap is killed", `sleep 600`, (*world).killWrapper),
	survives("a process, when bash is killed", `sleep 600`, func(w *world) { w.do(kills) }),
	disarms(survives("a process, when the first process does not die with its parent", `sleep 600`, (*world).killProgram)),

	{name: "the first process is killed", own: true, setup: first, try: func(w *world) bool {
		w.do(`kill -KILL $FIRST; kill -STOP $FIRST`)
		if w.control {
			return w.victimDied()
		}
		r := w.do("echo alive")
		return r.Output != "alive\n" || r.Restart != ""
	}},

	elsewhere("a fork that exits", order{Script: "cd $OUT; exit 3"}),
	elsewhere("a fork that is killed", order{Script: "kill -KILL $$"}),
	elsewhere("a new shell after an exit", order{Script: ending}),
	elsewhere("a new shell after a kill", order{Script: kills}),
	elsewhere("a new shell after a stop", order{Script: "trap '' INT; while :; do :; done", Timeout: stop}),
	elsewhere("a new shell after a process that stops itself", order{Script: "bash -c 'kill -STOP $PPID'", Timeout: stop}),
	elsewhere("a new shell after a Reset", order{Reset: true}),
	{name: "another program in bash's place", own: true, script: `exec bash -c 'cat $OUT/secret; echo x >$OUT/new'`},
	{name: "a trap at the end of bash", own: true, try: func(w *world) bool {
		w.do(`trap "cat $OUT/secret >$W/got; echo x >$OUT/new" EXIT`)
		w.closeShell()
		b, _ := os.ReadFile(filepath.Join(w.Work, "got")) // It need not be there.
		return string(b) == w.secret+"\n"
	}},
	{name: "a command with input", own: true, try: func(w *world) bool {
		w.tell(order{Script: `. /dev/stdin`, Stdin: "cat $OUT/secret; echo x >$OUT/new\n"})
		return false
	}},
	{name: "a variable that the next shell runs", own: true, try: func(w *world) bool {
		w.do(`export BASH_ENV=$W/evil PROMPT_COMMAND='. $W/evil'; echo 'cat $OUT/secret; echo x >$OUT/new' >evil; ` + ending)
		w.do(`. ./evil`)
		return false
	}},

	{name: "the workspace is moved away", own: true, try: func(w *world) bool {
		require.NoError(w, os.Rename(w.Work, w.Work+".old"))
		w.guard(w.Work + ".old")
		w.before = w.look()
		w.tell(order{Script: "echo x >file; echo x >../project.old/file", Here: true})
		return false
	}},
	{name: "the workspace is replaced by a link", own: true, try: func(w *world) bool {
		// Another sandbox does, whose workspace is above this one.
		require.NoError(w, os.Rename(w.Work, w.Work+".old"))
		require.NoError(w, os.Symlink(w.Out, w.Work))
		w.own(w.Work)
		w.tell(order{Script: ending, Here: true})
		w.tell(order{Script: "cat $W/secret $OUT/secret; echo x >$W/new; echo x >$OUT/new", Here: true})
		return false
	}},
	{name: "a workspace in another sandbox's", policy: func(w *world, _ *sandbox.Policy) {
		sub := filepath.Join(w.Work, "sub")
		w.dir(sub)
		child := sandbox.WorkspaceWrite(sub).With([]string{w.who.tool}, nil)
		w.config.Child, w.config.Dir = &child, sub
	}, try: func(w *world) bool {
		// As above, but the policy is of those that know about it.
		sub := filepath.Join(w.Work, "sub")
		require.NoError(w, os.Rename(sub, sub+".old"))
		require.NoError(w, os.Symlink(w.Out, sub))
		w.own(sub)
		w.tell(order{Script: ending, Here: true})
		w.tell(order{Script: "cat $W/sub/secret $OUT/secret; echo x >$W/sub/new; echo x >$OUT/new", Here: true})
		return false
	}},

	{name: "the next session's files, where another sandbox made a link", policy: func(w *world, p *sandbox.Policy) {
		p.FS.Tmp, p.FS.TmpDir = sandbox.SharedTmp, filepath.Join(w.base, "tmp")
		w.dir(p.FS.TmpDir)
	}, try: func(w *world) bool {
		// What is mounted in /tmp has a place in the shared directory.
		link := filepath.Join(w.base, "tmp", strings.TrimPrefix(filepath.Dir(w.Run), "/tmp"))
		w.dir(filepath.Dir(link))
		_ = os.RemoveAll(link) // There are empty directories.
		require.NoError(w, os.Symlink(w.Out, link))
		w.own(link)
		if w.control {
			return os.MkdirAll(filepath.Join(link, "run"), 0o700) == nil
		}
		w.tell(order{Script: ending})
		w.tell(order{Script: "echo alive"})
		return false
	}},

	{name: "without bubblewrap", own: true, setup: func(w *world) { w.config.Backends = []string{w.Home} }, script: `echo bites`},
	{name: "with a bubblewrap that others can write", own: true, setup: func(w *world) {
		w.config.Backends = []string{filepath.Join(w.Home, "bin")}
		pretend(w)
		require.NoError(w, os.Chmod(filepath.Join(w.Home, "bin", "bwrap"), 0o777))
	}, script: `echo bites`},
	{name: "with a bubblewrap in the PATH", own: true, setup: pretend, script: `cat $OUT/secret`},
	{name: "without a workspace", policy: func(_ *world, p *sandbox.Policy) { p.FS.Workspace = "" }, script: `echo bites`},
	{name: "without a policy", policy: func(_ *world, p *sandbox.Policy) { *p = sandbox.Policy{} }, script: `echo bites`},
}

// survives makes a probe of a process that is left behind. It has neither parent,
// session nor the shell's mark, but the world's. It bites if it is there after
// the end.
func survives(name, command string, end func(*world)) probe {
	return probe{name: name, own: true, setup: func(w *world) { w.set("COMMAND", command); w.restless = true }, try: func(w *world) bool {
		w.do(`(env -i $WORLD PATH=$PATH setsid bash -c 'echo >ready; eval "exec $1"' x "$COMMAND" </dev/null >/dev/null 2>&1 &)
			until [[ -e ready ]]; do :; done`)
		testenv.Await(w, "what is left behind", func() bool { return len(w.living()) > 0 })
		end(w)
		if w.control {
			return len(w.living()) > 0
		}
		return w.lasts()
	}}
}

// disarms has the first process not be killed when its parent ends, before the
// rest of the probe.
func disarms(p probe) probe {
	setup, try := p.setup, p.try
	p.setup = func(w *world) { setup(w); first(w) }
	p.try = func(w *world) bool {
		if !w.control {
			kids := proc.Children(w.wrapper())
			require.Len(w, kids, 1)
			w.undo = append(w.undo, func() { _ = proc.Signal(kids[0].ID(), syscall.SIGKILL) }) // It should have ended.
		}
		w.do(`$TOOL disarm $FIRST; (true &); (true &)`) // It waits for those that have no parent.
		return try(w)
	}
	return p
}

// lasts says whether something lives on. What the kernel ends takes a moment.
func (w *world) lasts() bool {
	const moment = 5 * time.Second
	for deadline := time.Now().Add(moment); len(w.living()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.Log("it lives on: ", testenv.Describe(w.living()))
			return true
		}
	}
	return false
}

// first names the first process: in the control somebody else, since it is the
// machine's there.
func first(w *world) {
	victim(w)
	if w.control {
		w.env = append(w.env, strings.Replace(w.env[len(w.env)-2], "VICTIM", "FIRST", 1))
	} else {
		w.set("FIRST", 1)
	}
}

func (w *world) closeShell() {
	w.Helper()
	_, ok := w.tell(order{Close: true})
	require.True(w, ok)
}

// killProgram waits for the guard too, which removes the program's directory last.
func (w *world) killProgram() {
	w.Helper()
	w.program.kill()
	w.program.end()
	w.program = nil
	testenv.Await(w, "the guard", func() bool {
		left, err := filepath.Glob(filepath.Join(w.Run, "limpet-*", "*"))
		return err == nil && len(left) == 0
	})
}

// killFirst kills the first process of the sandbox; the control has bash.
func (w *world) killFirst() {
	w.Helper()
	pid := w.wrapper()
	if !w.control {
		kids := proc.Children(pid)
		require.Len(w, kids, 1)
		pid = kids[0].PID
	}
	require.NoError(w, syscall.Kill(pid, syscall.SIGKILL))
}

// killWrapper kills bubblewrap itself; the control has bash.
func (w *world) killWrapper() {
	w.Helper()
	require.NoError(w, syscall.Kill(w.wrapper(), syscall.SIGKILL))
}

// wrapper is the child of the program that has the shell. The other one is the
// guard.
func (w *world) wrapper() int {
	w.Helper()
	for _, st := range proc.Children(w.program.cmd.Process.Pid) {
		if command := proc.Command(st.PID); strings.HasPrefix(command, "bwrap ") || strings.Contains(command, " --noediting ") {
			return st.PID
		}
	}
	require.Fail(w, "there is no shell")
	return 0
}

// elsewhere tries to find the next shell outside.
func elsewhere(name string, o order) probe {
	return probe{name: name, own: true, try: func(w *world) bool {
		w.tell(o)
		w.do(`cat $OUT/secret; echo x >$OUT/new`)
		return false
	}}
}

// pretend makes a bwrap that makes no sandbox, first in the PATH.
func pretend(w *world) {
	file := filepath.Join(w.Home, "bin", "bwrap")
	w.put(file, `#!/bin/bash
case $1 in --version) echo bubblewrap 0.11.0; exit ;; esac
until [[ $1 == -- ]]; do shift; done
exec "${@:2}"
`)
	require.NoError(w, os.Chmod(file, 0o755))
}

func TestKillingEverybodyInsideReachesNobodyOutside(t *testing.T) {
	workspace, policy := usual(t)
	sh := start(t, workspace, policy)
	mark := worldVar + "=" + rand.Text()
	says(t, sh, "("+mark+" setsid sleep 600 &)")
	testenv.Await(t, "the job to run", func() bool { return len(testenv.Marked(mark)) > 0 })
	killed(t, sh, "x=1; (kill -KILL -1)") // Bash is one of them.
	testenv.AwaitNone(t, mark, "killed from inside")
	assert.Equal(t, "sandboxed", says(t, sh, `[[ -e `+t.TempDir()+` ]] || echo sandboxed`))
}

func TestFiftySandboxesLeaveNothing(t *testing.T) {
	workspace, policy := usual(t)
	cycle := func() {
		sh := start(t, workspace, policy)
		says(t, sh, "setsid sleep 600 & (env -i sleep 600 &)")
		require.NoError(t, sh.Close())
	}
	cycle() // What is opened once stays.
	fds, threads := testenv.FDs(t), tasks(t)
	for range 50 {
		cycle()
	}
	assert.Equal(t, fds, testenv.FDs(t))
	assert.Empty(t, testenv.Describe(testenv.Children()))
	const few = 8 // Go keeps those that it needed once.
	assert.Less(t, tasks(t), threads+few)
}

func tasks(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(os.Getpid()) + "/task")
	require.NoError(t, err)
	return len(entries)
}
