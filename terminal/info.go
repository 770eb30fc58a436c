package terminal

import (
	"slices"
	"time"
)

// Info is what is known of a terminal at one moment. It is a value, and what is
// written down of it: without the environment, whose values may be secrets.
type Info struct {
	ID      string   `json:"id"`
	Argv    []string `json:"argv"`           // what was started; of a Line the bash that runs it
	Line    string   `json:"line,omitempty"` // if that was asked for
	Dir     string   `json:"dir"`
	Session string   `json:"session,omitempty"`
	Size    Size     `json:"size"`
	State   State    `json:"state"`

	// Why says why a terminal is failed, cancelled or lost, if not by its Exit.
	Why  string `json:"why,omitempty"`
	Exit *Exit  `json:"exit,omitempty"` // nil until it has ended, or if it never ran
	PID  int    `json:"pid,omitempty"`  // of the program; 0 if it never ran

	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	// Lasted is how long the program has run, or did, by the program that has the terminal: its clock may be another one, or
	// have been set meanwhile. 0 if that one did not say so.
	Lasted time.Duration `json:"lasted_ns,omitempty"`

	// Bytes and Lines are how much the program has printed in all. What is before the
	// offset Kept is not kept any more: then Truncated is true.
	Bytes      int64     `json:"bytes"`
	Lines      int64     `json:"lines"`
	Kept       int64     `json:"kept_from"`
	Truncated  bool      `json:"truncated"`
	LastLine   string    `json:"last_line,omitempty"` // the last that is not blank, as text, cut to 200 characters
	LastOutput time.Time `json:"last_output,omitzero"`

	// Waits is what the program waits for that only typing gives. It is nil if it does not, or printed something
	// within the last moment, and where the kernel does not say: see docs/terminals.md.
	Waits *Waiting `json:"waits,omitempty"`

	// Owner is the program that has, or had, the terminal: a name that no other has.
	Owner    string `json:"owner"`
	OwnerPID int    `json:"owner_pid"`

	// Recording is the file that the terminal was asked to be recorded to, and
	// RecordingFailed why that did not go well.
	Recording       string `json:"recording,omitempty"`
	RecordingFailed string `json:"recording_failed,omitempty"`

	// Elsewhere says that another program has it: what is here is what was written
	// down when it started.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// clone shares nothing.
func (i Info) clone() Info {
	i.Argv = slices.Clone(i.Argv)
	if i.Exit != nil {
		exit := *i.Exit
		i.Exit = &exit
	}
	if i.Waits != nil {
		waits := *i.Waits
		i.Waits = &waits
	}
	return i
}

// Elapsed is how long the program has run, or did.
func (i Info) Elapsed() time.Duration {
	switch {
	case i.Started.IsZero():
		return 0
	case i.Lasted > 0:
		return i.Lasted
	case i.Ended.IsZero():
		return max(time.Since(i.Started), 0)
	}
	return max(i.Ended.Sub(i.Started), 0)
}
