package supervisor

import (
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/tty"
	"github.com/limpet-sh/limpet/interrupt"
)

// Order says what a supervisor shall do. Secrets are in it: it goes through a pipe, and
// is written nowhere.
type Order struct {
	Dir  string // the directory of the job, which exists
	Mark string // an entry "NAME=value" in the environment of all that the job starts

	// What to run. An empty Path means that it runs already: see Adopt.
	Path    string
	Argv    []string
	WorkDir string
	Env     []string // exactly this, and Mark

	PTY   *Size // run it on a terminal of its own
	Stdin bool  // it can be written to; else it reads end-of-file

	Keep     int64         // how many of its last bytes stay at least
	Timeout  time.Duration // after which it is stopped; 0: never
	Ladder   interrupt.Ladder
	Detached bool // it outlives the program

	Adopt *Adoption
}

// Size is that of a terminal, in characters.
type Size = tty.Size

// Adoption is a process that the program has started itself, and waits for: the
// program tells how it ended, by [Ended]. If the program is gone, the process is
// ended, and its exit code remains unknown. The files that go with the order are the
// master of its terminal; or the read end of a pipe for its output, and, if it can
// be written to, the write end of the one that it reads.
type Adoption struct {
	Job     proc.ID
	Started time.Time
}
