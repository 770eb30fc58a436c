package terminal

import (
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Options say how a registry is opened. The zero value of each field, and a nil
// *Options, are good defaults. Open copies them. Negative numbers and times are taken
// for 0.
type Options struct {
	// Dir is where programs run that do not say. Empty means the directory that this
	// program has when it starts them.
	Dir string

	// Env is the environment of the programs. Nil means the program's own, without
	// what looks like a secret and what describes the terminal that it runs in.
	// TERM is xterm-256color unless Env or a Spec has one. LIMPET_TERMINAL is added in
	// any case, and marks the processes of a terminal.
	Env []string

	// Transport starts programs that do not say. Nil means on this machine.
	Transport transport.Transport

	// BufferLimit is how many of the last bytes of a program's output are kept at
	// least; up to 64 KiB more may be. 0 means 1 MiB.
	BufferLimit int64

	// Scrollback is how many lines that have left the screen at its top are kept. 0
	// means 1000.
	Scrollback int

	// MaxRunning is how many terminals may run at the same time. 0 means 256.
	MaxRunning int

	// Grace is how long the output of a program that has ended stays in memory. Then it
	// is read from the log. Of more than 64 MiB in all the oldest leaves before; what cannot
	// be written stays. 0 means 30 s.
	Grace time.Duration

	// KeepEnded is how many terminals that have ended stay on the disk, over all programs
	// that share the directory, and KeepFor for how long: the one that ended first is
	// forgotten first. 0 means 100, and 7 days.
	KeepEnded int
	KeepFor   time.Duration

	// WritePatience is how long a Write waits for a program that does not read. 0
	// means 10 s.
	WritePatience time.Duration

	// MaxWait bounds the timeout of a Wait, and is that of one that has none. 0 means
	// 10 min.
	MaxWait time.Duration

	// Ladder is how a terminal is closed. Empty means SIGHUP, SIGTERM and SIGKILL, half
	// a second after each.
	Ladder interrupt.Ladder

	// Interrupts ends waits from outside. Nil means that only contexts do. Programs run
	// on.
	Interrupts *interrupt.Source

	// Logger takes what an operator may want to know. Nil means silence.
	Logger *slog.Logger
}

// The defaults of [Options].
const (
	DefaultBufferLimit   = 1 << 20
	DefaultScrollback    = 1000
	DefaultMaxRunning    = 256
	DefaultGrace         = 30 * time.Second
	DefaultKeepEnded     = 100
	DefaultKeepFor       = 7 * 24 * time.Hour
	DefaultWritePatience = 10 * time.Second
	DefaultMaxWait       = 10 * time.Minute
)

// DefaultLadder is what a program is told when its terminal goes: first what it would
// hear from one that hangs up.
var DefaultLadder = interrupt.Ladder{
	{Signal: syscall.SIGHUP, Grace: 500 * time.Millisecond},
	{Signal: syscall.SIGTERM, Grace: 500 * time.Millisecond},
	{Signal: syscall.SIGKILL, Grace: time.Second},
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Env == nil {
		opts.Env = environ.Terminal()
	}
	opts.Env = slices.Clone(opts.Env)
	if opts.Transport == nil {
		opts.Transport = local.Transport{}
	}
	if len(opts.Ladder) == 0 {
		opts.Ladder = DefaultLadder
	}
	opts.Ladder = slices.Clone(opts.Ladder)
	setDefault(&opts.BufferLimit, DefaultBufferLimit)
	setDefault(&opts.Scrollback, DefaultScrollback)
	setDefault(&opts.MaxRunning, DefaultMaxRunning)
	setDefault(&opts.Grace, DefaultGrace)
	setDefault(&opts.KeepEnded, DefaultKeepEnded)
	setDefault(&opts.KeepFor, DefaultKeepFor)
	setDefault(&opts.WritePatience, DefaultWritePatience)
	setDefault(&opts.MaxWait, DefaultMaxWait)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
