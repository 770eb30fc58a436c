package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rolling"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/transport"
)

// State is where a job is in its life. It goes forward only.
type State string

// The states. A job that was told to be in one of the last three stays in it.
//
//	          started       ended        recorded
//	Starting --------> Running ---> Ending ------> Exited
//	    |                 |           |  its supervisor is gone
//	    |                 +-----------+----------> Lost
//	    +------------------------------------------> Failed
const (
	Starting State = "starting"
	Running  State = "running"
	Ending   State = "ending" // it has ended, and its supervisor is about to record how
	Exited   State = "exited" // its Exit says how: by a code, or by a signal
	Failed   State = "failed" // it could not be started
	Lost     State = "lost"   // it has ended, and nobody saw how
)

// Finished reports whether the job has ended.
func (s State) Finished() bool { return s == Exited || s == Failed || s == Lost }

// Exit says how a job ended.
type Exit struct {
	// Code is 0 to 255; -1 if a signal ended the job, or it is not known.
	Code int `json:"code"`

	// Signal ended the job; 0 if none did.
	Signal syscall.Signal `json:"signal,omitempty"`

	// Stopped says why the job was stopped: "timeout", "stop", "program" or
	// "shutdown". It is empty if it ended by itself.
	Stopped string `json:"stopped,omitempty"`

	// Why says why the job failed, or how it was lost.
	Why string `json:"why,omitempty"`

	Ended  time.Time     `json:"ended,omitzero"` // zero if it is not known: of some that are lost
	User   time.Duration `json:"user_ns"`
	System time.Duration `json:"system_ns"`
	MaxRSS int64         `json:"max_rss_bytes"`
}

// stops says why a job was stopped, in words.
var stops = map[string]string{
	ByTimeout: "at its timeout", ByRequest: "on request", ByProgram: "with its program", ByShutdown: "since its supervisor was told to end",
}

// String says it in words, as in "exit 1" or "killed by signal 9 (killed)".
func (e Exit) String() string {
	text := fmt.Sprintf("exit %d", e.Code)
	switch {
	case e.Why != "":
		text = e.Why
	case e.Signal != 0:
		text = "ended by " + transport.SignalName(e.Signal)
	}
	if why, ok := stops[e.Stopped]; ok {
		text += ", stopped " + why
	}
	return text
}

// Job is what is known of a job at one moment. It is a value.
type Job struct {
	ID       string            `json:"id"`
	Command  string            `json:"command"`
	Dir      string            `json:"dir"`
	Task     string            `json:"task,omitempty"`
	Session  string            `json:"session,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Watch    []string          `json:"watch,omitempty"` // none if it is not watched any more
	Notify   bool              `json:"notify,omitempty"`
	PTY      bool              `json:"pty,omitempty"`
	Stdin    bool              `json:"stdin,omitempty"`
	Lifetime Lifetime          `json:"lifetime"`
	Timeout  time.Duration     `json:"timeout_ns,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`

	State   State         `json:"state"`
	Exit    *Exit         `json:"exit,omitempty"` // nil until it has finished
	PID     int           `json:"pid,omitempty"`  // of bash, while it runs
	Started time.Time     `json:"started"`
	Elapsed time.Duration `json:"elapsed_ns"` // until it ended; 0 if it is not known when that was

	// LastOutput is when it last printed something; zero if never. Quiet is for how
	// long it has not: since its start, if never, and 0 once it has ended.
	LastOutput time.Time     `json:"last_output,omitzero"`
	Quiet      time.Duration `json:"quiet_ns"`

	Output Output `json:"output"`

	// Waits is what a program of the job waits for that only typing on the job's terminal gives. It is nil if there
	// is none, while something is printed or typed, of a job on no terminal, and where the kernel does not say: see
	// docs/jobs.md.
	Waits *Waiting `json:"waits,omitempty"`

	// Leftover reports that processes which the job has started run on after its end.
	Leftover bool `json:"leftover,omitempty"`

	// Orphans are the processes of the job, its own included, that still run although
	// its supervisor was killed. What they print is lost. Stop ends them.
	Orphans []Process `json:"orphans,omitempty"`
}

// Process is a process of a job.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // its arguments, joined by spaces and cut at 200 bytes
}

// Output says how much a job has printed. Offsets count its bytes from 0.
type Output struct {
	First int64 `json:"first"`          // the offset of the first byte that is kept: so many were dropped
	End   int64 `json:"end"`            // how many there were in all
	Lost  int64 `json:"lost,omitempty"` // of which the disk had no room for so many
}

// files is what the directory of a job says. It is read from there, by the owner and
// by others alike.
type files struct {
	spec    stored
	process supervisor.Process
	started bool // there is a process
	exit    *supervisor.Exit
	present supervisor.Presence
	killed  bool                // its supervisor was killed
	orphans []proc.Stat         // of a killed supervisor
	waits   *supervisor.Waiting // nil: for nothing
	log     rolling.View
	logDir  string
}

