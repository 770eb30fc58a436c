package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/exact"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/terminal"
)

type termStartFlags struct {
	where   *termFlags
	shell   shellFlags // of which there are dir, the environment and the sandbox
	approve approveFlag
	line    string
	size    string
	buffer  byteSize
	record  string
	attach  bool
	json    bool
}

func termStartCommand(where *termFlags) *cobra.Command {
	flags := termStartFlags{where: where}
	cmd := &cobra.Command{
		Use:        "start [flags] [--] program [argument...]",
		SuggestFor: []string{"run", "exec", "new", "create", "spawn"},
		Short:      "Start a program on a terminal of its own, and print its id",
		Long: `Start starts a program on a terminal of its own, in the background, and prints the id
of the terminal. The program runs on when limpet has ended, as it does at once, until
it ends by itself or is stopped; a logout of the user may end it, too. What it leaves
running on its terminal ends with it.

It gets the environment that limpet has, without what looks like a secret (--keep-env
passes one on), and TERM=xterm-256color. With --line, bash runs a line instead of a
program. Flags behind the program are the program's.

With --session NAME it starts in that session, which is made if there is none: in the directory
where the session is, with what its shell exports. It ends with the session. With --on TARGET that
is another machine, and so are the paths of --dir and --record.`,
		Example: `  id=$(limpet term start -- psql orders)
  limpet term start --size 120x40 --dir ~/src vim README
  limpet term start --line 'cd src && exec python3 -i' --attach
  limpet term start --sandbox workspace-write --record demo.cast -- bash
  limpet term start -s build -- python3 -i`,
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return flags.run(ctx, cmd, args)
		}),
	}
	flags.add(cmd)
	return cmd
}

func (f *termStartFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	shared := &cobra.Command{}
	f.shell.add(shared)
	flags.SortFlags = false
	flags.SetInterspersed(false)
	share := func(names ...string) {
		for _, name := range names {
			flags.AddFlag(shared.Flags().Lookup(name))
		}
	}
	flags.StringVar(&f.line, "line", "", "run a `LINE` by bash -c, instead of a program")
	share("dir", "env", "keep-env", "clean-env")
	flags.StringVar(&f.size, "size", "", "the `COLUMNSxROWS` of the terminal (default: those of the one that limpet is on, or 80x24)")
	f.buffer = terminal.DefaultBufferLimit
	flags.Var(&f.buffer, "buffer", "keep the last `BYTES` of its output, at least, as in 65536, 64KiB or 2MiB")
	flags.StringVar(&f.record, "record", "", "record all that it prints to a new `FILE`, as asciicast for asciinema")
	share(sandboxNames...)
	f.approve.add(cmd)
	flags.BoolVar(&f.attach, "attach", false, "attach to it, instead of printing its id")
	flags.BoolVar(&f.json, "json", false, "print the terminal as a line of JSON")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return flagError(cmd, err, "flags of the program come behind it, as in limpet term start vim -R README")
	})
}

// sandboxNames are the flags of sandboxFlags.
var sandboxNames = []string{"sandbox", "workspace", "run-as", "git", "ro", "rw", "allow"}

func (f *termStartFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	order, err := f.order(cmd, args)
	if err != nil {
		return err
	}
	if f.attach {
		if err := onTerminalOnly(cmd); err != nil {
			return err
		}
	}
	if err := f.approve.once(ctx, cmd, &f.shell, f.where.session, f.where.console, cmp.Or(f.line, quoted(args))); err != nil {
		return err
	}
	started, err := f.start(ctx, cmd, order)
	switch {
	case errors.Is(err, terminal.ErrNoProgram) && len(args) == 1 && strings.ContainsAny(args[0], " ;|&<>$"):
		return fmt.Errorf("%w; to run it by bash, use --line %s", err, quoted(args))
	case err != nil:
		return err
	case f.attach:
		return (&termAttachFlags{where: f.where, detachKey: defaultDetachKey}).run(ctx, cmd, started.ID)
	case f.json:
		return writeJSON(os.Stdout, started)
	}
	_, err = fmt.Println(started.ID)
	return err
}

// start starts the program: by a host of its own, or in the session that is kept, which is made if there is none.
func (f *termStartFlags) start(ctx context.Context, cmd *cobra.Command, o hostOrder) (terminal.Info, error) {
	if f.where.at == nil {
		return startHost(ctx, o)
	}
	kept, _, err := found(ctx, f.where.at, f.where.session, f.where.console)
	if err != nil {
		return terminal.Info{}, withSignal(ctx, err)
	}
	defer kept.Disconnect()
	spec := terminal.Spec{Argv: o.Argv, Line: string(o.Line), Env: f.shell.env, Size: o.Size, BufferLimit: o.Buffer, Record: string(o.Record)}
	if f.shell.dir != "" {
		spec.Dir = absolute(f.shell.dir)
	}
	info, err := kept.StartTerminal(ctx, spec)
	if errors.Is(err, wire.ErrMayHaveStarted) {
		err = fmt.Errorf("%w; limpet term list%s shows it if it has", err, sameWhere(cmd))
	}
	if err == nil && !terminal.ValidID(info.ID) {
		err = fmt.Errorf("the terminal that was started has no ID, but %q", info.ID)
	}
	return info, err
}

