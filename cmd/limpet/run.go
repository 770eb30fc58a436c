package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/shell"
)

type runFlags struct {
	scripts     scriptFlags
	kept        keptFlags
	shell       shellFlags
	json        bool
	collapse    bool
	receipt     bool
	stopOnError bool
	approve     approveFlag
}

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:        "run [flags] [script... | -f file [argument...]] [-- command [argument...]]",
		SuggestFor: []string{"exec", "eval"},
		Short:      "Run scripts, one after the other, in one shell",
		Long: `Run runs its arguments one after the other in one bash, with live output. What
a script changes (directory, variables, functions, options, traps, jobs) is
there for the next one, even if a script ends by "exit" or a signal. Set -e, -u, -x
and pipefail, and a trap for EXIT, end with their script, as with bash -c; so do
descriptors and jobs of a script that may end its shell, and a line on standard error
says so. Words behind -- are one command, word for word. A script - is the whole of standard input; without
arguments, that is the only script.

-c SCRIPT is a script as well, and the arguments are then $0, $1 and so on, as with
bash -c. -f FILE runs a file as bash FILE does: in a bash of its own, which has the
directory and the exported variables of the shell, and changes neither. All that is
behind FILE are its arguments.

All scripts are run, also after one that failed; see --stop-on-error. The exit
code is that of the last one that ran; see limpet help exit-codes. What they leave
running in the background ends with limpet.

Scripts read limpet's standard input, unless it is a terminal, or had a script in it.
Several scripts share it, as the commands of one script do. Limpet does not read ahead
of them, so in a "while read" loop lines are lost only to a script that reads (cat,
ssh), and -n keeps it from that. With --sandbox it does read ahead of them if standard
input is a file: give -n in such a loop.

With --session NAME they run in a session that stays when limpet ends, with what they leave
running, and that is made if there is none; see limpet help session. There limpet reads ahead of
them, as ssh does, and a command that runs when limpet's terminal is closed runs on. One whose output
nobody reads any more, as behind "| head", is stopped. With --id
it can be asked for again, and is not run twice.

With --on TARGET they run on another machine, in the session of --session there, or in one that ends with
limpet. TARGET is one of

  ssh://[USER@]HOST[:PORT]    by ssh, with your configuration, agent and known hosts
  docker://CONTAINER          by docker exec, in a container that runs; podman:// by podman
  kube://NAMESPACE/POD        by kubectl exec, in a pod that runs; kube://NAMESPACE/POD/CONTAINER in one of its containers,
                              and kube://CONTEXT/NAMESPACE/POD/ of another cluster than the current one
  unix:///PATH                by a unix socket at which limpet connect --stdio is offered, one for each connection
  exec:ARGV                   by a command whose standard input and output reach a POSIX sh there, in words as bash
                              has them, without expansions: exec:'limactl shell dev sh'

If there is no limpet there, this one is copied into the user's cache, or, for another system or processor, a
file limpet-OS-ARCH from the directory that --agents or else LIMPET_AGENTS names, or from beside this one; nothing else of this
machine goes over, not its environment, and paths are those of there. A connection that is lost is dialled again, for five minutes, and a command
goes on where it was. A machine that is not reached is an error, and nothing runs here instead.

With --json, each result is one line of JSON on stdout and there is no live
output. Bytes that are not UTF-8 become U+FFFD there.`,
		Example: `  limpet run 'cd /tmp' 'x=1' 'echo $x in $PWD'
  limpet run -- ls -l "$dir"
  limpet run -f build.sh --release
  limpet run -e --timeout 10m 'make' 'make test'
  limpet run --json 'seq 3 | grep 2' | jq .receipt.pipeline
  limpet run --env GREETING=hello <script.sh
  sort names | limpet run 'uniq -c'
  limpet run --session build 'cd src && make'
  limpet run --on ssh://build-box --session build 'cd src && make'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kept, err := flags.kept.asked(cmd)
			if err != nil {
				return err
			}
			opts, err := flags.shell.options(cmd) // First: a flag may have taken a script for its value.
			if err != nil {
				return err
			}
			run, err := flags.scripts.toRun(cmd, args, flags.bash())
			if err != nil {
				return err
			}
			if flags.collapse && !flags.json {
				return usagef(cmd, "--collapse means nothing without --json")
			}
			if flags.kept.id != "" && len(run.scripts) != 1 {
				return usagef(cmd, "--id names one script, and here are %d", len(run.scripts))
			}
			if i := slices.IndexFunc(run.scripts, func(s oneScript) bool { return s.file != "" }); i >= 0 && flags.kept.isElsewhere() {
				file := quoted([]string{run.scripts[i].file})
				again := quoted(append([]string{"-f", stdinArg}, run.scripts[i].args...))
				return usagef(cmd, "--file with --on: %s is here, and not there; limpet run --on ... %s <%s runs its text", file, again, file)
			}
			gate, err := flags.approve.gate(cmd, &flags.shell, flags.kept.name)
			if err != nil {
				return err
			}
			if kept {
				return runKept(cmd, flags, run, gate)
			}
			if !flags.scripts.noStdin && !run.stdinTaken && !term.IsTerminal(int(os.Stdin.Fd())) {
				opts.Stdin = os.Stdin
			}
			return runScripts(cmd, flags, opts, run, gate)
		},
	}
	flags.scripts.add(cmd)
	flags.kept.add(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := ""
		if words := cmd.Flags().Args(); len(words) > 0 {
			hint = fmt.Sprintf("if it is a flag of %s, write limpet run -- %s ..., or quote the whole as a script", words[0], quoted(words))
		}
		return flagError(cmd, err, hint)
	})
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each result as a line of JSON, and no live output")
	cmd.Flags().BoolVar(&flags.collapse, "collapse", false, "with --json, keep of a line that is redrawn by carriage returns, as by a progress bar, what a terminal would show in the end")
	cmd.Flags().BoolVar(&flags.receipt, "receipt", false, "print to stderr what each script cost and left behind")
	cmd.Flags().BoolVarP(&flags.stopOnError, "stop-on-error", "e", false, "run no more after a script that failed")
	flags.approve.add(cmd)
	flags.shell.add(cmd)
	return cmd
}

// bash is what runs a script in a file.
func (f *runFlags) bash() string {
	if strings.Contains(f.shell.bash, "/") {
		return absolute(f.shell.bash)
	}
	return cmp.Or(f.shell.bash, "bash")
}

func runScripts(cmd *cobra.Command, flags runFlags, opts *shell.Options, run toRun, gate *gate) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	console := newConsole()
	audit, err := flags.kept.audit.own(cmd, console)
	if err != nil {
		return err
	}
	opts.Logger, opts.AskPassword = console.logger(), flags.shell.passwords(console, flags.approve.mode)
	if audit != nil {
		opts.AskPassword = audit.passwords(opts.AskPassword)
	}
	sh, err := shell.Start(ctx, opts)
	if err != nil {
		return withSignal(ctx, err)
	}
	defer sh.Close() // It cannot fail.
	r := runner{flags: flags, run: run, sh: sh, console: console, gate: gate, audit: audit}
	return r.all(ctx)
}

// runKept is runScripts in a session that is kept.
func runKept(cmd *cobra.Command, flags runFlags, run toRun, gate *gate) error {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
	if flags.kept.name == "" { // The session ends with limpet.
		signals = append(signals, syscall.SIGHUP)
	} else {
		defer leaveOnHangup()()
	}
	ctx, stop := untilOneOf(context.Background(), signals...)
	defer stop()
	console := newConsole()
	ctx, stopUnread := untilUnread(ctx, console)
	defer stopUnread()
	open := func() (*keptShell, error) {
		return flags.kept.open(ctx, cmd, &flags.shell, console, flags.approve.mode)
	}
	// With --approve a person is told the directory, and --bash and the like are refused for a session that is there: both have to be known
	// before a script is sent.
	if flags.kept.isElsewhere() && gate == nil && (flags.kept.name == "" || !slices.ContainsFunc(born, cmd.Flags().Changed)) {
		open = func() (*keptShell, error) {
			return flags.kept.openLater(ctx, &flags.shell, console, len(run.scripts) == 1)
		}
	}
	sh, err := open()
	if err != nil {
		return withSignal(ctx, err)
	}
	defer sh.Disconnect()
	r := runner{flags: flags, run: run, sh: sh, console: console, gate: gate}
	// With --id the script reads no standard input: the first try may have consumed it, so a second one could not
	// read the same.
	if flags.kept.id == "" && !flags.scripts.noStdin && !run.stdinTaken && !term.IsTerminal(int(os.Stdin.Fd())) && !isNull(os.Stdin) {
		r.stdin = &shared{from: os.Stdin}
	}
	return r.all(ctx)
}

// isNull reports whether a file is /dev/null, from which nothing comes.
func isNull(f *os.File) bool {
	st, err1 := f.Stat()
	null, err2 := os.Stat(os.DevNull)
	return err1 == nil && err2 == nil && os.SameFile(st, null)
}

// runner runs the scripts and tells what came of them.
type runner struct {
	flags   runFlags
	run     toRun
	sh      runsIn
	console *console
	gate    *gate // nil: all may run
	audit   *ownShell
	stdin   *shared // what the scripts read, if the shell has not got that itself
}

// runsIn is a shell of limpet's own, or a session that is kept.
type runsIn interface {
	Do(ctx context.Context, req command.Request) (command.Result, error)
	Dir() string
}

// all runs the scripts and returns the last one's exit code as an error.
func (r *runner) all(ctx context.Context) error {
	code := 0
	if err := r.position(ctx, code); err != nil {
		return err
	}
	for i, script := range r.run.scripts {
		text := script.in(r.sh.Dir())
		req := command.Request{Script: r.withPosition(text, code), MergeStderr: r.flags.shell.mergeStderr}
		end := r.stdin.lend(&req)
		if !r.flags.json {
			req.Stdout, req.Stderr = &r.console.stdout, &r.console.stderr
		}
		refused := r.gate.check(ctx, r.sh, r.console, script.file, text)
		res, err := r.audit.runs(r.sh.Dir(), text, refused, func() (command.Result, error) {
			return r.gate.run(ctx, r.sh, r.console, script.file, text, req)
		})
		end()
		unopened, isUnopened := errors.AsType[*unopenedError](err)
		if isUnopened && !errors.Is(err, wire.ErrMayHaveRun) {
			return withSignal(ctx, unopened.error)
		}
		last := i == len(r.run.scripts)-1
		if err == nil && !r.flags.json {
			err = r.console.lost(res)
		}
		unread := func() bool { return got(syscall.SIGPIPE)(gotSignal(ctx)) }
		if !unread() { // Else there is nobody to tell.
			if err := r.tell(text, res, err, last); err != nil && !unread() {
				return err
			}
		}
		if err == nil && !r.flags.json {
			if hint := r.hint(ctx, script, res.ExitCode); hint != "" {
				r.console.notef("%s", hint)
			}
		}
		code = codeOfResult(res, err)
		if last && err == nil {
			break // A signal that came after the end of the script does not replace its exit code.
		}
		if err := gotSignal(ctx); err != nil {
			return exit(codeOf(err))
		}
		if isUnopened && !last {
			r.console.notef("the remaining scripts were not run")
			break
		}
		if r.flags.stopOnError && code != 0 {
			break
		}
		if res.Restart != nil && res.Restart.Err != nil && !last {
			return fmt.Errorf("the remaining scripts were not run: %w", res.Restart.Err)
		}
		if res.Restart != nil && !last {
			if err := r.position(ctx, code); err != nil {
				return err
			}
		}
	}
	return exit(code)
}

// hint returns what to do about a script whose exit code says that there was no program,
// or none that could be executed; nothing if nothing is known.
func (r *runner) hint(ctx context.Context, s oneScript, code int) string {
	if code != codeNotFound && code != codeCannot {
		return ""
	}
	if s.file == "" {
		return s.hint(code)
	}
	path := absolute(s.file)
	res, err := r.sh.Do(ctx, command.Request{Script: "[[ -e " + script.Quote(path) + " ]]"})
	if _, gone := os.Stat(path); gone != nil || err != nil || res.ExitCode == 0 {
		return ""
	}
	return fmt.Sprintf("the sandbox does not show %s: show it by --ro %s", s.file, quoted([]string{path}))
}

// position sets $0, $1 and so on, and leaves $? as it is. A new bash does not have those of
// the one before.
func (r *runner) position(ctx context.Context, status int) error {
	text := r.positioned(status)
	if text == "" || r.alone() {
		return nil
	}
	_, err := r.sh.Do(ctx, command.Request{Script: text})
	return err
}

// positioned is the script that sets them; empty if there are none.
func (r *runner) positioned(status int) string {
	if len(r.run.positional) == 0 {
		return ""
	}
	// Before bash 5 $0 stays as it is.
	return "BASH_ARGV0=" + script.Quote(r.run.positional[0]) + "; set -- " + quoted(r.run.positional[1:]) + "; (exit " + strconv.Itoa(status) + ")"
}

// alone reports whether each script has to bring what it needs: others run theirs in the same session,
// between two of these.
func (r *runner) alone() bool {
	_, kept := r.sh.(*keptShell)
	return kept
}

// withPosition is a script that sets them itself, where it has to. The lines of the script stay what they
// are.
func (r *runner) withPosition(text string, status int) string {
	if position := r.positioned(status); position != "" && r.alone() {
		return position + "; " + text
	}
	return text
}

// tell says what came of a script, beyond the output that the user has seen.
func (r *runner) tell(script string, res command.Result, err error, last bool) error {
	switch {
	case r.flags.json:
		if err := printJSON(&r.console.stdout, script, res, err, r.flags.collapse); err != nil {
			return fmt.Errorf("printing a result: %w", err)
		}
	case err != nil:
		r.console.notef("%s", explain(err))
	case res.Denied != "":
		r.console.notef("perhaps because %s", flagNames.Replace(res.Denied))
	}
	missed := !last || r.flags.kept.name != "" // Else nobody uses the shell any more.
	if res.Restart != nil && !r.flags.json && (err != nil || missed) {
		r.console.notef("%s", explain(restartNews{res.Restart}))
	}
	switch {
	case r.flags.receipt:
		r.console.notef("%s", receiptLine(res, err))
	case len(res.Receipt.NotKept) > 0 && !r.flags.json && missed:
		r.console.notef("%s", notKept(res.Receipt))
	}
	return nil
}
