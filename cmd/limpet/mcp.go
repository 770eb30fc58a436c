package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/mask"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

type mcpFlags struct {
	shell               shellFlags // of which there are those that mcpShellNames names, and the sandbox
	http, tokenFile     string
	timeout, maxTimeout time.Duration
	maxSessions         int
	sessionIdle         time.Duration
	state, onTimeout    string
	tools               []string
	structured          bool
	mask                bool
	keep                string
	on                  sessions.On
	approve             mcpApprove
	audit               auditFlags
	quiet               bool // what there is to be warned of was said before
}

// mcpShellNames are the flags of shellFlags that sessions have.
var mcpShellNames = []string{"dir", "env", "keep-env", "clean-env", "login", "init", "bash", "runtime-dir"}

// How much of each stream is kept for read_output: in memory for the last results, and in
// files, of the last streams of each session that were longer. Both take memory where the
// runtime directory is on a tmpfs.
const (
	mcpOutputLimit = 128 << 10
	mcpSpoolLimit  = 4 << 20
)

// httpSessionIdle is the default of --session-idle with --http.
const httpSessionIdle = time.Hour

func mcpCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Let an agent run commands, by the Model Context Protocol",
		Long: `Mcp serves the Model Context Protocol on standard input and output, for an agent host
(an editor, a command-line agent, a program of yours) that starts it. The agent gets
named sessions, each a bash that stays where it was left, with background jobs and
terminals. When standard input ends, or limpet gets a signal, all of that is ended.

With --http it serves any number of clients instead, at http://ADDR/mcp, until it gets a
signal, and sessions stay when clients go. Each request needs a token, as in
"Authorization: Bearer TOKEN". It is that of LIMPET_MCP_TOKEN, or else of a file, which
is made if it is not there; whoever has it can run commands as you.

What an agent runs can do whatever you can, if there is no --sandbox. The shells get the
environment that limpet has, without what looks like a secret; in a sandbox the usual
variables, with those of --env and --keep-env.

With --keep the sessions stay when the host ends, with their jobs and terminals: started again in
the same project it finds its shell as it was left, and is told so. See limpet help session;
limpet run -s NAME is the same shell, for you. A command that runs when the host ends goes on as
a job. Two hosts at a time in one project have a session each.

With --approve ask, what is not known to change nothing waits for a person, who answers by limpet approvals answer
at a terminal; see limpet help approvals. With --elicit the host is asked to show the question, too, and can approve
what fits into its form.

With --on TARGET all of that is on another machine, where limpet is copied if it is not there; all other flags, and
their paths, are about that machine. A connection that breaks is dialled again, and the agent goes on where it was.

Some hosts give a call up after a minute. Those that ask for no progress are answered within
50 s, and what takes longer runs on as a job. For others --timeout 50s --on-timeout
background does the same. Limpet mcp config HOST prints what a host needs, and limpet mcp
doctor says what is wrong.`,
		Example: `  {"mcpServers": {"limpet": {"command": "limpet", "args": ["mcp"]}}}
  limpet mcp --sandbox workspace-write --workspace ~/src/project
  limpet mcp --http 7333 --state ~/.local/state/limpet
  limpet mcp --keep --sandbox workspace-write
  limpet mcp --keep --on ssh://build-box --dir src/project
  limpet mcp --tools shell,jobs --timeout 10m`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.add(cmd)
	cmd.AddCommand(mcpConfigCommand(), mcpDoctorCommand())
	return cmd
}

