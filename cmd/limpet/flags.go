package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	flags.BoolVar(&f.login, "login", false, "read /etc/profile and ~/.bash_profile, as a login shell does")
	flags.StringArrayVar(&f.initFiles, "init", nil, "source `FILE` at the start; repeatable")
	flags.StringVar(&f.runtimeDir, "runtime-dir", "", "keep the session's files in `DIR` (default: XDG_RUNTIME_DIR, /dev/shm or the temp directory)")
	flags.DurationVar(&f.timeout, "timeout", 0, "stop a command that runs longer than `TIME`, as in 90s or 5m (default: never)")
	flags.DurationVar(&f.idleTimeout, "idle-timeout", 0, "stop a command that writes nothing for `TIME` (default: never)")
	flags.DurationVar(&f.startTimeout, "start-timeout", shell.DefaultStartTimeout, "give up if bash, or an init file, takes longer than `TIME`")
	f.outputLimit = shell.DefaultOutputLimit
	flags.Var(&f.outputLimit, "output-limit", "keep `BYTES` of each stream, as in 65536, 64KiB or 2MiB")
	f.sandbox.add(cmd, "")
	flags.BoolVar(&f.mergeStderr, "merge-stderr", false, "send stderr to stdout, in the order in which it was written")
}

// options checks the flags and makes the shell's options of them.
func (f *shellFlags) options(cmd *cobra.Command) (*shell.Options, error) {
	for _, name := range []string{"timeout", "idle-timeout", "start-timeout"} {
		flag := cmd.Flags().Lookup(name)
		if d, _ := cmd.Flags().GetDuration(name); flag.Changed && d <= 0 {
			return nil, usagef(cmd, "--%s %v: wants a time above zero, as in 90s", name, d)
		}
	}
	env, err := f.environ(cmd)
	if err != nil {
		return nil, err
	}
	for _, file := range f.initFiles {
		// Bash would say so too, but goes on without the file.
		if err := readable(file); err != nil {
			return nil, fmt.Errorf("init file: %w", err)
		}
	}
	opts := &shell.Options{
		Bash: f.bash, Dir: f.dir, Env: env, Login: f.login, InitFiles: f.initFiles, RuntimeDir: f.runtimeDir,
		Timeout: f.timeout, IdleTimeout: f.idleTimeout, StartTimeout: f.startTimeout, OutputLimit: int64(f.outputLimit),
	}
	return opts, f.sandbox.confine(cmd, opts)
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
		if !strings.Contains(entry, "=") {
			return nil, usagef(cmd, "--env %q: wants NAME=value; to pass on a variable that is set here use --keep-env", entry)
		}
	}
	if err := command.ValidateEnv(f.env); err != nil {
		return nil, &usageError{command: cmd.CommandPath(), err: err}
	}
	if f.cleanEnv {
		return append(f.kept(), f.env...), nil
	}
	return append(shell.DefaultEnv(f.keepEnv...), f.env...), nil
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

func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() // Nothing was written.
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return fmt.Errorf("%s is a directory", file)
	}
	return nil
}
