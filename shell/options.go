package shell

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Options say how a shell is made. The zero value of each field, and a nil
// *Options, are good defaults. Start copies them. Negative times, limits and
// numbers are taken for 0: none for Timeout and IdleTimeout, events for Poll, and
// the default for the others.
type Options struct {
	// Bash is the bash to run, 4.4 or newer. Empty means the first in PATH.
	Bash string

	// Dir is where the shell starts. Empty means the program's directory.
	Dir string

	// Env is the environment of the shell. Nil means [DefaultEnv]: the
	// program's own, without what looks like a secret, and with pagers and
	// editors switched off. Otherwise it is exactly Env; an empty slice is
	// an empty environment. LIMPET_SESSION is added in any case: it marks the
	// session's processes.
	Env []string

	// Login sources /etc/profile and the first of ~/.bash_profile,
	// ~/.bash_login and ~/.profile at the start, as a login shell does.
	// InitFiles are sourced after that, in order. One that is not there, or
	// that bash cannot read, is a [*StartError] that names it; so is one that
	// ends bash. Its exit code is no matter. What a file writes to stderr goes
	// to Logger as a warning, what it writes to stdout to nobody. Reset sources
	// them again; a bash that is replaced gets its state back instead.
	Login     bool
	InitFiles []string

	// Aliases has bash expand aliases, as an interactive shell does, in init files too. An
	// alias can be used from the next line on. Otherwise they are defined and not
	// expanded, as by bash -c, until a script says shopt -s expand_aliases. An alias
	// may change what a script means: "rm" may then be "rm -i", which has nobody to ask.
	Aliases bool

	// State, if not nil, is what the shell starts with: another one's, from
	// Checkpoint. Then Dir, Env, Login and InitFiles are of no matter until a Reset.
	State *State

	// Stdin is what all requests without a Stdin of their own read, in the shell
	// itself: what one has read, the next one does not see. Bash gets the file as it is,
	// and nobody reads ahead of the commands. Nil means /dev/null. Init files read
	// nothing. The file stays the caller's, and open until Close. Bash has it at
	// descriptor 70, and a copy of its own at 71: a script cannot keep them for something else then.
	Stdin *os.File

	// StdinInShell has requests with a Stdin of their own run in the shell itself, where what they
	// change stays, and not in a fresh bash. Their Stdin is copied to a pipe, ahead of the
	// commands: what a script leaves unread is lost. 70 and 71 are taken as with Options.Stdin.
	StdinInShell bool

	// KeepOptions keeps errexit, nounset, noexec, pipefail, verbose and xtrace on that a
	// command switches on, for the commands after it, as at a prompt. By default they end with
	// the command, as they end with a script; those that an init file switches on stay.
	KeepOptions bool

	// RuntimeDir is where the session's files are. Empty means
	// XDG_RUNTIME_DIR, /dev/shm if it has room, or the temp directory.
	RuntimeDir string

	// Transport starts bash. Nil means on this machine.
	Transport transport.Transport

	// Timeout and IdleTimeout are for requests that do not say; 0 means none.
	Timeout, IdleTimeout time.Duration

	// StartTimeout bounds a start of bash, with each of the init files. 0
	// means 10 s.
	StartTimeout time.Duration

	// OutputLimit is how many bytes are kept of each stream of a command, head
	// and tail together. 0 means 1 MiB.
	OutputLimit int64

	// SpoolLimit, if larger than OutputLimit, keeps that many bytes of each
	// stream on disk, half at each end, for a command that wrote more than
	// OutputLimit: see [command.Output.Path]. The files of the last
	// SpoolFiles streams are kept, until Close; 0 means 16.
	SpoolLimit int64
	SpoolFiles int

	// Ladder is how a command is stopped. Empty means interrupt.DefaultLadder.
	Ladder interrupt.Ladder

	// Before is asked before each command, also one with Stdin; it may change
	// the request. An error refuses the command and comes back in a
	// [*RefusedError]. It is called by the goroutine that called Run, before it
	// waits for its turn and without a lock, so several calls may come at the
	// same time. Before may run commands on this shell itself: they run first,
	// and Before is asked about them, too.
	Before func(ctx context.Context, req *command.Request) error

	// Admit is asked about each command that has its turn, with the directory in which it is about to run, where
	// no other command can come in between. An error refuses it, as one of Before does. It holds up whoever waits for their turn, and
	// may not use the shell.
	Admit func(ctx context.Context, req command.Request, dir string) error

	// AskPassword, if not nil, asks a person for what sudo, ssh and git want to know: they have SUDO_ASKPASS and SSH_ASKPASS (with
	// SSH_ASKPASS_REQUIRE=force) in their environment, as far as Env does not set these itself, and with State as that has them. Git uses the
	// latter. Sudo does so with its option -A, or if DISPLAY is set, be it empty.
	//
	// It is called by one goroutine at a time, beside everything else. Its context ends when the program that asks does not wait
	// any more, after 45 s, and when the shell is closed. The program gets the answer, and nobody else does; it is one line of at
	// most 1023 bytes, and overwritten with zeros afterwards. An error means that there is no answer, and its text is told to the
	// program. Then the same process does not ask the same again. Behind a command in which sudo has asked, the shell runs sudo -k.
	//
	// Only processes that descend from this shell's bash are answered, but any of them can ask: see [command.PasswordQuestion]. It is
	// not used with a Transport that is not the local one, as in a sandbox, and where there is no /proc: programs then fail as
	// they do without it.
	AskPassword func(ctx context.Context, q command.PasswordQuestion) ([]byte, error)

	// UpdateEnv, if not nil, is given the UpdateEnv of each request that has the turn, and returns
	// what is taken in its place. It holds the request up.
	UpdateEnv func(entries []string) []string

	// Interrupts stops commands of this shell from outside. Nil means that
	// only Interrupt and contexts do.
	Interrupts *interrupt.Source

	// Hooks are told what happens.
	Hooks Hooks

	// Logger takes what an operator may want to know: a bash that was
	// replaced, polling instead of events. Nil means silence.
	Logger *slog.Logger

	// Poll, if not 0, looks for bash's report at that interval instead of
	// waiting for file events. It is for file systems that raise none, and
	// for measuring.
	Poll time.Duration

	// SaveDelay is how long the shell must be idle before its state is saved.
	// 0 means 2 ms.
	SaveDelay time.Duration
}

