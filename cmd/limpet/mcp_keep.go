package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/mask"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// With --keep the sessions belong to a keeper, and limpet copies messages between the host and the keeper:
//
//	host <- stdio -> limpet mcp --keep <- socket -> keeper, which has an mcpserver.Server for each client
//
// The session that the keeper is named after is what the agent's calls mean by "default".

// agentOptions are those of the server that a keeper has for a client.
type agentOptions struct {
	Timeout     time.Duration `json:"timeout_ns"`
	MaxTimeout  time.Duration `json:"max_timeout_ns"`
	IdleTimeout time.Duration `json:"idle_timeout_ns"`
	OnTimeout   string        `json:"on_timeout"`
	Tools       []string      `json:"tools,omitempty"`
	Structured  bool          `json:"structured,omitempty"`
	Mask        bool          `json:"mask,omitempty"`
}

func (o agentOptions) server(name string) *mcpserver.Options {
	opts := &mcpserver.Options{
		Timeout: o.Timeout, MaxTimeout: o.MaxTimeout, IdleTimeout: o.IdleTimeout, OnTimeout: o.OnTimeout, Tools: o.Tools, Structured: o.Structured,
		Version: version(), Explain: explainToAgent, Session: name, RunOn: true,
	}
	if o.Mask {
		opts.Mask = mask.Text
	}
	return opts
}

// runKept passes on what a client and the keeper of a session say, until one of the two has nothing more to say.
func (f *mcpFlags) runKept(cmd *cobra.Command) error {
	for _, name := range []string{"http", "token-file", "state", "session-idle", "runtime-dir"} {
		if cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s cannot go with --keep", name)
		}
	}
	own := f.keep == sessions.Here
	name, err := sessionNamed(cmd, f.keep)
	if err != nil {
		return err
	}
	if own { // It is not the one that people have by -s . : an agent comes into that by its name alone.
		name = "agent-" + strings.TrimPrefix(name, "at-")
	}
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	args := f.bornArgs(cmd)
	spec := &keeper.Spec{Dir: opts.sessions.Shell.Dir, Env: opts.sessions.Shell.Env, Args: args}
	f.audit.spec(spec)
	door, err := onStdio()
	if err != nil {
		return err
	}
	keepToItself()
	outliveStderr()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	console := newConsole()
	r, err := program(console.notef).Registry()
	if err == nil {
		var agent wire.Agent
		var free func()
		if agent, free, err = attach(ctx, r, name, own, spec, agentOptions{
			f.timeout, f.maxTimeout, f.shell.idleTimeout, f.onTimeout, f.tools, f.structured, f.mask,
		}, console); err == nil {
			hide() // What the agent runs shall not reach the protocol.
			err = relay(ctx, door, agent)
			free()
		}
	}
	err = errors.Join(err, door.close())
	if sig := gotSignal(ctx); sig != nil {
		return exit(codeOf(sig))
	}
	return err
}

// mostAlike is how many agents a project can have at a time that are kept.
const mostAlike = 9

// attach finds a session that is kept, or makes it, and attaches an agent to it. If own is set it is the first of NAME,
// NAME-2 and so on that no other agent uses. Call free when it is over.
func attach(ctx context.Context, r *keeper.Registry, name string, own bool, spec *keeper.Spec, opts agentOptions, console *console) (wire.Agent, func(), error) {
	for i := 1; ; i++ {
		one := name
		if i > 1 {
			one = fmt.Sprintf("%s-%d", name, i)
		}
		kept, err := r.Session(ctx, one, spec)
		if err != nil {
			return nil, nil, err
		}
		if had := kept.Record.Spec.Args; !kept.Made && !slices.Equal(had, spec.Args) && (len(had) > 0 || len(spec.Args) > 1) {
			kept.Disconnect()
			return nil, nil, fmt.Errorf("session %q is there, and was made with other flags (%s): limpet session close %s ends it, or --keep=NAME names another one",
				one, cmp.Or(strings.Join(slices.DeleteFunc(slices.Clone(had), func(a string) bool { return a == keptArg }), " "), "none"), one)
		}
		if had := kept.Record.Spec; !kept.Made && (had.Audit != spec.Audit || had.AuditRequired != spec.AuditRequired) {
			kept.Disconnect()
			return nil, nil, fmt.Errorf("session %q is there, and %w: limpet session close %s ends it, or --keep=NAME names another one", one, errAudit, one)
		}
		agent, err := kept.Agent(ctx, own, opts)
		if err == nil {
			return agent, kept.Disconnect, nil
		}
		kept.Disconnect()
		if !own || !errors.Is(err, wire.ErrAttached) || i == mostAlike {
			return nil, nil, err
		}
	}
}

// keptArg is among the arguments of each session that an agent has made.
const keptArg = "--keep"

