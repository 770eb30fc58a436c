package jobs

import (
	"log/slog"
	"slices"
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
	// ReadOnly leaves the registry to the program that owns it: jobs can be looked
	// at and waited for, but neither started, written to, stopped nor forgotten. No
	// events are told.
	ReadOnly bool

	// Brief says that this program closes the registry within seconds, as a command
	// does. Open of other programs waits for that, instead of returning [ErrOwned].
	Brief bool

	// Bash runs the commands, 4.4 or newer. Empty means the first in PATH.
	Bash string

	// Dir is where jobs run that do not say. Empty means the program's directory at each start.
	Dir string

	// Env is the environment of the jobs. Nil means that of shells
	// (shell.DefaultEnv): the program's own, without what looks like a secret.
	// LIMPET_JOB is added in any case, and marks the processes of a job;
	// LIMPET_SESSION and LIMPET_COMMAND are left out: a job is not the session's that
	// its program may run in.
	Env []string

	// Transport starts jobs that do not say. Nil means on this machine.
	Transport transport.Transport

	// OutputLimit is how many of the last bytes of a job's output are kept at least;
	// up to half as many more may be. 0 means 200 KiB.
	OutputLimit int64

	// MaxRunning is how many jobs may run at the same time. 0 means 256.
	MaxRunning int

	// Retain is how long a job that is started here can still be looked at when it has
	// finished, and a program has seen that. MaxFinished is how many such jobs there are
	// at most: the one that finished first is forgotten first. 0 means 30 min, and
	// 64. What of a forgotten job was not told yet still is.
	Retain      time.Duration
	MaxFinished int

	// MaxWait bounds the timeout of a Wait, and is that of one that has none. 0
	// means 10 min.
	MaxWait time.Duration

	// Watch bounds the events of watch patterns.
	Watch WatchLimits

	// Ladder is how a job is stopped. Empty means interrupt.DefaultLadder.
	Ladder interrupt.Ladder

	// Interrupts ends waits from outside, that of Open too. Nil means that only
	// contexts do. Jobs run on.
	Interrupts *interrupt.Source

	// OnEvent, if not nil, is called for each event, one at a time, by a goroutine of
	// the registry. Then nobody else gets any. It may call the registry, but not Close it.
	OnEvent func(Event)

	// OnHistory, if not nil, is called for each event that the History of a job gets, also if it cannot be written there, and whatever Drain, Events and OnEvent
	// tell. Of the Job it has what does not change: the ID, the command, its directory, the session and the task. Calls come from several
	// goroutines: it must return at once, and not call the registry.
	OnHistory func(Event)

	// Logger takes what an operator may want to know. Nil means silence.
	Logger *slog.Logger

	// Poll is how often jobs are looked at where the file system raises no events. 0
	// means 50 ms.
	Poll time.Duration

	now func() time.Time // for tests
}

// WatchLimits bound what watch patterns may say. A job that matches too often in
// three windows in a row is watched no more, and tells its completion instead.
type WatchLimits struct {
	// PerJob is the window in which a job has one event; further matches in it are
	// counted, and make the window a strike. 0 means 15 s.
	PerJob time.Duration

	// Strikes in a row switch the watching of a job off. A window without further
	// matches forgives those before it. 0 means 3.
	Strikes int

	// Burst is how many events there may be over all jobs in BurstWindow. One more
	// opens a breaker: there are none for Break. 0 means 15 in 10 s, and 30 s.
	Burst       int
	BurstWindow time.Duration
	Break       time.Duration
}

// The defaults of [Options].
const (
	DefaultOutputLimit = 200 << 10
	DefaultMaxRunning  = 256
	DefaultRetain      = 30 * time.Minute
	DefaultMaxFinished = 64
	DefaultMaxWait     = 10 * time.Minute
	DefaultPoll        = 50 * time.Millisecond

	DefaultPerJob      = 15 * time.Second
	DefaultStrikes     = 3
	DefaultBurst       = 15
	DefaultBurstWindow = 10 * time.Second
	DefaultBreak       = 30 * time.Second
)

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Env == nil {
		opts.Env = environ.Default()
	}
	opts.Env = slices.Clone(opts.Env)
	if opts.Transport == nil {
		opts.Transport = local.Transport{}
	}
	setDefault(&opts.OutputLimit, DefaultOutputLimit)
	setDefault(&opts.MaxRunning, DefaultMaxRunning)
	setDefault(&opts.Retain, DefaultRetain)
	setDefault(&opts.MaxFinished, DefaultMaxFinished)
	setDefault(&opts.MaxWait, DefaultMaxWait)
	setDefault(&opts.Poll, DefaultPoll)
	opts.Watch = opts.Watch.withDefaults()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	return opts
}

func (w WatchLimits) withDefaults() WatchLimits {
	setDefault(&w.PerJob, DefaultPerJob)
	setDefault(&w.Strikes, DefaultStrikes)
	setDefault(&w.Burst, DefaultBurst)
	setDefault(&w.BurstWindow, DefaultBurstWindow)
	setDefault(&w.Break, DefaultBreak)
	return w
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
