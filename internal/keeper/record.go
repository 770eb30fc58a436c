package keeper

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/uptime"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// The names in a keeper's directory.
const (
	recordFile = "record.json"
	lockFile   = "lock"
	socketFile = "s"
	nowFile    = "now"
	saidFile   = "said"
	agentFile  = "agent"
	givenFile  = "given"
	startFile  = "started" // see endStart

	journalFile = "journal"
)

// placeFile is beside the keepers' directories, and names the place: see Registry.Place.
const placeFile = "place"

// byName is beside the keepers' directories, and has for each name the jobs and the terminals of its sessions: jobs
// may outlive a keeper that is killed, and the next of its name has them.
const byName = "of"

// asking is beside the keepers' directories too, and has the questions that people are asked now: see package questions.
const asking = "asking"

// mostRecord bounds a record that is read: whoever owns the directory may have put anything there.
const mostRecord = 1 << 20

// State says how far a keeper is.
type State string

// The states.
const (
	Starting State = "starting"
	Running  State = "running"
	Ended    State = "ended"
)

// Record is what is known of a keeper by its directory. Fields are only added.
type Record struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   State     `json:"state"`
	PID     int       `json:"pid,omitempty"`
	Version string    `json:"version,omitempty"` // of limpet
	Created time.Time `json:"created"`
	Spec    Spec      `json:"spec"`
	Given   bool      `json:"given,omitempty"` // a state to begin with, as a descriptor
	End     *End      `json:"end,omitempty"`
	Within  string    `json:"within,omitempty"` // the control group of the service that it was made in

	// Noticed is when the End was noticed: by the keeper itself, or, if that was killed, by the first sweep afterwards. NoticedUp is what
	// uptime.Now had then; 0 if that is not known. The session is forgotten rememberedFor later. End.At will not do for that: a keeper
	// may be killed days after it noted something for the last time. Noticed is zero before the first sweep, and in a record of an older limpet.
	Noticed   time.Time     `json:"noticed,omitzero"`
	NoticedUp time.Duration `json:"noticed_uptime_ns,omitempty"`

	// Of an upgrade: a keeper does not have its name before the record of the one that it comes From says
	// that it is the Next, or its own that this is Settled; and no more when its own has a Next. Session is
	// the ID of the first of them.
	From    string `json:"from,omitempty"`
	Settled bool   `json:"settled,omitempty"`
	Next    string `json:"next,omitempty"`
	Session string `json:"session,omitempty"`
}

// notice sets when the end of the session was noticed to now, if it has no such time, or one that is still to come because the clock was
// set back since: else the directory would stay until then. It reports whether it has.
func (r *Record) notice() bool {
	if !r.Noticed.IsZero() && !r.noticed().After(time.Now()) {
		return false
	}
	r.Noticed, r.NoticedUp = time.Now(), uptime.Now()
	return true
}

// noticed returns when the end was noticed, as the clock has it now.
func (r Record) noticed() time.Time { return uptime.At(r.Noticed, r.NoticedUp) }

// SessionID is the same for all keepers that a session has had.
func (r Record) SessionID() string { return cmp.Or(r.Session, r.ID) }

// Spec says how a session is made. The zero value is fine.
type Spec struct {
	Dir       string        `json:"dir,omitempty"` // where its shell starts, absolute; empty means /
	Bash      string        `json:"bash,omitempty"`
	Login     bool          `json:"login,omitempty"`
	InitFiles []string      `json:"init_files,omitempty"`
	Idle      time.Duration `json:"idle_ns,omitempty"` // after which it ends; 0 means 24 h

	// Args say what else there is to say of its sessions, in words of the program that keeps it: see
	// Program.Sessions.
	Args []string `json:"args,omitempty"`

	// Audit is where what is done is written down, a file or a directory; empty: nowhere. With AuditRequired what cannot be written
	// down is refused.
	Audit         string `json:"audit,omitempty"`
	AuditRequired bool   `json:"audit_required,omitempty"`

	// ForkedFrom is the session that it was forked from; nil if it was not. The keeper of that session sets it. What a record
	// has may be anything: see Record.ForkedFrom.
	ForkedFrom *Parent `json:"forked_from,omitempty"`

	// Env is the environment of its shell; nil means shell.DefaultEnv. It is in no file.
	Env []string `json:"-"`

	// State is what its shell begins with. Nil means nothing but the above, as after a reset. It is
	// in no file that has a name.
	State *shell.State `json:"-"`

	// Checkpoints are those that the session has from the start, if there is a State. The same holds for
	// them.
	Checkpoints []session.Checkpoint `json:"-"`
}

