package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/hosts"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// program is what limpet is for the sessions that outlive it.
func program(note func(format string, args ...any)) sessions.Program {
	return sessions.Program{
		Version: version(), Until: untilSignal, Note: note, Ended: endedBySignal,
		Keeper: keeper.Program{Sessions: agentSessions, Record: keptRecord, Agent: serveAgent},
	}
}

func sessionCommand() *cobra.Command {
	return sessions.Command(program(newConsole().notef), helpCommand(), noCommand)
}

func watchCommand() *cobra.Command {
	return sessions.WatchCommand(program(newConsole().notef))
}

func hostsCommand() *cobra.Command {
	return hosts.Command(program(newConsole().notef), helpCommand(), noCommand)
}

// keptFlags are those of limpet run for a session that is kept.
type keptFlags struct {
	command  string // run or repl
	name     string
	existing bool
	noWait   bool
	id       string
	on       sessions.On
	audit    auditFlags
}

func (f *keptFlags) add(cmd *cobra.Command) {
	f.addName(cmd)
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "with --session, fail if another command runs there, with exit code 75")
	cmd.Flags().StringVar(&f.id, "id", "", "with --session, run the one script once, however often it is asked for with this `ID`; see limpet help session")
}

// addName adds those that say which session is meant.
func (f *keptFlags) addName(cmd *cobra.Command) {
	f.command = cmd.Name()
	cmd.Flags().StringVarP(&f.name, "session", "s", "", "run in the session `NAME`, which stays when limpet ends, and is made if there is none; . is that of this project")
	f.on.Add(cmd, "run on another machine, which is reached by `TARGET`: ssh://HOST, docker://CONTAINER, podman://CONTAINER, kube://NAMESPACE/POD, unix:///PATH, exec:ARGV")
	cmd.Flags().BoolVar(&f.existing, "existing", false, "with --session, refuse to make one")
	f.audit.add(cmd)
}

// caller returns what others read who wait behind a script of this limpet: the subcommand, the process and the terminal. With --on the
// terminal is left out: the other machine learns the process ID and nothing else of this one.
func (f *keptFlags) caller() string {
	text := fmt.Sprintf("limpet %s, process %d", f.command, os.Getpid())
	if f.isElsewhere() {
		return text + " by --on"
	}
	if tty, err := os.Readlink("/proc/self/fd/0"); err == nil && term.IsTerminal(int(os.Stdin.Fd())) {
		text += " on " + strings.TrimPrefix(tty, "/dev/")
	}
	return text
}

// asked reports whether a session that is kept is to be used, with flags that go with it.
func (f *keptFlags) asked(cmd *cobra.Command) (bool, error) {
	switch on := cmd.Flags().Lookup("on"); {
	case cmd.Flags().Changed("session"):
	case on != nil && on.Changed:
		for _, name := range []string{"existing", "id"} {
			if cmd.Flags().Changed(name) {
				return false, usagef(cmd, "--%s means nothing without --session", name)
			}
		}
		return true, refuseIn(cmd, "--on", append(auditNames, ofOwnShell...)...)
	default:
		for _, name := range []string{"existing", "no-wait", "id"} {
			if cmd.Flags().Changed(name) {
				return false, usagef(cmd, "--%s means nothing without --session", name)
			}
		}
		return false, f.audit.check(cmd)
	}
	if err := f.audit.check(cmd); err != nil {
		return false, err
	}
	var err error
	if f.name, err = sessionNamed(cmd, f.name); err != nil {
		return false, err
	}
	if cmd.Flags().Changed("id") && !command.ValidID(f.id) {
		return false, usagef(cmd, "--id %q: %w", f.id, command.ErrID)
	}
	if f.isElsewhere() {
		if err := refuseIn(cmd, "--on", auditNames...); err != nil {
			return false, err
		}
	}
	return true, refuseIn(cmd, "--session", ofOwnShell...)
}

// ofOwnShell are the flags of a shell that ends with limpet.
var ofOwnShell = []string{"runtime-dir", "start-timeout", "output-limit", "sandbox", "workspace", "run-as", "git", "ro", "rw", "allow", "keep-env", "clean-env"}

// sessionNamed is the name that is meant by what --session says.
func sessionNamed(cmd *cobra.Command, said string) (string, error) {
	if said == "" {
		return "", usagef(cmd, `--session "": wants a name; is a variable empty?`)
	}
	dir, err := os.Getwd()
	if err != nil && said == sessions.Here {
		return "", fmt.Errorf("finding the project of this directory: %w", err)
	}
	name := sessions.NameOf(said, dir)
	if !session.ValidName(name) {
		return "", usagef(cmd, "--session %q: %w", name, session.ErrName)
	}
	return name, nil
}

