package sandbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
)

// sessionProbes turn the files by which the shell is spoken to against the
// program, which reads and writes them outside of the sandbox. The sandbox does
// not keep them from that: the program must not fall for it. So the control is
// a program that does, and of the sandboxed one it is asked more than that no
// harm is done: it may not crash or hang, it runs the next command, in a new
// shell if need be, and it leaves no files behind.
//
// In all scripts S is the session directory.
var sessionProbes = []probe{
	attack("outputs become links to a secret", each("out", `ln -s $OUT/secret $S/x`), readsSecret("out/*")),
	attack("outputs become pipes", each("out", `mkfifo $S/x`), is("out/*", fs.ModeNamedPipe)),
	attack("outputs become directories", `for f in $S/out/*; do `+directory(`$f`)+`; done`, is("out/*", fs.ModeDir)),
	attack("outputs become endless", each("out", `ln -s /dev/zero $S/x`), is("out/*", fs.ModeCharDevice)),
	attack("outputs become huge", `truncate -s 100G $S/out/*`, larger("out/*", 1<<36)),
	attack("outputs are deleted", `rm -f $S/out/*`, gone("out/*")),
	attack("the report becomes a link to a secret", each("status", `ln -s $OUT/secret $S/x`), readsSecret("status/record")),
	attack("the report becomes a pipe", each("status", `mkfifo $S/x`), is("status/record", fs.ModeNamedPipe)),
	attack("the report becomes a directory", directory(`$S/status/record`), is("status/record", fs.ModeDir)),
	attack("the report becomes huge", `truncate -s 100G $S/status/record`, larger("status/record", 1<<36)),
	attack("bash itself says much", `head -c 64M /dev/zero >/proc/$$/fd/11`, larger("status/record", few)),
	attack("the script becomes a pipe", `mkfifo $S/x; mv $S/x $S/eval`, is("eval", fs.ModeNamedPipe)),
	attack("the script becomes a directory", directory(`$S/eval`), is("eval", fs.ModeDir)),
	attack("the script becomes a link to a secret", `ln -s $OUT/secret $S/x; mv $S/x $S/eval`, readsSecret("eval")),
	attack("the script becomes another one", `echo 'echo dead' >$S/x; mv $S/x $S/eval`, func(w *world, s string) bool {
		b, err := os.ReadFile(filepath.Join(s, "eval"))
		return err == nil && string(b) == "echo dead\n"
	}),
	attack("the status of stages becomes a link to a secret", `ln -s $OUT/secret $S/x; mv $S/x $S/inner`, readsSecret("inner")),
	attack("the status of stages becomes a pipe", `mkfifo $S/x; mv $S/x $S/inner`, is("inner", fs.ModeNamedPipe)),
	attack("the state becomes a link to a secret", `ln -s $OUT/secret $S/x; mv $S/x $S/state`, readsSecret("state")),
	attack("the state becomes a pipe, and is made anew", `mkfifo $S/x; mv $S/x $S/state; [[ $CONTROL ]] || rm $S/inner`, is("state", fs.ModeNamedPipe)),
	attack("the state becomes endless", `ln -s /dev/zero $S/x; mv $S/x $S/state`, is("state", fs.ModeCharDevice)),
	attack("the last state becomes a link to a secret", `ln -s $OUT/secret $S/x; mv $S/x $S/exit`, readsSecret("exit")),
	attack("the last state becomes a pipe", `mkfifo $S/x; mv $S/x $S/exit`, is("exit", fs.ModeNamedPipe)),
	attack("the fork's state becomes a link to a secret", `ln -s $OUT/secret $S/x; mv $S/x $S/fork; `+forkEnds, readsSecret("fork")),
	attack("the fork's state becomes a pipe", `mkfifo $S/x; mv $S/x $S/fork; `+forkEnds, is("fork", fs.ModeNamedPipe)),
	attack("the fork's state becomes endless", `ln -s /dev/zero $S/x; mv $S/x $S/fork; `+forkEnds, is("fork", fs.ModeCharDevice)),
	attack("the fork's state becomes huge", `truncate -s 100G $S/fork; `+forkEnds, larger("fork", 1<<36)),
	attack("what a fork reads is a link to nowhere", `ln -sf $OUT/new $S/fork-start; `+forkEnds, writes("fork-start")),
	attack("what a fork reads is a pipe", `rm -f $S/fork-start; mkfifo $S/fork-start; `+forkEnds, is("fork-start", fs.ModeNamedPipe)),
	attack("what a fork reads is a directory", `rm -f $S/fork-start; mkdir $S/fork-start; : >$S/fork-start/x; `+forkEnds, is("fork-start", fs.ModeDir)),
	attack("the last directory becomes a pipe, and is made anew", `mkfifo $S/x; mv $S/x $S/before; [[ $CONTROL ]] || rm $S/inner`, is("oldpwd", fs.ModeNamedPipe)),
	attack("the script that sets the status is a link to nowhere", `ln -s $OUT/new $S/x; mv $S/x $S/return; false`, writes("return")),
	attack("the script that sets the status is a pipe", `mkfifo $S/x; mv $S/x $S/return; false`, is("return", fs.ModeNamedPipe)),
	attack("the outputs' directory becomes a link", `ln -s $OUT $S/x; $TOOL exchange $S/x $S/out; sleep 600 &`, writes("out/new")),
	attack("the report's directory becomes a link", `ln -s $OUT $S/x; $TOOL exchange $S/x $S/status; [[ $CONTROL ]] || rm $S/inner`, writes("status/record")),
	attack("the report's directory is deleted", `rm -rf $S/status`, func(w *world, _ string) bool { return unlinked(w, w.record) }),
	attack("everything is deleted", `rm -rf $S/*`, func(w *world, _ string) bool { return unlinked(w, w.eval) }),
	attack("nothing may be read", `chmod 000 $S/out/* $S/status/* $S/* $S`, func(w *world, s string) bool {
		info, err := os.Stat(filepath.Join(s, "eval"))
		return err != nil || info.Mode().Perm() == 0
	}),
	attack("nothing may be removed", `mkdir -p $S/x/y; : >$S/x/y/z; chmod 000 $S/x/y; chmod 500 $S/x`, func(w *world, s string) bool {
		info, err := os.Stat(filepath.Join(s, "x"))
		return err == nil && info.Mode().Perm() == 0o500
	}),
	attack("many files", `for i in {1..5000}; do : >$S/status/$i; done`, func(w *world, s string) bool {
		entries, err := os.ReadDir(filepath.Join(s, "status"))
		return err == nil && len(entries) > 5000
	}),
	withFew(attack("directories deep down", `$TOOL deep $S 5000`, func(w *world, s string) bool {
		dir, err := os.Open(s)
		require.NoError(w, err)
		defer dir.Close() //nolint:errcheck // Read only.
		return descends(int(dir.Fd()), 5000)
	})),
	attack("it is moved away", `mv $S $S.x`, movedAway),
	attack("what it is in is moved away", `mv ${S%/*} ${S%/*/*}/x; mv ${S%/*/*} ${S%/*/*/*}/y`, movedAway),
}

