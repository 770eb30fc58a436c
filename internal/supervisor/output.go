package supervisor

import (
	"os"
	"time"

	"github.com/limpet-sh/limpet/internal/rolling"
)

// output copies what the job prints into its log. Whoever holds the other end,
// nothing waits for it.
type output struct {
	*drain // of the read end of a pipe, or the master of a terminal
	pty    bool
	beat   *beat
	waits  *waits // nil without a terminal

	// The drain's mutex guards these.
	log   *rolling.Writer
	noise noise
}

const copySize = 64 << 10 // What a pipe holds (pipe(7)).

func newOutput(r *os.File, pty bool, log *rolling.Writer, beat *beat, waits *waits) *output {
	o := &output{pty: pty, log: log, beat: beat, waits: waits}
	o.drain = newDrain(r, copySize, func(b []byte) error {
		o.write(o.noise.filter(b))
		return nil
	})
	o.reopens = pty && reapsAll // Else the end of the output is how the end of the job is known.
	go o.run()
	return o
}

// write appends to the log. The caller holds the mutex.
func (o *output) write(p []byte) {
	if len(p) == 0 {
		return
	}
	_, _ = o.log.Write(p) // What there is no room for is counted.
	o.waits.printed()
	o.beat.soon()
}

// ptyLag is how long a terminal may take to pass on what was written to it, after its
// writer has ended: that is done by a worker of the kernel.
const ptyLag = 20 * time.Millisecond

// catchUp takes what has been printed by now.
func (o *output) catchUp() {
	var lag time.Duration
	if o.pty {
		lag = ptyLag
	}
	o.flush(lag)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(o.noise.rest())
}

// written is how much there is in all, and for how much of it there was no room.
func (o *output) written() (all, lost int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.End(), o.log.Lost()
}

// close ends the copying and the log.
func (o *output) close() {
	o.drain.close()
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.log.Close() // Each write has said how it went.
}