func (f *mcpFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	shared := &cobra.Command{}
	f.shell.add(shared)
	flags.SortFlags = false
	share := func(names ...string) {
		for _, name := range names {
			flags.AddFlag(shared.Flags().Lookup(name))
		}
	}
	flags.StringVar(&f.http, "http", "", "serve HTTP at `ADDR`, a PORT or HOST:PORT, instead of standard input and output (default host: 127.0.0.1; port 0 picks one)")
	flags.StringVar(&f.tokenFile, "token-file", "", "with --http, the `FILE` of the token (default: limpet/mcp-token in XDG_STATE_HOME, or in ~/.local/state)")
	flags.StringVar(&f.keep, "keep", "", "keep the sessions when limpet ends, in the session `NAME` of limpet run -s; without =NAME, one of this project")
	flags.Lookup("keep").NoOptDefVal = sessions.Here
	f.on.Add(cmd, "run it on another machine, which is reached by `TARGET`; see limpet help run")
	flags.StringSliceVar(&f.tools, "tools", nil, "offer these `GROUPS` of tools alone: "+strings.Join(mcpserver.Groups, ","))
	flags.BoolVar(&f.structured, "structured", false, "answer with data besides text, for programs, and keep stderr apart in it: many hosts then show a model no text and no picture")
	flags.BoolVar(&f.mask, "mask-secrets", false, "leave out of what the agent reads what looks like a secret: tokens of known forms, private keys, values of variables with names like TOKEN")
	durationVar(flags, &f.timeout, "timeout", mcpserver.DefaultTimeout, "stop a command that runs longer than `TIME`, if the call does not say otherwise")
	durationVar(flags, &f.maxTimeout, "max-timeout", mcpserver.DefaultMaxTimeout, "let no call ask for a longer `TIME` than this")
	flags.StringVar(&f.onTimeout, "on-timeout", "stop", "what a timeout does, if the call does not say otherwise: stop, or background, where the command runs on as a job")
	f.approve.add(cmd)
	f.audit.add(cmd)
	share("idle-timeout")
	share(mcpShellNames...)
	share(sandboxNames...)
	flags.IntVar(&f.maxSessions, "max-sessions", session.DefaultMaxSessions, "have at most so many sessions, `N`")
	durationVar(flags, &f.sessionIdle, "session-idle", 0, "close a session that nobody has used for `TIME`, and in which nothing runs; 0: never (default: never, with --http 1h)")
	flags.StringVar(&f.state, "state", "", "keep jobs and terminals in `DIR`, for limpet jobs --state DIR/jobs and limpet term --state DIR/terminals (default: a directory that goes with limpet)")
}

// doorway is how clients come in.
type doorway interface {
	// serve serves until ctx ends, or the one client that there is has left. Neither is an
	// error. Calls are over then.
	serve(ctx context.Context, server *mcpserver.Server, console *console) error

	// close is for a doorway at which nobody is served.
	close() error
}

// run serves until there is nobody to serve.
func (f *mcpFlags) run(cmd *cobra.Command) error {
	secret := takeToken()
	if cmd.Flags().Changed("on") {
		return f.runElsewhere(cmd)
	}
	if cmd.Flags().Changed("keep") {
		return f.runKept(cmd)
	}
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	var door doorway
	if f.overHTTP(cmd) {
		door, err = f.listen(cmd, secret)
	} else {
		door, err = onStdio()
	}
	if err != nil {
		return err
	}
	keepToItself()
	hide()
	outliveStderr()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	console := newConsole() // Standard output may be another one since.
	err = serve(ctx, door, opts, console)
	if sig := gotSignal(ctx); err == nil && sig != nil {
		return exit(codeOf(sig))
	}
	return err
}

// serve has the sessions from their start to their end.
func serve(ctx context.Context, door doorway, opts mcpOptions, console *console) error {
	opts.sessions.Logger, opts.server.Logger = console.logger(), console.logger()
	// A signal stops all that runs and waits at once. That comes before the doorway hears of
	// it, so that the answers say why.
	interrupts := interrupt.New()
	opts.sessions.Shell.Interrupts = interrupts
	open, shut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer shut(nil)
	defer context.AfterFunc(ctx, func() {
		interrupts.Stop(fmt.Errorf("limpet mcp ends: %w", context.Cause(ctx)))
		shut(context.Cause(ctx))
	})()
	sessions, err := session.New(&opts.sessions)
	if err != nil {
		return errors.Join(err, door.close())
	}
	if opts.sessions.StateDir != "" {
		_, err = sessions.Jobs() // Else it is found out by the first job.
	}
	var server *mcpserver.Server
	if err == nil {
		server, err = mcpserver.New(sessions, &opts.server)
	}
	if err != nil {
		return errors.Join(err, sessions.Close(), door.close())
	}
	err = door.serve(open, server, console)
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }() // A client that does not read may hold it up.
	return errors.Join(err, sessions.Close(), <-closed)
}

func (f *mcpFlags) overHTTP(cmd *cobra.Command) bool { return cmd.Flags().Changed("http") }

type mcpOptions struct {
	sessions session.Options
	server   mcpserver.Options
}

