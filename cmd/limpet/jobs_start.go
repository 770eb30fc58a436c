package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
)

type startFlags struct {
	where       *registryFlags
	shell       shellFlags // of which there are dir, bash and the environment
	approve     approveFlag
	belongs     belongs
	rows, cols  uint
	pty, stdin  bool
	watch       []string
	notify      bool
	timeout     time.Duration
	outputLimit byteSize
	json        bool
}

func jobsStartCommand(where *registryFlags) *cobra.Command {
	flags := startFlags{where: where}
	cmd := &cobra.Command{
		Use:        "start [flags] [script | -- command word...]",
		SuggestFor: []string{"run", "exec", "new", "create", "spawn"},
		Short:      "Start a job, and print its id",
		Long: `Start runs a script by a bash of its own, in the background, and prints the id of
the job. The job runs on when limpet has ended, as it does at once, until it ends by
itself or is stopped; a logout of the user may end it, too. Several words behind --
are a command, word for word. Without arguments, the whole of standard input is the
script. What there is to be warned of goes to stderr.

The job reads nothing, unless --stdin or --pty let jobs write and jobs submit write
to it. Its stdout and stderr are one stream, of which the end is kept: see jobs log.

With --session NAME it starts in that session, which is made if there is none: in the directory
where the session is, with what its shell exports.

There is no --sandbox here: a job in a sandbox needs the program that started it as
long as it runs, and limpet ends at once.

What --watch and --notify ask for is told to the program that owns the jobs when it
happens. No command of limpet listens: see jobs wait --pattern.`,
		Example: `  limpet jobs start 'make && make test'
  id=$(limpet jobs start --task build -- make -j4 CC="ccache gcc")
  limpet jobs start --pty --rows 40 --cols 120 python3
  limpet jobs start --timeout 1h --env PORT=8080 <serve.sh
  limpet jobs start -s build 'make watch'`,
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return flags.run(ctx, cmd, args)
		}),
	}
	flags.add(cmd)
	return cmd
}

func (f *startFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	shared := &cobra.Command{}
	f.shell.add(shared)
	flags.SortFlags = false
	for _, name := range []string{"dir", "bash", "env", "keep-env", "clean-env"} {
		flags.AddFlag(shared.Flags().Lookup(name))
	}
	f.approve.add(cmd)
	flags.BoolVar(&f.pty, "pty", false, "run it on a terminal of its own")
	flags.UintVar(&f.rows, "rows", 24, "the `ROWS` of that terminal")
	flags.UintVar(&f.cols, "cols", 80, "the `COLUMNS` of that terminal")
	flags.BoolVar(&f.stdin, "stdin", false, "let it read what jobs write and jobs submit send")
	f.belongs.where = f.where
	f.belongs.add(cmd, "the `NAME` of the task that it belongs to", "a label `NAME=value` to find it by; repeatable")
	flags.StringArrayVar(&f.watch, "watch", nil, "tell the owner of the jobs of each line that matches `REGEXP`; repeatable")
	flags.BoolVar(&f.notify, "notify", false, "tell the owner of the jobs when it has ended")
	durationVar(flags, &f.timeout, "timeout", 0, "stop it if it runs longer than `TIME`, as in 5 (seconds), 500ms or 5m (default: never)")
	f.outputLimit = jobs.DefaultOutputLimit
	flags.Var(&f.outputLimit, "output-limit", "keep the last `BYTES` of its output, at least, as in 65536, 64KiB or 2MiB")
	flags.BoolVar(&f.json, "json", false, "print the job as a line of JSON")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "flags of the command itself come behind --, as in limpet jobs start -- make -j4"
		if strings.HasSuffix(err.Error(), "--sandbox") {
			hint = "a job in a sandbox cannot outlive the program that started it, which limpet would have to"
		}
		return flagError(cmd, err, hint)
	})
}

func (f *startFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	script, err := scriptOf(cmd, args)
	if err != nil {
		return err
	}
	spec, env, err := f.spec(cmd)
	if err != nil {
		return err
	}
	spec.Command = script
	if err := f.approve.once(ctx, cmd, &f.shell, f.where.session, f.where.console, script); err != nil {
		return err
	}
	if f.where.at != nil {
		return f.inSession(ctx, cmd, spec)
	}
	return f.where.change(ctx, jobs.Options{Bash: f.shell.bash, Env: env, MaxFinished: jobs.DefaultMaxFinished}, func(r jobs.Handle) error {
		job, err := r.(*jobs.Registry).Start(ctx, spec)
		if err != nil {
			return err
		}
		if file, _, _ := strings.Cut(script, " "); noCommandButFile(file, f.shell.dir) {
			f.where.console.notef("%s is a file, and no command: to run it as a script, limpet jobs start -- bash %s", file, script)
		}
		return f.print(job)
	})
}

