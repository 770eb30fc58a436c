package sandbox_test

import (
	"path/filepath"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// resourceProbes try to take more than they are given.
var resourceProbes = []probe{
	{name: "as many processes as one likes", policy: limits(sandbox.Limits{NProc: 64}), script: `ulimit -u unlimited; $TOOL fork 200`},
	{name: "as many files as one likes", policy: limits(sandbox.Limits{NoFile: 64}), script: `ulimit -n 1024; for i in {1..200}; do exec {fd}</dev/null || exit; done; echo bites`},
	{name: "a file as long as one likes", policy: limits(sandbox.Limits{FileSize: 1 << 20}), script: `ulimit -f unlimited; head -c 2M /dev/zero >$W/long; (($(stat -c %s $W/long) > 1 << 20)) && echo bites`},
	{name: "as many addresses as one likes", policy: limits(sandbox.Limits{AddressSpace: 1 << 30}), script: `ulimit -v unlimited; dd bs=2G count=1 </dev/null >/dev/null && echo bites`}, // Its buffer is that large.
	{name: "as much of the processor as one likes", policy: limits(sandbox.Limits{CPU: 1}), script: `ulimit -t unlimited; $TOOL cpu 1100ms`},

	// Where no cgroup is to be had the sandbox does not start.
	{name: "as many processes as one likes, in a cgroup", policy: limits(sandbox.Limits{PidsMax: 64}), script: `$TOOL fork 200`},
	{name: "as much memory as one likes, in a cgroup", policy: limits(sandbox.Limits{MemoryMax: 64 << 20}), script: `$TOOL memory 128`},

	{name: "a large temporary file", policy: sizes, script: large("/tmp")},
	{name: "many temporary files", policy: sizes, script: `d=/tmp/limpet.$$; mkdir $d; for i in {1..5}; do head -c 2M /dev/zero >$d/$i || break; done && (($(du -sk $d | cut -f1) > 8192)) && echo bites; rm -r $d`},
	{name: "a large temporary file that stays", own: true, script: `f=/var/tmp/limpet.$$; fallocate -l 65M $f && echo bites; rm $f`},
	{name: "a large file at home", policy: sizes, script: large("$HOME")},
	{name: "a large file in shared memory", policy: sizes, script: large("/dev/shm")},
	{name: "a file as long as one likes, without a limit", policy: sizes, script: `f=/tmp/limpet.$$; truncate -s 1G $f; dd if=/dev/zero of=$f bs=1M seek=500 count=9 conv=notrunc && echo bites; rm $f`},

	{name: "memory that is not swapped", script: `ulimit -l unlimited; $TOOL mlock 64`},
	{name: "the processor before all others", script: `$TOOL call sched_setscheduler`},
	{name: "a better place in the queue", script: `$TOOL call setpriority`},
	{name: "the disk before all others", script: `$TOOL call ioprio_set`},

	{name: "output without end", own: true, try: floods(1, `flood`)},
	{name: "errors without end", own: true, try: floods(2, `flood >&2`)},
	{name: "output of a job without end", own: true, try: floods(1, `flood &`)},
}

func limits(l sandbox.Limits) func(*world, *sandbox.Policy) {
	return func(_ *world, p *sandbox.Policy) { p.Limits = l }
}

const few = 8 << 20 // bytes

func sizes(_ *world, p *sandbox.Policy) { p.FS.TmpSize, p.FS.HomeSize, p.FS.ShmSize = few, few, few }

// large writes twice as much as there should be room for.
func large(dir string) string {
	return `f=` + dir + `/limpet.$$; head -c 16M /dev/zero >$f && echo bites; rm $f`
}

// floods runs a script that writes 64 MiB of output, a piece at a time, and goes
// on when there is not much of it left on disk. The control keeps its output in a
// file, as a program would that thinks nothing of it, and does not wait.
func floods(fd int, script string) func(*world) bool {
	return func(w *world) bool {
		w.set("FD", fd)
		script := `flood() {
			for i in {1..64}; do
				head -c 1M /dev/zero
				until [[ $CONTROL ]] || (($(stat -Lc %b /proc/$BASHPID/fd/$FD) <= 8192)); do sleep .01; done
			done
			echo bites >>done
		}
		` + script
		if w.control {
			w.set("CONTROL", "x")
			w.do("{ " + script + "\nwait; } >out 2>&1")
			return testenv.Allocated(w.Work) > 8*few
		}
		r := w.do(script)
		testenv.AwaitFile(w, filepath.Join(w.Work, "done"))
		return r.Length > few || r.Memory > 8*few
	}
}