// refuseIn refuses flags that cannot go with another one.
func refuseIn(cmd *cobra.Command, with string, names ...string) error {
	var wrong []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			wrong = append(wrong, "--"+name)
		}
	}
	if len(wrong) > 0 {
		return usagef(cmd, "%s cannot go with %s", strings.Join(wrong, ", "), with)
	}
	return nil
}

// born are the flags that say how a session is made.
var born = append([]string{"bash", "login", "init"}, auditNames...)

// keptShell is a session that is kept, as a runner uses it.
type keptShell struct {
	*keeper.Kept
	place   keeper.Place
	host    *host.Host // that of another machine; else nil
	flags   *shellFlags
	enter   string // where scripts run; empty: where the session is
	dir     string
	caller  string
	noWait  bool
	id      string // of the next script, and of no other
	mark    string // of the look that the next script relies on, and no other
	console *console
	asks    *askpass.Server // nil: programs are left to ask as they like

	flagOn   string      // --on as it was given, with a blank before it; empty for a session of this machine
	unopened atomic.Bool // the first script is to open the session, and has not yet
	existing bool        // then it does not make one
	stays    bool        // it has a name of its own, and does not end with limpet
}

func (k *keptShell) Do(ctx context.Context, req command.Request) (command.Result, error) {
	req.Timeout, req.IdleTimeout, req.Env = k.flags.timeout, k.flags.idleTimeout, k.flags.env
	req.UpdateEnv = k.asks.Env(k.place.CallerEnv())
	mark := k.mark
	req.ID, k.id, k.mark = k.id, "", ""
	req.Caller = k.caller
	req.Dir = k.enter
	if k.noWait {
		req.TurnTimeout = atOnce
	}
	told := k.tellsWait(ctx, req)
	res, err := k.DoAt(ctx, mark, req)
	told()
	if err != nil && !k.stays {
		err = nameless(err)
	}
	if errors.Is(err, session.ErrStateChanged) {
		k.id = req.ID // It may be asked for again.
	}
	if err != nil && k.unopened.Load() {
		if k.existing && !errors.Is(err, wire.ErrMayHaveRun) {
			err = explainExisting(err)
		}
		return res, &unopenedError{err}
	}
	if res.Dir != "" {
		k.dir = res.Dir
	}
	if ended, ok := errors.AsType[*wire.EndedError](err); ok {
		res.ExitCode = ended.Code
	}
	if isUnstarted(err) && k.stays {
		err = k.unstarted(ctx, err)
	}
	if errors.Is(err, shell.ErrBusy) {
		err = fmt.Errorf("nothing ran: session %q is busy with: %s%w", k.Name(), k.running(ctx), silent{err})
	}
	return res, err
}

// namelessError is an error about a session that ends with limpet. Its name is not the user's: nobody opens it again by that.
type namelessError struct {
	error
	text string
}

func (e *namelessError) Error() string { return e.text }
func (e *namelessError) Unwrap() error { return e.error }

// nameless is an error without the advice to open the session again.
func nameless(err error) error {
	text := strings.NewReplacer("closed: open it again", "closed", "closed; open it again", "closed").Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return &namelessError{err, text}
}

// isUnstarted reports whether a shell could not start.
func isUnstarted(err error) bool {
	_, start := errors.AsType[*transport.StartError](err)
	_, dir := errors.AsType[*transport.DirError](err)
	_, bash := errors.AsType[*transport.NoBashError](err)
	return start || dir || bash
}

// unstarted is the error of a command whose shell could not start, with what to do about the session, which stays: others may use it, and
// how its shell is to be made is only asked when it is.
func (k *keptShell) unstarted(ctx context.Context, err error) error {
	info, e := k.Info(ctx)
	if e != nil || info.State != session.Unused {
		return err
	}
	return fmt.Errorf("%w; session %q stays: limpet session close%s %s ends it, to make it anew", err, k.Name(), k.flagOn, k.Name())
}

// atOnce is how long a command waits for its turn that is not to wait: another caller may be about
// to be through.
const atOnce = 10 * time.Millisecond

// silent is an error that says nothing, but is what it is.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// running is what the session runs, in short.
func (k *keptShell) running(ctx context.Context) string {
	info, err := k.Info(ctx)
	if err != nil || info.Running == "" {
		return "a command that is over by now"
	}
	return sessions.Held(info)
}

