package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

const allowDomains = "allow-domains"

// presetInfo is a sandbox that has a name.
type presetInfo struct {
	name, what string
	policy     func(workspace string) sandbox.Policy
}

// presets are the sandboxes that --sandbox names, the usual one first.
var presets = []presetInfo{
	{"workspace-write", "the workspace may be written, but for .git and its like; no network", sandbox.WorkspaceWrite},
	{"read-only", "nothing is written but to a /tmp and a home of its own; no network", sandbox.ReadOnly},
	{"scratch", "as workspace-write, and what is written is thrown away; needs bwrap 0.11", sandbox.Scratch},
	{allowDomains, "as workspace-write, with a proxy to the hosts of --allow", nil},
	{"host-network", "as workspace-write, with the network of this machine, its loopback included", sandbox.HostNetwork},
}

// gitMode is a mode that --git names.
type gitMode struct {
	name string
	mode sandbox.GitMode
}

// gitModes are those of --git, the default first.
var gitModes = []gitMode{{"read-only", sandbox.GitReadOnly}, {"commit", sandbox.GitCommit}, {"write", sandbox.GitWritable}}

func presetNames() string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// sandboxFlags are the flags that say in which sandbox the shell is.
type sandboxFlags struct {
	preset, workspace, runAs, git string
	ro, rw, allow                 []string
}

func (f *sandboxFlags) add(cmd *cobra.Command, preset string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	said := " (default: none)"
	if preset != "" {
		said = ""
	}
	flags.StringVar(&f.preset, "sandbox", preset, "run in a sandbox, by `PRESET`: "+presetNames()+said)
	flags.StringVar(&f.workspace, "workspace", "", "the `DIR` that the sandbox works in (default: --dir, or the current directory)")
	flags.StringVar(&f.runAs, "run-as", "", "as root, be `USER` in the sandbox: a name, or UID:GID (default: root)")
	flags.StringVar(&f.git, "git", gitModes[0].name, "what the sandbox may do to the workspace's .git, by `MODE`: read-only; commit, but for what makes git run programs; or write")
	flags.StringArrayVar(&f.ro, "ro", nil, "show `PATH` in the sandbox too, read-only; repeatable")
	flags.StringArrayVar(&f.rw, "rw", nil, "show `PATH` in the sandbox too, writable; repeatable")
	flags.StringArrayVar(&f.allow, "allow", nil, "let the sandbox reach `HOST`, as in example.com, *.example.com or example.com:8443; it implies --sandbox "+allowDomains+"; repeatable")
}

// policy makes the policy. It reports false where no sandbox is asked for.
func (f *sandboxFlags) policy(cmd *cobra.Command, dir string) (sandbox.Policy, bool, error) {
	preset := f.preset
	if len(f.allow) > 0 && !cmd.Flags().Changed("sandbox") {
		preset = allowDomains
	}
	if preset == "" && cmd.Flags().Changed("sandbox") {
		return sandbox.Policy{}, false, usagef(cmd, `--sandbox "": wants a preset; is a variable empty? There are %s`, presetNames())
	}
	if preset == "" {
		for _, name := range []string{"workspace", "run-as", "git", "ro", "rw"} {
			if cmd.Flags().Changed(name) {
				return sandbox.Policy{}, false, usagef(cmd, "--%s means nothing without --sandbox", name)
			}
		}
		return sandbox.Policy{}, false, nil
	}
	workspace := f.workspace
	if workspace == "" && cmd.Flags().Changed("workspace") {
		return sandbox.Policy{}, false, emptyPath(cmd, "workspace")
	}
	if workspace == "" {
		workspace = dir
	}
	if workspace == "" {
		workspace = "."
	}
	switch {
	case preset == allowDomains && len(f.allow) == 0:
		return sandbox.Policy{}, false, usagef(cmd, "--sandbox %s wants one --allow HOST at least", allowDomains)
	case preset != allowDomains && len(f.allow) > 0:
		return sandbox.Policy{}, false, usagef(cmd, "--allow HOST wants --sandbox %s, which otherwise is as workspace-write; --sandbox is %s", allowDomains, preset)
	}
	build := func(workspace string) sandbox.Policy { return sandbox.AllowDomains(workspace, f.allow...) }
	if preset != allowDomains {
		i := slices.IndexFunc(presets, func(p presetInfo) bool { return p.name == preset })
		if i < 0 {
			return sandbox.Policy{}, false, usagef(cmd, "--sandbox %q: there are %s", preset, presetNames())
		}
		build = presets[i].policy
	}
	policy := build(workspace).With(f.ro, f.rw)
	mode := slices.IndexFunc(gitModes, func(m gitMode) bool { return m.name == f.git })
	if mode < 0 {
		return sandbox.Policy{}, false, usagef(cmd, "--git %q: there are read-only, commit and write", f.git)
	}
	policy.FS.Git = gitModes[mode].mode
	if cmd.Flags().Changed("run-as") {
		var err error
		if policy.RunAs, err = userNamed(f.runAs); err != nil {
			return sandbox.Policy{}, false, usagef(cmd, "--run-as %q: %w", f.runAs, err)
		}
	}
	return policy, true, nil
}

