package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/session"
)

// The defaults of [Options].
const (
	DefaultTimeout     = 110 * time.Second
	DefaultMaxTimeout  = time.Hour
	DefaultAnswer      = 50 * time.Second
	DefaultTurnTimeout = 5 * time.Second
	DefaultAnswerLimit = 16 << 10
	DefaultProgress    = 2 * time.Second
	DefaultUpdates     = 500 * time.Millisecond
)

// Groups are the names of the groups of tools, for [Options.Tools].
var Groups = []string{groupShell, groupSessions, groupJobs, groupTerminals}

const (
	groupShell     = "shell"     // run_command, read_output, interrupt
	groupSessions  = "sessions"  // session_*
	groupJobs      = "jobs"      // job_*
	groupTerminals = "terminals" // terminal_*
)

// Options say how a server behaves. The zero value of each field, and a nil *Options, are
// good defaults. New copies them. Negative numbers and times are taken for 0.
type Options struct {
	// Timeout is that of a command that names none, and MaxTimeout the longest that one
	// can name. 0 means 110 s, less than the two minutes at which some hosts tell their model
	// that it runs on; and an hour.
	Timeout, MaxTimeout time.Duration

	// Answer is how soon a call is answered whose client asks for no progress: just those
	// clients give up after a minute, some of them without a word. A command goes on as a job
	// then, and a wait ends. 0 means 50 s.
	Answer time.Duration

	// TurnTimeout is how long a call waits for its session while another call runs a command
	// there. 0 means 5 s.
	TurnTimeout time.Duration

	// IdleTimeout is that of a command that names none. 0 means none.
	IdleTimeout time.Duration

	// AnswerLimit is how many bytes of output an answer has at most, unless the call says
	// otherwise. 0 means 16 KiB.
	AnswerLimit int

	// Tools are the groups of tools that are offered, of [Groups]. Nil means all.
	Tools []string

	// Session is the name of the session that a call means which names none, or "default". Empty
	// means default.
	Session string

	// RunOn has a client that leaves leave its commands running: those that run a second later
	// are moved to the background, where they are jobs, instead of being stopped. A command with stdin
	// cannot.
	RunOn bool

	// Structured adds to each result its fields as structured content, and to each tool the
	// schema of these, for programs. Hosts such as Claude Code and Codex give a model
	// nothing else of such a result: neither its text nor its pictures. stderr is then
	// kept apart from stdout, if a call does not say otherwise.
	Structured bool

	// Progress is how often a call that takes long says how far it is, if its client wants
	// to know. 0 means 2 s.
	Progress time.Duration

	// Updates is how often at most a client is told that a resource changes, of which it
	// wants to know. 0 means 500 ms.
	Updates time.Duration

	// OnTimeout is what a timeout does to a command that does not say: "stop" or
	// "background". Empty means stop.
	OnTimeout string

	// Mask returns a text without what looks like a secret, and names what was left out, which the answer says. All that a client reads goes
	// through it, but for pictures. It cannot know a secret of which an answer has a part. It must be safe for concurrent use. Nil leaves everything as it is.
	Mask func(text []byte) (masked []byte, names []string)

	// Explain puts an error, which may name options of the library, into the words of
	// whoever started the program. Nil means [error.Error].
	Explain func(error) string

	// Version is that of the program, for clients.
	Version string

	// Logger takes what an operator may want to know. Nil means silence.
	Logger *slog.Logger
}

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	setDefault(&opts.Timeout, DefaultTimeout)
	setDefault(&opts.MaxTimeout, DefaultMaxTimeout)
	setDefault(&opts.Answer, DefaultAnswer)
	setDefault(&opts.TurnTimeout, DefaultTurnTimeout)
	setDefault(&opts.AnswerLimit, DefaultAnswerLimit)
	setDefault(&opts.Progress, DefaultProgress)
	setDefault(&opts.Updates, DefaultUpdates)
	opts.MaxTimeout = max(opts.MaxTimeout, opts.Timeout)
	opts.IdleTimeout = max(opts.IdleTimeout, 0)
	for _, name := range opts.Tools {
		if !slices.Contains(Groups, name) {
			return opts, fmt.Errorf("mcpserver: there is no group of tools %q: there are %s", name, strings.Join(Groups, ", "))
		}
	}
	if opts.Tools != nil && len(opts.Tools) == 0 {
		return opts, errors.New("mcpserver: no group of tools is left")
	}
	if opts.Tools == nil {
		opts.Tools = Groups
	}
	switch opts.OnTimeout {
	case "":
		opts.OnTimeout = onTimeoutStop
	case onTimeoutStop, onTimeoutBackground:
	default:
		return opts, fmt.Errorf("mcpserver: a timeout cannot %q: it can %s, or move to the %s", opts.OnTimeout, onTimeoutStop, onTimeoutBackground)
	}
	opts.Session = cmp.Or(opts.Session, defaultSession)
	if opts.Explain == nil {
		opts.Explain = error.Error
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts, nil
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Server offers the sessions of a registry to any number of clients. Its methods are safe
// for concurrent use. Close it; the registry is its caller's.
type Server struct {
	opts     Options
	sessions *session.Registry
	mcp      *mcp.Server
	results  results
	queues   queues
	rounds   rounds
	places   places
	followed followed

	mu        sync.Mutex
	ctx       context.Context // ends with Close, and ends calls
	cancel    context.CancelFunc
	answering sync.WaitGroup // requests by HTTP; none is added when ctx has ended
}

// New returns a server. It starts nothing. The error is for a group of tools that there is
// not.
func New(sessions *session.Registry, opts *Options) (*Server, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, sessions: sessions}
	s.places.init(sessions)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.followed.init(s)
	s.mcp = mcp.NewServer(&mcp.Implementation{
		Name: "limpet", Title: "Limpet: a shell that stays", Version: o.Version,
	}, &mcp.ServerOptions{
		Instructions:       s.instructions(),
		Logger:             s.sdkLogger(),
		Capabilities:       &mcp.ServerCapabilities{}, // What is there is found out; "logging" is not.
		SubscribeHandler:   s.followed.subscribe,
		UnsubscribeHandler: s.followed.unsubscribe,
	})
	for _, group := range []struct {
		name string
		add  func()
	}{
		{groupShell, s.addShell}, {groupSessions, s.addSessions}, {groupJobs, s.addJobs}, {groupTerminals, s.addTerminals},
	} {
		if s.offers(group.name) {
			group.add()
		}
	}
	s.addResources()
	return s, nil
}

