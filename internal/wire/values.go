package wire

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/exact"
	"github.com/limpet-sh/limpet/interrupt"
)

// Version is that of the protocol, which is compatible with itself: fields are only added.
const Version = 1

// Bounds of what is sent.
const (
	MostBody  = 8 << 20   // what comes with a request, a script with its environment for one
	mostSmall = 64 << 10  // what comes with others
	mostStdin = 256 << 10 // one piece of it
	mostChunk = 64 << 10  // the bytes of one frame
	mostReply = 64 << 20  // an answer, and the last frame
)

// Hello is what a program says of itself, for who asks whether it can be spoken to.
type Hello struct {
	Protocol [2]int `json:"protocol"` // the oldest and the newest version that it speaks
	Version  string `json:"version"`  // of limpet
	Exe      string `json:"exe,omitempty"`
	PID      int    `json:"pid"`
	ID       string `json:"id,omitempty"`      // of the keeper
	Boot     string `json:"boot,omitempty"`    // of the machine, since it was started
	Machine  string `json:"machine,omitempty"` // the machine
}

// request is a command.Request on its way.
type request struct {
	ID            string        `json:"id"`
	Script        exact.String  `json:"script"`
	Caller        string        `json:"caller,omitempty"`
	Dir           exact.String  `json:"dir,omitempty"`
	Env           exact.Strings `json:"env,omitempty"`
	Unset         exact.Strings `json:"unset,omitempty"`
	UpdateEnv     exact.Strings `json:"update_env,omitempty"`
	Stdin         bool          `json:"stdin,omitempty"` // it comes by itself
	Timeout       int64         `json:"timeout_ns,omitempty"`
	IdleTimeout   int64         `json:"idle_timeout_ns,omitempty"`
	HandOver      bool          `json:"hand_over,omitempty"`
	HandOverAfter int64         `json:"hand_over_after_ns,omitempty"`
	TurnTimeout   int64         `json:"turn_timeout_ns,omitempty"`
	MergeStderr   bool          `json:"merge_stderr,omitempty"`
	Quiet         bool          `json:"quiet,omitempty"` // nobody reads its output before its end
	Ladder        []step        `json:"ladder,omitempty"`
	Remember      bool          `json:"remember,omitempty"` // its id is to outlive the program

	// Deadline is the time that the caller's context has left: there it ends.
	Deadline int64 `json:"deadline_ns,omitempty"`

	// Away is how long the caller may be away, when its connection is lost, before it comes back; 0 means waitedFor. So long its stdin stays
	// open, and what it was to be sent is kept.
	Away int64 `json:"away_ns,omitempty"`
}

type step struct {
	Signal int   `json:"signal"`
	Grace  int64 `json:"grace_ns"`
}

func requestOf(id string, req command.Request) request {
	r := request{
		ID: id, Script: exact.String(req.Script), Caller: req.Caller, Dir: exact.String(req.Dir), Env: req.Env, Unset: req.Unset, UpdateEnv: req.UpdateEnv, Stdin: req.Stdin != nil,
		Timeout: int64(req.Timeout), IdleTimeout: int64(req.IdleTimeout), HandOver: req.HandOver, HandOverAfter: int64(req.HandOverAfter), TurnTimeout: int64(req.TurnTimeout),
		MergeStderr: req.MergeStderr,
		Remember:    req.ID != "",
	}
	for _, s := range req.Ladder {
		r.Ladder = append(r.Ladder, step{int(s.Signal), int64(s.Grace)})
	}
	return r
}

// value is the request without its streams.
func (r request) value() command.Request {
	req := command.Request{
		Script: string(r.Script), Caller: r.Caller, Dir: string(r.Dir), Env: r.Env, Unset: r.Unset, UpdateEnv: r.UpdateEnv,
		Timeout: time.Duration(r.Timeout), IdleTimeout: time.Duration(r.IdleTimeout),
		HandOver: r.HandOver, HandOverAfter: time.Duration(r.HandOverAfter), TurnTimeout: time.Duration(r.TurnTimeout), MergeStderr: r.MergeStderr,
	}
	for _, s := range r.Ladder {
		req.Ladder = append(req.Ladder, command.Step{Signal: syscall.Signal(s.Signal), Grace: time.Duration(s.Grace)})
	}
	return req
}

// same reports whether two requests ask for the same, whenever and from wherever they do.
func (r request) same(other request) bool {
	return r.Script == other.Script && r.Dir == other.Dir && slices.Equal(r.Env, other.Env) && slices.Equal(r.Unset, other.Unset) && r.Stdin == other.Stdin
}

// away is how long the caller is waited for when its connection is lost.
func (r request) away() time.Duration {
	if r.Away <= 0 {
		return waitedFor
	}
	return time.Duration(r.Away)
}

// checkID refuses what is no id of a command.
func checkID(id string) error {
	if !command.ValidID(id) {
		return command.ErrID
	}
	return nil
}