// directory makes one of a file, at once: the program makes anew what is gone.
func directory(file string) string { return `mkdir $S/x; $TOOL exchange $S/x ` + file + `; rm $S/x` }

// each replaces every file in a directory by what makes S/x.
func each(dir, makes string) string {
	return `for f in $S/` + dir + `/*; do ` + makes + `; mv $S/x $f; done`
}

// forkEnds ends a fork without a state of its own. The control runs none.
const forkEnds = `[[ $CONTROL ]] || kill -KILL $BASHPID`

// attack makes a probe of a script that does something to the session directory.
// Naive does what a program does that thinks nothing of it, in the control, and
// says whether it would fall for it.
func attack(name, script string, naive func(w *world, s string) bool) probe {
	return probe{name: name, own: true, setup: unsaved, try: func(w *world) bool {
		s := w.session()
		for name, f := range map[string]**os.File{"eval": &w.eval, "status/record": &w.record} {
			var err error
			*f, err = os.Open(filepath.Join(s, name))
			require.NoError(w, err)
			w.Cleanup(func() { _ = (*f).Close() }) // Read only.
		}
		if w.control {
			w.do(w.finds() + script + "\nsleep 600 &") // Whose outputs are open, limpet leaves alone.
			return w.ruined(naive(w, s))
		}
		w.do(w.finds() + script)
		w.tell(order{Script: "v=1; trap : EXIT; : $$", Timeout: 4 * stop}) // It has to do with all of the files.
		return !w.carriesOn()
	}}
}