// bornArgs are the flags that say how sessions are made, for the keeper. Values of the environment are not among
// them: they may be secret, and the keeper has them in its own.
func (f *mcpFlags) bornArgs(cmd *cobra.Command) []string {
	args := []string{keptArg}
	given := cmd.Flags().Changed
	add := func(name, value string) { args = append(args, "--"+name+"="+value) }
	if given("bash") {
		add("bash", (&runFlags{shell: f.shell}).bash())
	}
	if f.shell.login {
		add("login", "true")
	}
	for _, file := range f.shell.initFiles {
		add("init", absolute(file))
	}
	if given("dir") {
		add("dir", absolute(f.shell.dir))
	}
	if f.shell.cleanEnv {
		add("clean-env", "true")
	}
	var passed []string
	for _, entry := range f.shell.env {
		name, _, _ := strings.Cut(entry, "=")
		passed = append(passed, name)
	}
	passed = append(passed, f.shell.keepEnv...)
	slices.Sort(passed)
	for _, pattern := range slices.Compact(passed) {
		add("keep-env", pattern)
	}
	for _, name := range mcpApproveNames {
		if given(name) {
			add(name, cmd.Flags().Lookup(name).Value.String())
		}
	}
	if given("max-sessions") {
		add("max-sessions", cmd.Flags().Lookup("max-sessions").Value.String())
	}
	s := f.shell.sandbox
	if s.preset == "" && len(s.allow) == 0 {
		return args
	}
	add("workspace", absolute(cmp.Or(s.workspace, f.shell.dir, ".")))
	for _, name := range []string{"sandbox", "run-as", "git"} {
		if given(name) {
			add(name, cmd.Flags().Lookup(name).Value.String())
		}
	}
	for _, path := range s.ro {
		add("ro", absolute(path))
	}
	for _, path := range s.rw {
		add("rw", absolute(path))
	}
	for _, host := range s.allow {
		add("allow", host)
	}
	return args
}

// relay copies between a host and a keeper. When the host closes its end, relay closes only that direction: what the
// host has asked before is still answered.
func relay(ctx context.Context, client *stdio, agent wire.Agent) error {
	defer agent.Close() // All was read by then, or is not wanted.
	defer context.AfterFunc(ctx, func() { _ = agent.Close() })()
	left := make(chan struct{})
	go func() { // It ends with limpet, at the latest: nothing frees a read.
		_, _ = io.Copy(agent, client.in) // A broken connection also ends the copy the other way, which reports it.
		close(left)
		_ = agent.CloseWrite() // As above.
	}()
	_, err := io.Copy(client.out, agent)
	select {
	case <-left:
		return nil
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("passing on what the session's keeper says: %w", err)
	}
	return errAgentOver
}

var errAgentOver = errors.New("the session was ended, or upgraded: start this again")

// agentSessions are the options of sessions that an agent has made, by a keeper that was told how.
func agentSessions(spec keeper.Spec, questions string) (*session.Options, error) {
	flags := mcpFlags{quiet: true}
	flags.approve.dir = func() (string, error) { return questions, nil }
	cmd := &cobra.Command{Use: "mcp"}
	flags.add(cmd)
	flags.audit = auditFlags{spec.Audit, spec.AuditRequired}
	// The directory is the Spec's, and may be gone by now.
	args := slices.DeleteFunc(slices.Clone(spec.Args), func(a string) bool { return strings.HasPrefix(a, "--dir=") })
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	opts, err := flags.options(cmd)
	if err != nil {
		return nil, err
	}
	s := opts.sessions
	s.Shell.Dir, s.Shell.Env = spec.Dir, os.Environ()
	return &s, nil
}

// serveAgent runs in the keeper, and serves one agent until its connection ends. The agent is told of each session
// that was there before it came.
func serveAgent(ctx context.Context, all *session.Registry, name string, options json.RawMessage, conn net.Conn) {
	var o agentOptions
	if err := json.Unmarshal(options, &o); err != nil {
		return // It is closed, which says enough: no limpet sends such.
	}
	server, err := mcpserver.New(all, o.server(name))
	if err != nil {
		return // As above.
	}
	defer server.Close() // It cannot fail.
	remind(all)
	_ = server.ServeStdio(ctx, conn, conn) // An error means that the client is gone: there is nobody to report it to.
}

// remind queues a notice in each session that was used before: that it is an old one, and what runs in it.
func remind(all *session.Registry) {
	for _, info := range all.List() {
		if info.Commands == 0 && info.Jobs == 0 && info.Terminals == 0 {
			continue
		}
		s, err := all.Get(info.Name)
		if err != nil {
			continue // It was closed just now.
		}
		text := fmt.Sprintf("this session is from before the host was started, as it was left: in %s, last used %v ago", info.Dir, time.Since(info.LastUsed).Round(time.Second))
		if info.Running != "" {
			text += "; it still runs a command of then"
		}
		s.Notify(text + left(all, info))
	}
}

// left names the jobs and the terminals of a session that run.
func left(all *session.Registry, info session.Info) (text string) {
	var ids []string
	if list, err := all.Jobs(); err == nil && info.Jobs > 0 {
		running, _ := list.List(jobs.Filter{Session: info.Name, States: unfinished}) // Fewer are better than none.
		for _, job := range running {
			ids = append(ids, job.ID)
		}
	}
	if list, err := all.Terminals(); err == nil && info.Terminals > 0 {
		infos, _ := list.List() // As above.
		for _, one := range infos {
			if one.Session == info.Name && !one.State.Ended() {
				ids = append(ids, one.ID)
			}
		}
	}
	if len(ids) > 0 {
		text = "; there run " + strings.Join(ids, ", ")
	}
	return text
}