func (f *startFlags) print(job jobs.Job) error {
	for _, warning := range job.Warnings {
		f.where.console.notef("%s", flagNames.Replace(warning))
	}
	if f.json {
		return writeJSON(os.Stdout, job)
	}
	_, err := fmt.Println(job.ID)
	return err
}

// inSession starts the job in the kept session, and creates the session if it does not exist.
func (f *startFlags) inSession(ctx context.Context, cmd *cobra.Command, spec jobs.Spec) error {
	if err := refuseIn(cmd, "--session", "bash", "keep-env", "clean-env"); err != nil {
		return err
	}
	kept, _, err := found(ctx, f.where.at, f.where.session, f.where.console)
	if err != nil {
		return withSignal(ctx, err)
	}
	defer kept.Disconnect()
	if spec.Env = f.shell.env; spec.Dir != "" {
		spec.Dir = absolute(spec.Dir)
	}
	job, err := kept.StartJob(ctx, spec)
	if errors.Is(err, wire.ErrMayHaveStarted) {
		err = fmt.Errorf("%w; limpet jobs list%s shows it if it has", err, sameWhere(cmd))
	}
	if err != nil {
		return err
	}
	return f.print(job)
}

// spec checks the flags, and makes a Spec and an environment of them.
func (f *startFlags) spec(cmd *cobra.Command) (spec jobs.Spec, env []string, err error) {
	filter, err := f.belongs.filter(cmd)
	if err := cmp.Or(err, f.shell.checkPaths(cmd), timed(cmd, "timeout"), matchable(cmd, "watch", f.watch...)); err != nil {
		return spec, nil, err
	}
	for _, name := range []string{"rows", "cols"} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if !f.pty {
			return spec, nil, usagef(cmd, "--%s means nothing without --pty", name)
		}
		if n, _ := cmd.Flags().GetUint(name); n == 0 || n > math.MaxInt16 {
			return spec, nil, usagef(cmd, "--%s %d: wants 1 to %d", name, n, math.MaxInt16)
		}
	}
	if env, err = f.shell.environ(cmd); err != nil {
		return spec, nil, err
	}
	return jobs.Spec{
		Dir: f.shell.dir, Env: append(f.shell.kept(), f.shell.env...), PTY: f.pty, Size: jobs.Size{Rows: uint16(f.rows), Cols: uint16(f.cols)}, Stdin: f.stdin,
		Task: filter.Task, Session: filter.Session, Labels: filter.Labels, Watch: f.watch, Notify: f.notify,
		Lifetime: jobs.Detached, Timeout: f.timeout, OutputLimit: int64(f.outputLimit),
	}, env, nil
}

// scriptOf returns what to run: the argument, the words behind --, or standard input.
func scriptOf(cmd *cobra.Command, args []string) (string, error) {
	script := ""
	switch {
	case len(args) == 1:
		script = args[0]
	case len(args) > 1 && cmd.ArgsLenAtDash() != 0:
		return "", usagef(cmd, "takes one script, got %q too: quote the whole, or write -- before the words of a command", args[1])
	case len(args) > 1:
		script = quoted(args)
	case term.IsTerminal(int(os.Stdin.Fd())):
		return "", usagef(cmd, "no script: give it as an argument, or on standard input")
	default:
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			return "", fmt.Errorf("reading the script from standard input: %w", err)
		}
		script = string(b)
	}
	err := (command.Request{Script: script}).Validate()
	switch {
	case errors.Is(err, command.ErrEmptyScript) && len(args) == 0:
		return "", usagef(cmd, "there is nothing on standard input: send a script, as in 'limpet jobs start <script.sh', or give it as an argument")
	case errors.Is(err, command.ErrEmptyScript):
		return "", usagef(cmd, "the script is empty; is a variable empty?")
	case err != nil:
		return "", usagef(cmd, "the script: %w", err)
	}
	return script, nil
}

// noCommandButFile reports whether a word is the name of a file that a shell in dir cannot
// execute by it.
func noCommandButFile(word, dir string) bool {
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false
	}
	if strings.Contains(word, "/") {
		return unix.Access(path, unix.X_OK) != nil
	}
	_, err := exec.LookPath(word)
	return err != nil
}
