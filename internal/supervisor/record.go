package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/uptime"
)

// What is in the directory of a job, besides what whoever started it puts there.
const (
	LogDir      = "log"          // a rolling log
	BeatFile    = "beat"         // is written to when there is something new
	StdinFile   = "stdin"        // a fifo: what is written to it, the job reads
	ControlFile = "control"      // a fifo: what the supervisor is told
	processFile = "process.json" // a Process
	exitFile    = "exit.json"    // an Exit
	saidFile    = "supervisor"   // what the supervisor itself said, if it came to that
)

// Process says which processes a job is. It is written when the job has started.
type Process struct {
	Supervisor proc.ID   `json:"supervisor"`
	Job        proc.ID   `json:"job"`
	Boot       string    `json:"boot"`
	Namespace  string    `json:"pid_namespace"` // in which the pids mean something
	Started    time.Time `json:"started"`

	// StartedUp is what uptime.Now had then; 0 if nobody knows.
	StartedUp time.Duration `json:"started_uptime_ns,omitempty"`

	Adopted bool `json:"adopted,omitempty"` // the job is not below its supervisor
}

// Why a job was stopped, in [Exit.Stopped].
const (
	ByTimeout  = "timeout"
	ByRequest  = "stop"
	ByProgram  = "program"  // the one that it was to live with
	ByShutdown = "shutdown" // the supervisor was told to end
)

// Exit says how a job ended.
type Exit struct {
	Code    int            `json:"code"`             // 0 to 255; -1 if a signal ended it, or it is not known
	Signal  syscall.Signal `json:"signal,omitempty"` // that ended it
	Unknown bool           `json:"unknown,omitempty"`
	Killed  bool           `json:"killed,omitempty"`          // its supervisor was, and could not record the end
	Failed  string         `json:"failed,omitempty"`          // why it did not start
	Stopped string         `json:"stopped,omitempty"`         // why it was stopped, if it was
	Ended   time.Time      `json:"ended,omitzero"`            // zero if it is not known
	EndedUp time.Duration  `json:"ended_uptime_ns,omitempty"` // as StartedUp
	Left    bool           `json:"left,omitempty"`            // something that it has started ran on
	User    time.Duration  `json:"user_ns,omitempty"`
	System  time.Duration  `json:"system_ns,omitempty"`
	MaxRSS  int64          `json:"max_rss_bytes,omitempty"`
	Output  int64          `json:"output"`         // how much had been written by then
	Lost    int64          `json:"lost,omitempty"` // of which there was no room for so much
}

// EndedNow notes that it has ended at this moment.
func (e *Exit) EndedNow() { e.Ended, e.EndedUp = time.Now(), uptime.Now() }

// exitOf makes an Exit of what wait4(2) says.
func exitOf(status syscall.WaitStatus, usage syscall.Rusage) Exit {
	exit := Exit{Code: status.ExitStatus()}
	exit.User, exit.System, exit.MaxRSS = Usage(&usage)
	if status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit
}

// Usage is the part of a resource usage that an Exit has.
func Usage(u *syscall.Rusage) (user, system time.Duration, maxRSS int64) {
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), int64(u.Maxrss) * rssUnit
}

// ReadProcess reads the record of a job's processes. The error is fs.ErrNotExist
// if there is none yet.
func ReadProcess(dir string) (p Process, err error) {
	return p, readJSON(filepath.Join(dir, processFile), &p)
}

// ReadExit reads how a job ended. The error is fs.ErrNotExist if it has not, or if
// nobody was there to see it.
func ReadExit(dir string) (e Exit, err error) {
	return e, readJSON(filepath.Join(dir, exitFile), &e)
}

// WriteExit is for those who find that a job has ended and no supervisor will say
// so.
func WriteExit(dir string, e Exit) error {
	return statedir.WriteLastJSON(filepath.Join(dir, exitFile), e)
}

// recordMax bounds what is read: whoever owns the directory may have put anything
// there.
const recordMax = 1 << 20

func readJSON(path string, v any) error { return statedir.ReadJSON(path, v, recordMax) }

// Presence is what can be told of a job's processes from here.
type Presence struct {
	Job, Supervisor bool   // they run
	Rebooted        bool   // the machine was started again since: whatever ran is gone
	Elsewhere       string // why nothing can be told; "" if it can
}

// Times returns when the job was started, and when it ended if there is an Exit, as the clock has it now: it may have been set
// since.
func (p Process) Times(e *Exit) (started, ended time.Time) {
	started = p.Started
	if e != nil {
		ended = e.Ended
	}
	if p.Boot != boot() {
		return started, ended
	}
	if e != nil {
		ended = uptime.At(ended, e.EndedUp)
	}
	return uptime.At(started, p.StartedUp), ended
}

// Look tells whether the processes run. A zombie does not. The error says that it
// cannot be told now: for one, that no descriptor is left to look with.
func (p Process) Look() (found Presence, err error) {
	switch {
	case p.Boot != boot():
		return Presence{Rebooted: true}, nil
	case p.Namespace != namespace():
		return Presence{Elsewhere: "it was started in another pid namespace"}, nil
	}
	if found.Job, err = look(p.Job); err != nil {
		return Presence{}, err
	}
	found.Supervisor, err = look(p.Supervisor)
	return found, err
}

// Quit reports whether the supervisor of the job in dir, which does not run any more, came
// to its end. One that was killed has left its fifo behind.
func Quit(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ControlFile))
	return errors.Is(err, fs.ErrNotExist)
}

// Tidy does what a killed supervisor has not done any more. Then it counts as one that
// came to its end.
func Tidy(dir string) {
	for _, name := range []string{StdinFile, ControlFile} {
		_ = os.Remove(filepath.Join(dir, name)) // It may not be there.
	}
}

func look(id proc.ID) (running bool, err error) {
	if id.PID == 0 {
		return false, nil
	}
	st, err := proc.Read(id.PID)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return syscall.Kill(id.PID, 0) == nil, nil // There is no more to be known here.
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // ESRCH: it ended under who reads.
		return false, nil
	}
	return err == nil && st.ID() == id && !st.Zombie(), err
}

// runs is look for those who look again: who cannot be looked at may run.
func runs(id proc.ID) bool {
	running, err := look(id)
	return running || err != nil
}