// finds is how a script knows the session directory, as S, wherever bash runs it.
func (w *world) finds() string {
	w.Helper()
	return "S='" + w.session() + "'; "
}

// unsaved has the shell of a control leave its files as the script made them.
func unsaved(w *world) { w.config.NoSave = w.control }

// ruined ends the program of a control as it is: it cannot be asked to end. So
// does its guard, which takes its time to find what the world finds anyway.
func (w *world) ruined(naively bool) bool {
	if w.program == nil {
		return true // It was naive itself, and hangs or crashed.
	}
	for _, st := range proc.Children(w.program.cmd.Process.Pid) {
		_ = proc.Signal(st.ID(), syscall.SIGKILL) // It may have ended.
	}
	w.program.kill()
	w.restless = true
	return naively
}

// withFew has a program that may have no more than the usual 1024 files open.
func withFew(p probe) probe {
	p.setup = func(w *world) {
		unsaved(w)
		w.config.Files = 1024
	}
	return p
}

// session finds the session directory.
func (w *world) session() string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(w.Run, "limpet-*", "*", "*", "eval"))
	require.NoError(w, err)
	require.NotEmpty(w, found)
	return filepath.Dir(found[0])
}

// carriesOn says whether the program is as good as before. A command or two may
// be lost with a shell that has to be replaced.
func (w *world) carriesOn() bool {
	w.Helper()
	const tries, patience = 3, 3 * time.Second
	alive := false
	for range tries {
		if w.program == nil {
			return false
		}
		r, ok := w.tell(order{Script: "echo alive", Timeout: patience})
		if !ok {
			return false
		}
		alive = alive || r.Output == "alive\n"
	}
	if !alive {
		w.Log("no command runs any more")
		return false
	}
	if !w.drop() {
		w.Log("the program does not end, or failed")
		return false
	}
	left, _ := filepath.Glob(filepath.Join(w.Run, "limpet-*", "*")) // None is what should be there.
	if len(left) > 0 {
		w.Log("it leaves files behind: ", left)
	}
	return len(left) == 0
}

// The ways to be naive. A name is one in the session directory.

func some(s, names string, is func(path string) bool) bool {
	found, _ := filepath.Glob(filepath.Join(s, names)) // The pattern is ours.
	for _, path := range found {
		if is(path) {
			return true
		}
	}
	return false
}

// readsSecret reads by name.
func readsSecret(names string) func(*world, string) bool {
	return func(w *world, s string) bool {
		return some(s, names, func(path string) bool {
			b, err := os.ReadFile(path)
			return err == nil && string(b) == w.secret+"\n"
		})
	}
}

// is opens by name. It would wait for ever, or get no end, or an error.
func is(names string, mode fs.FileMode) func(*world, string) bool {
	return func(_ *world, s string) bool {
		return some(s, names, func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Mode()&mode != 0
		})
	}
}

// unlinked believes that what it has open is what others find by that name.
func unlinked(w *world, f *os.File) bool {
	now, err := f.Stat()
	require.NoError(w, err)
	return now.Sys().(*syscall.Stat_t).Nlink == 0
}

// movedAway believes that what it has open is still there.
func movedAway(w *world, s string) bool {
	ours, err := w.eval.Stat()
	require.NoError(w, err)
	now, err := os.Stat(filepath.Join(s, "eval"))
	return err != nil || !os.SameFile(ours, now)
}

// larger reads to the end.
func larger(names string, than int64) func(*world, string) bool {
	return func(_ *world, s string) bool {
		return some(s, names, func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Size() > than
		})
	}
}

// gone believes that it is there.
func gone(names string) func(*world, string) bool {
	return func(_ *world, s string) bool { return !some(s, names, func(string) bool { return true }) }
}

// writes by name. What comes of it is harm.
func writes(name string) func(*world, string) bool {
	return func(_ *world, s string) bool {
		_ = os.WriteFile(filepath.Join(s, name), nil, 0o600) // It may be refused.
		return false
	}
}