// order checks the flags, and makes of them what the host is told.
func (f *termStartFlags) order(cmd *cobra.Command, args []string) (hostOrder, error) {
	none := func(err error) (hostOrder, error) { return hostOrder{}, err }
	given := cmd.Flags().Changed
	switch {
	case given("line") && len(args) > 0:
		return none(usagef(cmd, "--line is run instead of a program, and there is %q too", args[0]))
	case given("line") && strings.TrimSpace(f.line) == "":
		return none(usagef(cmd, "--line: there is nothing to run; is a variable empty?"))
	case !given("line") && len(args) == 0:
		return none(usagef(cmd, "nothing to run: name a program, as in limpet term start -- bash"))
	case !given("line") && args[0] == "":
		return none(usagef(cmd, "the program is empty; is a variable empty?"))
	case given("record") && f.record == "":
		return none(emptyPath(cmd, "record"))
	}
	if f.where.at != nil {
		if err := refuseIn(cmd, "--session", append([]string{"keep-env", "clean-env"}, sandboxNames...)...); err != nil {
			return none(err)
		}
	}
	if f.where.far != nil && f.record != "" && !filepath.IsAbs(f.record) {
		return none(usagef(cmd, "--record %q: with --on, wants an absolute path, of the other machine; limpet term record writes a file here", f.record))
	}
	_, envErr := f.shell.environ(cmd)
	if err := cmp.Or(f.shell.checkPaths(cmd), envErr, oneOf(cmd, "attach", "json")); err != nil {
		return none(err)
	}
	// What is wrong with it is said here, while it is known which flag said it.
	policy, asked, err := f.shell.sandbox.policy(cmd, f.shell.dir)
	if err != nil {
		return none(err)
	}
	if asked {
		warnOfRoot(policy)
	}
	o := hostOrder{
		Argv: args, Line: exact.String(f.line), Dir: exact.String(f.shell.dir), Own: append(f.shell.kept(), f.shell.env...), Env: []string{},
		Session: f.where.label(), Buffer: int64(f.buffer), Sandbox: sandboxArgs(cmd), Pass: f.shell.asked(),
	}
	if !f.shell.cleanEnv {
		o.Env = environ.Terminal()
	}
	if o.Size, err = f.sized(cmd); err != nil {
		return none(err)
	}
	// The host has the same directory, but errors and records name files in full.
	for _, path := range []struct {
		to   *exact.String
		from string
	}{{&o.State, f.where.dir}, {&o.Record, f.record}} {
		if path.from != "" {
			full, err := filepath.Abs(path.from)
			if err != nil {
				return none(err)
			}
			*path.to = exact.String(full)
		}
	}
	if o.Record != "" && f.where.far == nil {
		if _, err := os.Lstat(string(o.Record)); err == nil {
			return none(usagef(cmd, "--record %q: there is such a file; name one that is to be made, or remove it", f.record))
		}
	}
	return o, nil
}

// sized is the size that is asked for, or that of the caller's terminal.
func (f *termStartFlags) sized(cmd *cobra.Command) (terminal.Size, error) {
	if cmd.Flags().Changed("size") {
		return parseSize(cmd, "--size", f.size)
	}
	for _, file := range []*os.File{os.Stdout, os.Stdin, os.Stderr} {
		if cols, rows, err := term.GetSize(int(file.Fd())); err == nil && cols > 0 && rows > 0 {
			return terminal.Size{Cols: min(cols, terminal.MaxSize.Cols), Rows: min(rows, terminal.MaxSize.Rows)}, nil
		}
	}
	return terminal.DefaultSize, nil
}

// sandboxArgs are the flags of the sandbox as they were given.
func sandboxArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range sandboxNames {
		flag := cmd.Flags().Lookup(name)
		switch list, err := cmd.Flags().GetStringArray(name); {
		case !flag.Changed:
		case err == nil:
			for _, one := range list {
				args = append(args, "--"+name+"="+one)
			}
		default:
			args = append(args, "--"+name+"="+flag.Value.String())
		}
	}
	return args
}

// errNoHost is for a host that ended before it could say why.
var errNoHost = errors.New("limpet, executed again to look after the terminal, did not answer: the system may have killed it")

// withoutMarks is the environment of a host: it belongs to nothing that limpet may run in.
func withoutMarks() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return environ.Mark(name)
	})
}