// readFiles reads the directory of a job. Its processes are known if they are not nil:
// that record does not change.
func readFiles(dir string, spec stored, process *supervisor.Process) (f files, err error) {
	f.spec, f.logDir = spec, filepath.Join(dir, supervisor.LogDir)
	if process != nil {
		f.process = *process
	} else if f.process, err = supervisor.ReadProcess(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f.started = err == nil; f.started {
		if f.present, err = f.process.Look(); err != nil {
			return f, err
		}
	}
	// After the look: who is gone by then has recorded its end before, if ever.
	exit, err := supervisor.ReadExit(dir)
	switch {
	case err == nil:
		f.exit = &exit
	case !errors.Is(err, fs.ErrNotExist):
		return f, err
	}
	if f.killed = f.supervisorKilled(dir); f.killed {
		f.orphans = f.members()
	}
	if spec.PTY && f.present.Job && f.present.Supervisor && f.exit == nil {
		// One that has ended since has printed nothing. Without a file the job waits for nothing.
		if waits, err := supervisor.ReadWaiting(dir); err == nil && waits.Alive() {
			f.waits = &waits
		}
	}
	f.log, err = rolling.Look(f.logDir)
	return f, err
}

// supervisorKilled reports whether the supervisor was killed before its job, and all that
// it has started, had ended.
func (f *files) supervisorKilled(dir string) bool {
	if f.present.Supervisor || f.present.Rebooted || f.present.Elsewhere != "" {
		return false
	}
	if !f.started && f.starting() { // The supervisor is about to say that it runs.
		return false
	}
	return !supervisor.Quit(dir)
}

// members returns the processes of the job that run, found by its mark, the oldest first.
func (f *files) members() []proc.Stat {
	list := supervisor.Target{Process: f.process, Mark: f.spec.Mark}.Members()
	slices.SortFunc(list, func(a, b proc.Stat) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return list
}

// starting reports whether the supervisor may still be about to start the job.
func (f *files) starting() bool { return time.Since(f.spec.Created).Abs() < startPatience }

// startPatience is how long a supervisor may take to say that it is there. Its program
// may be gone by then.
const startPatience = 10 * time.Second

// state tells what the files mean.
func (f *files) state() (State, *Exit) {
	if e := f.exit; e != nil {
		exit := &Exit{Code: e.Code, Signal: e.Signal, Stopped: e.Stopped, Ended: e.Ended, User: e.User, System: e.System, MaxRSS: e.MaxRSS}
		switch {
		case e.Failed != "":
			exit.Why = e.Failed
			return Failed, exit
		case e.Unknown:
			exit.Why = "nobody saw how it ended"
			if e.Killed {
				exit.Why = whyKilled
			}
			return Lost, exit
		}
		return Exited, exit
	}
	unseen := func(state State, why string) (State, *Exit) { return state, &Exit{Code: -1, Why: why} }
	switch {
	case f.present.Elsewhere != "":
		return unseen(Lost, "it cannot be seen from here: "+f.present.Elsewhere)
	case f.present.Job:
		return Running, nil
	case f.present.Supervisor:
		return Ending, nil
	case !f.started && f.starting():
		return Starting, nil
	case f.killed && f.started:
		return unseen(Lost, whyKilled)
	case f.present.Rebooted:
		return unseen(Lost, "the machine was started again meanwhile")
	case f.started:
		return unseen(Lost, "its supervisor could not record how it ended")
	}
	return unseen(Failed, "its program ended while it was being started")
}

const whyKilled = "its supervisor was killed, and nobody saw how it ended"

// orphaned reports whether the job was to end with its program, and its supervisor, which
// would have ended it, was killed as well.
func (f *files) orphaned() bool {
	return f.spec.Lifetime == WithProgram && !f.present.Supervisor && (f.present.Job || len(f.orphans) > 0)
}

// job makes a Job of it.
func (f *files) job(now time.Time) Job {
	s := f.spec
	j := Job{
		ID: s.ID, Command: s.Command, Dir: s.Dir, Task: s.Task, Session: s.Session, Labels: maps.Clone(s.Labels),
		Watch: slices.Clone(s.Watch), Notify: s.Notify, PTY: s.PTY, Stdin: s.Stdin || s.PTY, Lifetime: s.Lifetime, Timeout: s.Timeout,
		Warnings: slices.Clone(s.Warnings),
		Started:  s.Created, LastOutput: f.log.Changed,
		Output: Output{First: f.log.First, End: f.log.End},
	}
	j.State, j.Exit = f.state()
	started, ended := f.process.Times(f.exit)
	for _, st := range f.orphans {
		j.Orphans = append(j.Orphans, Process{st.PID, proc.Command(st.PID)})
	}
	if !started.IsZero() {
		j.Started = started
	}
	if f.exit != nil {
		j.Output.Lost = f.exit.Lost
		j.Output.End = max(j.Output.End, f.exit.Output) // What was lost last left no trace in the log.
	}
	if !j.State.Finished() {
		j.PID = f.process.Job.PID
		if f.waits != nil {
			w := Waiting(f.waits.Waiting)
			j.Waits = &w
		}
		j.Elapsed = max(now.Sub(j.Started), 0)
		j.Quiet = j.Elapsed
		if !j.LastOutput.IsZero() { // It is a file's: if the clock was set since, it can be a day ago, or a day ahead.
			j.Quiet = min(max(now.Sub(j.LastOutput), 0), j.Elapsed)
		}
		return j
	}
	j.Leftover = f.exit != nil && f.exit.Left && f.present.Supervisor || len(f.orphans) > 0
	if !ended.IsZero() {
		j.Exit.Ended, j.Elapsed = ended, max(ended.Sub(j.Started), 0)
	}
	return j
}