func (s *Server) offers(group string) bool { return slices.Contains(s.opts.Tools, group) }

// instructions are what a model reads before any tool, where its host shows them. Some show the first
// 160 characters alone, and some none: what matters is in the descriptions of the tools as well.
func (s *Server) instructions() string {
	var first, then []string
	if s.offers(groupShell) {
		first = append(first, "Runs shell commands in bash sessions that stay: run_command.")
		then = append(then, "A session is a named bash, whose directory, variables, functions and options stay from one run_command to the next; its commands run one at a time.",
			"An exit code that is not 0 is a result and no error. Long output is cut: read_output has the rest.")
	}
	if s.offers(groupJobs) {
		first = append(first, "Background jobs: background: true, job_*.")
		then = append(then, "Servers, watchers, long builds, and whatever is to run in parallel are background jobs.")
	}
	if s.offers(groupTerminals) {
		first = append(first, "Terminals: terminal_*.")
		then = append(then, "Programs that want a terminal (editors, REPLs, ssh, password prompts) run on one of the terminal_* tools.")
	}
	if s.offers(groupSessions) {
		then = append(then, "session_* lists, closes, forks and rolls back sessions.")
	}
	return strings.Join(append(first, then...), " ")
}

func (s *Server) sdkLogger() *slog.Logger { return slog.New(errorsOnly{s.opts.Logger.Handler()}) }

// errorsOnly drops what the SDK says of each client that comes and goes, and of those that
// cannot be told something since they do not listen.
type errorsOnly struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (h errorsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// Close ends the connections of all clients, with the calls that are under way, and waits
// for what the server has started; some seconds at most, where clients do not read what they
// are sent. Sessions stay. It is safe to call twice.
func (s *Server) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.answers()
	within(closePatience, func() {
		var closing sync.WaitGroup
		for client := range s.mcp.Sessions() {
			closing.Go(func() { _ = client.Close() }) // It may be gone.
		}
		closing.Wait()
		s.followed.close()
	})
	return nil
}

// answers waits until the calls that were cancelled are answered, but not for long: the SDK
// sends nothing any more on a connection that is being closed.
func (s *Server) answers() { within(closePatience, s.answering.Wait) }

// closePatience is longer than a stop of a command takes.
const closePatience = 3 * time.Second

// within does something, and waits for it, but not for long: the SDK waits for clients that
// do not read what they are sent. What still goes on then ends when they do, or are gone.
func within(most time.Duration, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