// waitsBehind reports whether a session runs something else than this request. The same script counts as this request if the keeper names no
// holder, as an older one does, and if the request has an ID: then another process may have sent it first.
func (k *keptShell) waitsBehind(info session.Info, req command.Request) bool {
	if info.Running == "" {
		return false
	}
	if info.Running != string([]rune(req.Script)) { // What is no UTF-8 has come over as U+FFFD.
		return true
	}
	return req.ID == "" && info.Holder != "" && info.Holder != k.caller
}

// tellsWait says it if a script waits for its turn for long. Call stop.
func (k *keptShell) tellsWait(ctx context.Context, req command.Request) (stop func()) {
	const long = 2 * time.Second
	timer := time.AfterFunc(long, func() {
		if info, err := k.Info(ctx); err == nil && k.waitsBehind(info, req) {
			k.console.notef("waits for its turn in session %q, behind: %s", k.Name(), sessions.Held(info))
		}
	})
	return func() { timer.Stop() }
}

func (k *keptShell) Dir() string { return k.dir }

// found returns the session of a name, which is made if there is none, in this directory, and tells what the user
// should know of it.
func found(ctx context.Context, r keeper.Place, name string, console *console) (*keeper.Kept, session.Info, error) {
	if _, here := r.(*keeper.Registry); !here {
		return foundAs(ctx, r, name, &keeper.Spec{}, console)
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return foundAs(ctx, r, name, &keeper.Spec{Dir: dir, Env: shell.DefaultEnv()}, console)
}

// foundAs is found, but that the session is made as a Spec says; nil refuses to.
func foundAs(ctx context.Context, r keeper.Place, name string, spec *keeper.Spec, console *console) (*keeper.Kept, session.Info, error) {
	kept, err := r.Session(ctx, name, spec)
	if err != nil {
		return nil, session.Info{}, err
	}
	info, err := kept.InfoThen(ctx)
	if err != nil {
		kept.Disconnect()
		return nil, info, err
	}
	if kept.Made {
		tellNew(kept, info.Dir, console)
	}
	return kept, info, nil
}

// tellNew tells the user that a session is new. The directory is empty if it is not known.
func tellNew(k *keeper.Kept, dir string, console *console) {
	text := fmt.Sprintf("session %q is new", k.Name())
	if dir != "" {
		text += ", in " + dir
	}
	if k.Was != nil {
		text += "; the last one " + k.Was.String()
	}
	console.notef("%s", text)
}

// explainExisting is the error of a session that is not made as --existing is given, with what to do about it.
func explainExisting(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("%w; leave --existing out to make it", err)
	}
	return err
}

// open returns the session, and tells what the user should know of it. Disconnect it.
// Mode is that of --approve.
func (f *keptFlags) open(ctx context.Context, cmd *cobra.Command, flags *shellFlags, console *console, mode string) (*keptShell, error) {
	if f.isElsewhere() {
		return f.openElsewhere(ctx, cmd, flags, console)
	}
	r, err := program(console.notef).Registry()
	if err != nil {
		return nil, err
	}
	spec := &keeper.Spec{Bash: flags.bash, Login: flags.login, Env: shell.DefaultEnv()}
	f.audit.spec(spec)
	if strings.Contains(spec.Bash, "/") {
		spec.Bash = absolute(spec.Bash)
	}
	for _, file := range flags.initFiles {
		spec.InitFiles = append(spec.InitFiles, absolute(file))
	}
	if spec.Dir, err = os.Getwd(); err != nil {
		spec.Dir = ""
	}
	sh := &keptShell{flags: flags, caller: f.caller(), noWait: f.noWait, id: f.id, console: console, place: r, stays: f.name != ""}
	if flags.dir != "" {
		sh.enter = absolute(flags.dir)
	}
	if err := f.find(ctx, cmd, sh, spec); err != nil {
		return sh, err
	}
	if err := sh.askPasswords(flags.passwords(console, mode)); err != nil {
		sh.Disconnect()
		return sh, err
	}
	return sh, nil
}

// find has a shell be that of the session.
func (f *keptFlags) find(ctx context.Context, cmd *cobra.Command, sh *keptShell, spec *keeper.Spec) error {
	if f.existing {
		spec = nil
	}
	kept, info, err := foundAs(ctx, sh.place, f.name, spec, sh.console)
	if err != nil {
		if f.existing {
			err = explainExisting(err)
		}
		return err
	}
	if !kept.Made {
		for _, name := range born {
			if cmd.Flags().Changed(name) {
				kept.Disconnect()
				return usagef(cmd, "--%s says how a session is made, and session %q is there; limpet session close%s %s ends it", name, f.name, sh.flagOn, f.name)
			}
		}
	}
	sh.Kept, sh.dir = kept, info.Dir
	return nil
}