// result is a command.Result on its way.
type result struct {
	ExitCode int       `json:"exit_code"`
	Stdout   output    `json:"stdout"`
	Stderr   output    `json:"stderr"`
	Dir      string    `json:"dir,omitempty"`
	DirBytes []byte    `json:"dir_bytes,omitempty"` // if it is no UTF-8: older clients take no other kind of dir
	Started  time.Time `json:"started"`
	Elapsed  int64     `json:"elapsed_ns"`
	Receipt  receipt   `json:"receipt"`
	Denied   string    `json:"denied,omitempty"`
	Restart  *restart  `json:"restart,omitempty"`
}

type output struct {
	Head  []byte `json:"head,omitempty"`
	Tail  []byte `json:"tail,omitempty"`
	Total int64  `json:"total"`
	Path  string `json:"path,omitempty"` // where the session is
}

type receipt struct {
	Pipeline []int     `json:"pipeline,omitempty"`
	Signal   int       `json:"signal,omitempty"`
	User     int64     `json:"user_ns,omitempty"`
	System   int64     `json:"system_ns,omitempty"`
	Leftover []process `json:"leftover,omitempty"`
	NotKept  []string  `json:"not_kept,omitempty"`
}

type process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"`
	Command string `json:"command"`
}

type restart struct {
	Reason   string   `json:"reason"`
	Restored []string `json:"restored,omitempty"`
	Lost     []string `json:"lost,omitempty"`
	Err      *node    `json:"error,omitempty"`
}

func resultOf(res command.Result) result {
	r := res.Receipt
	return result{
		ExitCode: res.ExitCode, Stdout: output(res.Stdout), Stderr: output(res.Stderr), Dir: res.Dir, DirBytes: exact.Bytes(res.Dir), Started: res.Started, Elapsed: int64(res.Elapsed),
		Receipt: receipt{r.Pipeline, int(r.Signal), int64(r.User), int64(r.System), processesOf(r.Leftover), r.NotKept},
		Denied:  res.Denied, Restart: restartOf(res.Restart),
	}
}

func (r result) value() command.Result {
	from := r.Receipt
	return command.Result{
		ExitCode: r.ExitCode, Stdout: command.Output(r.Stdout), Stderr: command.Output(r.Stderr), Dir: cmp.Or(string(r.DirBytes), r.Dir), Started: r.Started, Elapsed: time.Duration(r.Elapsed),
		Receipt: command.Receipt{
			Pipeline: from.Pipeline, Signal: syscall.Signal(from.Signal), User: time.Duration(from.User), System: time.Duration(from.System),
			Leftover: processesFrom(from.Leftover), NotKept: from.NotKept,
		},
		Denied: r.Denied, Restart: r.Restart.value(),
	}
}

func restartOf(r *command.Restart) *restart {
	if r == nil {
		return nil
	}
	return &restart{r.Reason, r.Restored, r.Lost, pack(r.Err)}
}

func (r *restart) value() *command.Restart {
	if r == nil {
		return nil
	}
	return &command.Restart{Reason: r.Reason, Restored: r.Restored, Lost: r.Lost, Err: r.Err.unpack()}
}

func processesOf(list []command.Process) (sent []process) {
	for _, p := range list {
		sent = append(sent, process(p))
	}
	return sent
}

func processesFrom(sent []process) (list []command.Process) {
	for _, p := range sent {
		list = append(list, command.Process(p))
	}
	return list
}

// outcome is an interrupt.Outcome on its way.
type outcome struct {
	Signalled     []process `json:"signalled,omitempty"`
	Killed        []process `json:"killed,omitempty"`
	Left          []process `json:"left,omitempty"`
	ShellSurvived bool      `json:"shell_survived,omitempty"`
	OwnBash       bool      `json:"own_bash,omitempty"`
}

func outcomeOf(o interrupt.Outcome) outcome {
	return outcome{processesOf(o.Signalled), processesOf(o.Killed), processesOf(o.Left), o.ShellSurvived, o.OwnBash}
}

func (o outcome) value() interrupt.Outcome {
	return interrupt.Outcome{Signalled: processesFrom(o.Signalled), Killed: processesFrom(o.Killed), Left: processesFrom(o.Left), ShellSurvived: o.ShellSurvived, OwnBash: o.OwnBash}
}

// last is the last frame of a stream: what came of the command.
type last struct {
	Result result `json:"result"`
	Error  *node  `json:"error,omitempty"`
}

// State says how far a command is.
type State string

// The states.
const (
	Running State = "running" // or it waits for its turn
	Ended   State = "ended"
)

// Command is what is known of one.
type Command struct {
	ID     string    `json:"id"`
	Script string    `json:"script"`
	State  State     `json:"state"`
	Asked  time.Time `json:"asked"`
	Ended  time.Time `json:"ended,omitzero"`
}

// told is a Command with what came of it.
type told struct {
	Command
	*last
}

// took is the answer to a piece of stdin.
type took struct {
	Next  int64 `json:"next"`            // the offset of the next one
	Ended bool  `json:"ended,omitempty"` // nobody reads it any more
}

// what is the body of the verbs: a name, or nothing.
type what struct {
	Name string `json:"name,omitempty"`
	Why  *node  `json:"why,omitempty"` // of a stop: the cause of the caller's context
}