// Hooks are functions that are told what happens in a shell; nil ones are
// skipped. They are called by the goroutine that called Run, in order, and
// hold it up. They must not run commands on their shell, nor Reset or Close it:
// that waits for the command they are told of.
type Hooks struct {
	// Started is told right before a command is sent to bash, Finished when
	// its result is known.
	Started  func(command.Request)
	Finished func(command.Request, command.Result, error)

	// Restarted is told when a bash was replaced, with the Restart of the
	// Result. Reset replaces bash, too, but was asked for: it is not told.
	Restarted func(*command.Restart)

	// Renewed is told when Reset or Restore has given the shell another state, before a command can run with it; also if they have failed.
	Renewed func()
}

// The defaults of [Options].
const (
	DefaultOutputLimit  = 1 << 20
	DefaultSpoolFiles   = 16
	DefaultStartTimeout = 10 * time.Second
	DefaultSaveDelay    = 2 * time.Millisecond
)

// withDefaults returns a copy of o with every zero field filled in, and checks
// what can be checked.
func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	var err error
	if opts.Bash, err = transport.FindBash(opts.Bash); err != nil {
		return opts, err
	}
	if opts.Dir, err = transport.AbsDir(opts.Dir); err != nil {
		return opts, err
	}
	if err := transport.CheckDir(opts.Dir); err != nil && opts.State.restore() == nil {
		return opts, err
	}
	if opts.Env == nil {
		opts.Env = DefaultEnv()
	}
	if err := environ.Check(opts.Env); err != nil {
		return opts, err
	}
	opts.Env, opts.InitFiles = slices.Clone(opts.Env), slices.Clone(opts.InitFiles)
	if opts.Transport == nil {
		opts.Transport = local.Transport{}
	}
	opts.Poll = max(opts.Poll, 0)
	setDefault(&opts.StartTimeout, DefaultStartTimeout)
	setDefault(&opts.OutputLimit, DefaultOutputLimit)
	setDefault(&opts.SpoolFiles, DefaultSpoolFiles)
	setDefault(&opts.SaveDelay, DefaultSaveDelay)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts, nil
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// keep is how many bytes of each end of a stream stay on disk.
func (o *Options) keep() int64 { return max(o.OutputLimit, o.SpoolLimit)/2 + 4096 }

// standing reports whether bash has the standard input of scripts at a descriptor of its own.
func (o *Options) standing() bool { return o.Stdin != nil || o.StdinInShell }