// options checks the flags, and makes options of them.
func (f *mcpFlags) options(cmd *cobra.Command) (mcpOptions, error) {
	none := func(err error) (mcpOptions, error) { return mcpOptions{}, err }
	env, err := f.shell.environ(cmd)
	if err := cmp.Or(err, f.checkTimes(cmd), f.shell.checkPaths(cmd), f.checkState(cmd), f.checkTools(cmd)); err != nil {
		return none(err)
	}
	switch {
	case f.maxSessions < 1:
		return none(usagef(cmd, "--max-sessions %d: wants a number above zero", f.maxSessions))
	case cmd.Flags().Changed("token-file") && !f.overHTTP(cmd):
		return none(usagef(cmd, "--token-file means nothing without --http"))
	case f.onTimeout != "stop" && f.onTimeout != "background":
		return none(usagef(cmd, "--on-timeout %q: there are stop and background", f.onTimeout))
	case cmd.Flags().Changed("token-file") && f.tokenFile == "":
		return none(emptyPath(cmd, "token-file"))
	}
	policy, err := f.policy(cmd)
	if err != nil {
		return none(err)
	}
	if f.approve.record, err = f.audit.open(cmd); err != nil {
		return none(err)
	}
	approve, err := f.approve.sessions(cmd, &f.shell, env)
	if err != nil {
		return none(err)
	}
	dir := f.shell.dir
	if dir != "" || policy == nil { // Else it is the workspace.
		dir = absolute(cmp.Or(dir, "."))
	}
	idle := f.sessionIdle
	if f.overHTTP(cmd) && !cmd.Flags().Changed("session-idle") {
		idle = httpSessionIdle
	}
	var leaveOut func([]byte) ([]byte, []string)
	if f.mask {
		leaveOut = mask.Text
	}
	return mcpOptions{
		sessions: session.Options{
			Shell: &shell.Options{
				Bash: f.shell.bash, Dir: dir, Env: env, Login: f.shell.login, InitFiles: f.shell.initFiles,
				RuntimeDir: f.shell.runtimeDir, StartTimeout: f.shell.startTimeout,
				OutputLimit: mcpOutputLimit, SpoolLimit: mcpSpoolLimit,
				Aliases:     true, // What an agent defines by alias it means to use.
				AskPassword: f.approve.passwords(),
			},
			Policy: policy, StateDir: f.state, MaxSessions: f.maxSessions, IdleTimeout: idle, Approve: approve,
			Record: f.approve.record.records(), MustRecord: f.audit.required,
		},
		server: mcpserver.Options{
			Timeout: f.timeout, MaxTimeout: f.maxTimeout, IdleTimeout: f.shell.idleTimeout, OnTimeout: f.onTimeout,
			Tools: f.tools, Structured: f.structured, Version: version(), Explain: explainToAgent, Mask: leaveOut,
		},
	}, nil
}

func (f *mcpFlags) checkTimes(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if err := timed(cmd, "timeout", "max-timeout", "idle-timeout"); err != nil {
		return err
	}
	if f.sessionIdle < 0 {
		return usagef(cmd, "--session-idle %v: wants a time, as in 30m, or 0 for never", f.sessionIdle)
	}
	switch {
	case f.timeout <= f.maxTimeout:
	case given("timeout") && given("max-timeout"):
		return usagef(cmd, "--timeout %v is longer than --max-timeout %v", f.timeout, f.maxTimeout)
	case given("timeout"):
		f.maxTimeout = f.timeout
	default:
		f.timeout = f.maxTimeout
	}
	return nil
}

func (f *mcpFlags) checkState(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("state") {
		return nil
	}
	if f.state == "" {
		return emptyPath(cmd, "state")
	}
	// Where there is none, the first job or terminal makes it.
	if err := usable(f.state, true, unix.X_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef(cmd, "--state %q: %w", f.state, err)
	}
	f.state = absolute(f.state)
	return nil
}

func (f *mcpFlags) checkTools(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("tools") {
		return nil
	}
	for _, name := range f.tools {
		if !slices.Contains(mcpserver.Groups, name) {
			return usagef(cmd, "--tools %q: there are %s", name, strings.Join(mcpserver.Groups, ", "))
		}
	}
	if len(f.tools) == 0 {
		return usagef(cmd, `--tools "": wants groups of tools; there are %s`, strings.Join(mcpserver.Groups, ", "))
	}
	return nil
}

// policy is that of all sessions; nil if there is none.
func (f *mcpFlags) policy(cmd *cobra.Command) (*sandbox.Policy, error) {
	policy, asked, err := f.shell.sandbox.policy(cmd, f.shell.dir)
	if err != nil || !asked {
		return nil, err
	}
	policy.Env.Pass = f.shell.asked()
	policy.FS.Workspace = absolute(policy.FS.Workspace)
	if !f.quiet {
		warnOfRoot(policy)
	}
	return &policy, nil
}

// absolute names a file in full: sessions start when limpet may be elsewhere. Where that
// cannot be, as the current directory is gone, it is as it was.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