// userNamed finds a user by name, or takes UID:GID as they are.
func userNamed(name string) (*sandbox.Credential, error) {
	uid, gid, ok := strings.Cut(name, ":")
	if !ok {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, errors.New("there is no such user; UID:GID need not have a name")
		}
		uid, gid = u.Uid, u.Gid
	}
	var ids [2]uint32
	for i, text := range []string{uid, gid} {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == math.MaxUint32 { // -1 is nobody (chown(2)).
			return nil, errors.New("wants a name, or numbers as in 1000:1000")
		}
		ids[i] = uint32(n)
	}
	return &sandbox.Credential{UID: ids[0], GID: ids[1]}, nil
}

// confine puts the shell into the sandbox, with the variables of these names. It
// starts in the workspace if it is not told where.
func (f *sandboxFlags) confine(cmd *cobra.Command, opts *shell.Options, pass []string) error {
	policy, asked, err := f.policy(cmd, opts.Dir)
	if err != nil || !asked {
		return err
	}
	policy.Env.Pass = pass
	where, err := sandbox.New(policy)
	if err != nil {
		return err
	}
	warnOfRoot(policy)
	opts.Transport = where
	where.Violations = func(v sandbox.Violation) {
		opts.Logger.Warn("limpet: programs outside would run what it says: look at it first", "what", v.String())
	}
	where.Denied = told(func(host string, port uint16, why string) {
		opts.Logger.Warn("limpet: the sandbox asked for a host that is not allowed", "host", host, "port", port, "why", flagNames.Replace(why))
	})
	if opts.Dir == "" {
		opts.Dir = f.workspace
	}
	return nil
}

const rootInside = "you are root, and root in a sandbox still owns root's files; be somebody else there by --run-as USER"

// warnOfRoot warns of a sandbox that root is in without having said so. --run-as root
// says it.
func warnOfRoot(policy sandbox.Policy) {
	if os.Geteuid() == 0 && policy.RunAs == nil {
		newConsole().notef("warning: %s", rootInside)
	}
}

// told passes on what is denied, each once, and no more than a screenful: a sandbox
// may try as often as it likes.
func told(tell func(host string, port uint16, why string)) func(host string, port uint16, why string) {
	const most = 20
	type attempt struct {
		host string
		port uint16
	}
	var mu sync.Mutex
	known := make(map[attempt]bool)
	return func(host string, port uint16, why string) {
		mu.Lock()
		defer mu.Unlock()
		if try := (attempt{host, port}); !known[try] && len(known) < most {
			known[try] = true
			tell(host, port, why)
		}
	}
}

func sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Tell what a sandbox does, and what this machine can enforce",
		Long:  "Sandbox tells about the sandboxes of limpet run and limpet repl. It runs nothing of yours.\n\nThe presets are:\n\n" + presetsHelp(),
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(explainCommand(), probeCommand(), helpCommand())
	return cmd
}

func presetsHelp() string {
	var text strings.Builder
	for _, p := range presets {
		fmt.Fprintf(&text, "  %-16s %s\n", p.name, p.what)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func explainCommand() *cobra.Command {
	var flags sandboxFlags
	cmd := &cobra.Command{
		Use:   "explain [flags]",
		Short: "Show the bubblewrap command of a sandbox, and why each part is there",
		Long: `Explain prints the arguments that bubblewrap would get, a group a line, with the
reason behind a #. It starts nothing.`,
		Example: "  limpet sandbox explain\n  limpet sandbox explain --sandbox read-only --workspace ~/src/project",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, _, err := flags.policy(cmd, "") // There is a default.
			if err != nil {
				return err
			}
			lines, err := sandbox.Explain(policy, "")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
			return err
		},
	}
	flags.add(cmd, presets[0].name)
	return cmd
}

func probeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "probe",
		Short: "Try what this machine can enforce, and say what to do about the rest",
		Long: `Probe starts a sandbox by each preset, in an empty directory, and says whether this
machine can enforce it. If not it says why, and what to do. The exit code is 126
if the usual one, ` + presets[0].name + `, cannot be had.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			caps, err := sandbox.Probe(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "bubblewrap %s, %s\n", caps.Version, caps.Bwrap)
			try := func(name string, policy func(workspace string) sandbox.Policy) {
				status := "yes"
				if err := sandbox.Try(cmd.Context(), policy); err != nil {
					status = "no: " + explain(err)
				}
				fmt.Fprintf(out, "%-16s %s\n", name, status)
			}
			for _, p := range presets {
				if p.policy == nil {
					p.policy = func(workspace string) sandbox.Policy { return sandbox.AllowDomains(workspace, "example.com") }
				}
				try(p.name, p.policy)
			}
			try("memory and pids", func(workspace string) sandbox.Policy {
				p := sandbox.WorkspaceWrite(workspace)
				p.Limits.MemoryMax, p.Limits.PidsMax = 64<<20, 64
				return p
			})
			if !caps.Patched {
				fmt.Fprintln(out, "note: before bwrap 0.12, of two sandboxes that write one workspace, one may have the other make files elsewhere "+
					"(CVE-2026-87766), unless the distribution has mended that")
			}
			if os.Geteuid() == 0 {
				fmt.Fprintln(out, "note: "+rootInside)
			}
			return nil
		},
	}
}