// Parent is a session that another one was forked from. The ID is its Record.SessionID, and of no other session. The name is the one that
// it had: when it has ended another session may have that.
type Parent struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ForkedFrom returns the session that this one was forked from. It is nil if this one was not, if a limpet forked it that is too old to write
// that down, or if what the record has are no ID and no name of a session: both are printed as they are.
func (r Record) ForkedFrom() *Parent {
	p := r.Spec.ForkedFrom
	if p == nil || !session.ValidName(p.ID) || !session.ValidName(p.Name) { // An ID has the same characters.
		return nil
	}
	return p
}

// DefaultIdle is how long a session stays that nobody uses, in which nothing runs.
const DefaultIdle = 24 * time.Hour

// End is how a session has ended.
type End struct {
	At      time.Time `json:"at"`                // if its keeper was killed, when that noted something for the last time
	Why     string    `json:"why"`               // "ended after 24 h idle"
	Dir     string    `json:"dir,omitempty"`     // where it was
	Running string    `json:"running,omitempty"` // what ran then
}

// String says it in a sentence, without the name.
func (e *End) String() string {
	text := e.Why
	if e.Dir != "" {
		text += "; it was in " + e.Dir
	}
	if e.Running != "" {
		text += ", and ran " + e.Running
	}
	return text
}

// now is where a session is.
type now struct {
	Dir     string `json:"dir"`
	Running string `json:"running,omitempty"`
}

func readRecord(dir string) (Record, error) {
	var r Record
	if err := statedir.ReadJSON(filepath.Join(dir, recordFile), &r, mostRecord); err != nil {
		return r, err
	}
	if r.ID != filepath.Base(dir) {
		return r, fmt.Errorf("%s is that of %q", filepath.Join(dir, recordFile), r.ID)
	}
	return r, nil
}

func (r Record) write(dir string) error {
	return statedir.WriteJSON(filepath.Join(dir, recordFile), r)
}

// writeLast is write for the record of a session that has ended.
func (r Record) writeLast(dir string) error {
	return statedir.WriteLastJSON(filepath.Join(dir, recordFile), r)
}

// readNow is what a keeper that was killed noted last; nothing if it is damaged.
func readNow(dir string) (n now) {
	b, err := statedir.Read(filepath.Join(dir, nowFile), mostRecord)
	if err != nil || json.Unmarshal(b, &n) != nil {
		return now{}
	}
	return n
}

// readSaid is the end of what a keeper had to say.
func readSaid(dir string) string {
	const most = 2000
	b, _, err := statedir.Tail(filepath.Join(dir, saidFile), most)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
}

// noting writes where a session is, in place: a file of one block, that costs no more than the write. A
// reader that meets the middle of it takes nothing. Its methods are not safe for concurrent use.
type noting struct {
	f    *os.File
	last now // that was written
}

// sizeNoted is that of the file. Of a script its first line is noted, so far.
const (
	sizeNoted = 8192
	mostNoted = 200
)

func openNoting(dir string) (*noting, error) {
	f, err := private.OpenFile(filepath.Join(dir, nowFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return &noting{f: f}, nil
}

func (n *noting) note(where now) {
	if where == n.last {
		return
	}
	n.last = where
	where.Running = runes.Brief(where.Running, mostNoted)
	b, err := json.Marshal(where)
	if err != nil || len(b) > sizeNoted {
		return // It is made of texts, and no path is so long.
	}
	block := bytes.Repeat([]byte(" "), sizeNoted)
	copy(block, b)
	_, _ = n.f.WriteAt(block, 0) // What is lost is what to tell of a keeper that is killed.
}

func (n *noting) close() { _ = n.f.Close() } // As above.
