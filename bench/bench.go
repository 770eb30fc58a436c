package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// workload is something that is measured.
type workload struct {
	name  string
	about string
	run   func(*bench) error
}

// workloads are run in this order, one after the other: what measures memory
// comes before what uses much of it.
var workloads = []workload{
	{"true", "a builtin", (*bench).builtin},
	{"binary", "a program that does nothing", (*bench).binary},
	{"strict", "a script that sets errexit", (*bench).strict},
	{"rest", "a builtin and a program, each after a pause of 20 ms", (*bench).rested},
	{"switches", "how often the processor changes hands for a command", (*bench).switches},
	{"load", "the last two, beside eight busy processes", (*bench).loaded},
	{"output", "much output", (*bench).output},
	{"start", "until the first command can run", (*bench).start},
	{"sandbox", "what a sandbox costs", (*bench).sandboxed},
	{"flood", "more output than is kept", (*bench).flood},
	{"sessions", "many shells at once", (*bench).sessions},
	{"leaks", "many commands in one shell", (*bench).leaks},
	{"jobstart", "until the first byte of a background job", (*bench).jobStart},
	{"jobpoll", "a look at a background job", (*bench).jobPoll},
	{"jobs", "many background jobs at once", (*bench).manyJobs},
	{"jobfollow", "the output of a background job as it comes", (*bench).jobFollow},
	{"jobflood", "many background jobs that print much", (*bench).jobFlood},
	{"termstart", "until the first byte of a program on a terminal", (*bench).terminalStart},
	{"termecho", "from a key to its echo", (*bench).terminalEcho},
	{"termloud", "a terminal that prints much, and who watches it", (*bench).terminalLoud},
	{"terminals", "many terminals at once", (*bench).manyTerminals},
	{"kept", "a builtin in a session of another process, and many of those", (*bench).keptTrue},
	{"remote", "a builtin on another machine, over ssh", (*bench).remoteTrue},
	{"remotelink", "the same on a way that takes time", (*bench).remoteLink},
	{"remoteoutput", "much output over ssh, and a builtin beside it", (*bench).remoteOutput},
	{"container", "a builtin in a container", (*bench).containerTrue},
	{"containerhour", "commands of a programmer's hour in a container", (*bench).containerHour},
	{"remotes", "many sessions in many containers", (*bench).manyRemote},
	{"mcp", "a builtin, by the Model Context Protocol", (*bench).mcpTrue},
	{"hour", "fifty commands of a programmer's hour", (*bench).hour},
}

func names() []string {
	all := make([]string, len(workloads))
	for i, w := range workloads {
		all[i] = w.name
	}
	return all
}

// bench is one run of the program.
type bench struct {
	ctx   context.Context // of the whole run: an interrupt ends it
	quick bool
	smoke bool // each workload once, for nobody who wants figures
	share int  // some does one part in so many of the work
	repo  string

	bash string
	env  []string // of every side, so that none has less to import

	// files is on the file system that limpet keeps its sessions on. All
	// sides put their output there.
	files string

	report *report
}

func newBench(ctx context.Context, quick bool, repo string) (*bench, error) {
	b := &bench{ctx: ctx, quick: quick, share: 1, repo: repo, env: shell.DefaultEnv()}
	if quick {
		b.share = 10
	}
	var err error
	if b.bash, err = transport.FindBash(""); err != nil {
		return nil, err
	}
	if b.files, err = os.MkdirTemp(rundir.Default(false), "bench-"); err != nil {
		return nil, err
	}
	b.report = &report{Date: time.Now().UTC(), Quick: quick, Machine: thisMachine(b.bash, b.files)}
	return b, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.files) } // Best effort: it is a temporary directory.

// some is n, or a part of it in a quick run, but one at least.
func (b *bench) some(n int) int { return max(n/b.share, 1) }

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// shellOptions are those of every limpet shell here.
func (b *bench) shellOptions() *shell.Options {
	return &shell.Options{Bash: b.bash, Env: b.env, RuntimeDir: b.files}
}
