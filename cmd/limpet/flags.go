package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// shellFlags are the flags that say how the shell is made. Run and repl have
// them in common.
type shellFlags struct {
	dir, bash, runtimeDir string
	sandbox               sandboxFlags

	env, keepEnv    []string
	cleanEnv, login bool
	noAskpass       bool
	initFiles       []string

	timeout, idleTimeout, startTimeout time.Duration

	outputLimit byteSize
	mergeStderr bool
}

func (f *shellFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dir, "dir", "", "start in `DIR` (default: the current directory)")
	flags.StringVar(&f.bash, "bash", "", "the bash to run, 4.4 or newer, by `PATH` or name (default: the first in PATH)")
	flags.StringArrayVar(&f.env, "env", nil, "add `NAME=value` to the environment; repeatable, the last one wins")
	flags.StringArrayVar(&f.keepEnv, "keep-env", nil, "pass variables on that would not be, because they look like a secret or by --clean-env; a `PATTERN` like 'GH_*'; repeatable")
	flags.BoolVar(&f.cleanEnv, "clean-env", false, "start with an empty environment, but for --env and --keep-env")
	flags.BoolVar(&f.noAskpass, "no-askpass", false, "leave SUDO_ASKPASS and SSH_ASKPASS as they are: sudo -A, ssh and git ask nobody at limpet's terminal; see limpet help passwords")
	flags.BoolVar(&f.login, "login", false, "read /etc/profile and ~/.bash_profile, as a login shell does")
	flags.StringArrayVar(&f.initFiles, "init", nil, "source `FILE` at the start; repeatable")
	flags.StringVar(&f.runtimeDir, "runtime-dir", "", "keep the session's files in `DIR` (default: XDG_RUNTIME_DIR, /dev/shm or the temp directory)")
	durationVar(flags, &f.timeout, "timeout", 0, "stop a command that runs longer than `TIME`, as in 5 (seconds), 500ms or 5m (default: never)")
	durationVar(flags, &f.idleTimeout, "idle-timeout", 0, "stop a command that writes nothing for `TIME` (default: never)")
	durationVar(flags, &f.startTimeout, "start-timeout", shell.DefaultStartTimeout, "give up if bash, or an init file, takes longer than `TIME`")
	f.outputLimit = shell.DefaultOutputLimit
	flags.Var(&f.outputLimit, "output-limit", "keep `BYTES` of each stream, as in 65536, 64KiB or 2MiB")
	f.sandbox.add(cmd, "")
	flags.BoolVar(&f.mergeStderr, "merge-stderr", false, "send stderr to stdout, in the order in which it was written")
}

// options checks the flags and makes the shell's options of them.
func (f *shellFlags) options(cmd *cobra.Command) (*shell.Options, error) {
	if err := timed(cmd, "timeout", "idle-timeout", "start-timeout"); err != nil {
		return nil, err
	}
	if err := f.checkPaths(cmd); err != nil {
		return nil, err
	}
	env, err := f.environ(cmd)
	if err != nil {
		return nil, err
	}
	opts := &shell.Options{
		Bash: f.bash, Dir: f.dir, Env: env, Login: f.login, InitFiles: f.initFiles, RuntimeDir: f.runtimeDir,
		Timeout: f.timeout, IdleTimeout: f.idleTimeout, StartTimeout: f.startTimeout, OutputLimit: int64(f.outputLimit),
	}
	return opts, f.sandbox.confine(cmd, opts, f.asked())
}

// checkPaths refuses what cannot be meant, while it is known which flag said
// it. What fails in spite of that, as on a full disk, is no wrong usage.
func (f *shellFlags) checkPaths(cmd *cobra.Command) error {
	if cmd.Flags().Changed("bash") && f.bash == "" {
		return emptyPath(cmd, "bash")
	}
	type given struct {
		flag, path string
		isDir      bool
		mode       uint32
	}
	paths := []given{{"dir", f.dir, true, unix.X_OK}, {"runtime-dir", f.runtimeDir, true, unix.W_OK | unix.X_OK}}
	for _, file := range f.initFiles {
		// Bash would say so too, but goes on without the file.
		paths = append(paths, given{"init", file, false, unix.R_OK})
	}
	for _, p := range paths {
		if !cmd.Flags().Changed(p.flag) {
			continue
		}
		if p.path == "" {
			return emptyPath(cmd, p.flag)
		}
		if on := cmd.Flags().Lookup("on"); on != nil && on.Changed { // Only that machine can tell more.
			if !path.IsAbs(p.path) {
				return usagef(cmd, "--%s %q: with --on, wants an absolute path, of the other machine", p.flag, p.path)
			}
			continue
		}
		if err := usable(p.path, p.isDir, p.mode); err != nil {
			return usagef(cmd, "--%s %q: %w", p.flag, p.path, err)
		}
	}
	return nil
}

// emptyPath is for a path that the library would take for "the default one".
func emptyPath(cmd *cobra.Command, name string) error {
	return usagef(cmd, `--%s "": wants a path; is a variable empty?`, name)
}

// environ is the environment of the shell. It is never nil, which to the
// library would mean the default one.
func (f *shellFlags) environ(cmd *cobra.Command) ([]string, error) {
	for _, pattern := range f.keepEnv {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, usagef(cmd, "--keep-env %q: %w", pattern, err)
		}
	}
	for _, entry := range f.env {
		switch strings.IndexByte(entry, '=') {
		case -1:
			return nil, usagef(cmd, "--env %q: wants NAME=value; to pass on a variable that is set here use --keep-env", entry)
		case 0:
			return nil, usagef(cmd, `--env "=...": there is no name before the =; is a variable empty?`)
		}
	}
	if e, ok := errors.AsType[*command.EnvError](command.ValidateEnv(f.env)); ok {
		// The value stays out: it may be a secret.
		return nil, usagef(cmd, "--env %q: the name %w", e.Name+"=...", e.Err)
	}
	if f.cleanEnv {
		return append(f.kept(), f.env...), nil
	}
	return append(shell.DefaultEnv(f.keepEnv...), f.env...), nil
}

// asked are the names of the variables that --env and --keep-env name.
func (f *shellFlags) asked() []string {
	var names []string
	for _, entry := range append(f.kept(), f.env...) {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}

// kept is what --keep-env saves from --clean-env.
func (f *shellFlags) kept() []string {
	kept := []string{}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(f.keepEnv, func(pattern string) bool {
			ok, _ := path.Match(pattern, name) // Bad patterns were refused.
			return ok
		}) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// usable returns why the path is not what it should be, or may not be used for
// what mode says. The path is not in the error.
func usable(path string, isDir bool, mode uint32) error {
	st, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	switch {
	case err != nil:
		return err
	case isDir && !st.IsDir():
		return unix.ENOTDIR
	case !isDir && st.IsDir():
		return unix.EISDIR
	}
	return unix.Access(path, mode)
}
