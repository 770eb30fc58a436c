package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/tty"
	"github.com/limpet-sh/limpet/terminal/screen"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// program is what runs on a terminal, and the terminal's other end.
type program struct {
	conn   transport.Conn
	id     proc.ID // without a start time where that is not known
	name   string  // the mark of all that it starts: the ID of the terminal
	master *os.File
	slave  *os.File // kept, so that the terminal is there for as long as the program is

	out     *ring
	display *display

	scan       screen.Scanner       // of the one that reads
	resized    atomic.Pointer[Size] // tells it of another size
	feedAt     int64                // as well: from which offset on the screen may want to be fed
	lastOutput atomic.Int64         // since the epoch, in nanoseconds; 0 if there was none
	lastInput  atomic.Int64         // the same of what was typed; of the start, if nothing was
	looks      looks
	read       chan struct{} // closed when all was read

	mu        sync.Mutex
	modes     screen.Modes // behind what was read
	answers   []byte       // that the program is still to be given
	answering bool
	replies   sync.WaitGroup

	in     writing
	sizing sync.Mutex // held by the one that gives it another size

	asked  atomic.Bool
	ending sync.Once
	left   error            // what Close could not end
	hosted bool             // something wraps the program, and ends with it
	known  map[proc.ID]bool // all that was ever found of it; mu guards it

	saved atomic.Bool // what it has shown is in the log, and how it ended in the record

	recording  *recording  // to Spec.Record; nil if there is none
	retirement *time.Timer // r.mu guards it
}

// spawn starts the program: a terminal, the process on it, and those who look after both.
func (r *Registry) spawn(ctx context.Context, t *Terminal, spec Spec) (err error) {
	if err := r.guard(); err != nil {
		return err
	}
	if err := transport.Shield(spec.Transport, r.dir); err != nil {
		return err
	}
	p := &program{name: t.id, out: newRing(spec.BufferLimit), read: make(chan struct{}), in: writing{turn: make(chan struct{}, 1)}, feedAt: spec.BufferLimit / 2}
	p.display = newDisplay(p.out, newHistory(time.Now(), spec.Size), r.opts.Scrollback)
	defer func() {
		if err != nil {
			p.release()
			if p.recording != nil {
				p.recording.drop()
			}
		}
	}()
	if spec.Record != "" {
		if p.recording, err = newRecording(spec.Record); err != nil {
			return err
		}
	}
	if p.master, p.slave, err = tty.Open(ttySize(spec.Size)); err != nil {
		return err
	}
	at := transport.Spec{
		Path: spec.path, Argv: spec.Argv, Dir: spec.Dir, Env: spec.Env, Own: append(slices.Clone(spec.own), environ.TerminalVar+"="+p.name, r.mark()),
		Stdin: p.slave, Stdout: p.slave, Stderr: p.slave, Terminal: true,
	}
	if _, here := spec.Transport.(local.Transport); !here {
		if at.Path, err = transport.FindBash(""); err != nil {
			return err
		}
		at.Argv, at.Terminal, p.hosted = hostedArgv(spec.Argv, at.Own), false, true
	}
	if p.conn, err = spec.Transport.Start(ctx, at); err != nil {
		return err
	}
	p.id = proc.ID{PID: p.conn.PID()}
	if st, err := proc.Read(p.id.PID); err == nil {
		p.id = st.ID()
	}
	if p.id.Start != 0 {
		guard.HoldSession(p.id)
	}
	p.known = map[proc.ID]bool{p.id: true}
	p.lastInput.Store(int64(time.Since(epoch)))
	t.mu.Lock()
	t.prog = p
	t.mu.Unlock()
	// Nobody else can have moved it: it is closed only by way of the program.
	if err := t.move(Running, func(i *Info) { i.PID, i.Started = p.id.PID, time.Now() }); err != nil {
		r.opts.Logger.Warn("limpet: that a terminal runs cannot be written down", "id", t.id, "err", err)
	}
	r.work.Go(func() { p.drain() })
	r.work.Go(func() { t.await(p) })
	if p.recording != nil {
		r.work.Go(func() { p.recording.run(t) })
	}
	return nil
}

func ttySize(s Size) tty.Size { return tty.Size{Rows: uint16(s.Rows), Cols: uint16(s.Cols)} }

// release closes the terminal, and what else a program has that is no more.
func (p *program) release() {
	for _, f := range []*os.File{p.slave, p.master} {
		if f != nil {
			_ = f.Close() // Nothing is buffered.
		}
	}
	p.display.close()
}

// hostedArgv is what a transport starts that does not know terminals, as that of a sandbox:
// the program becomes the leader of a session, whose controlling terminal its stdin is.
// Setsid(1) has to fork where it leads a process group, and then has no signal to tell.
// The prompts of a shell are passed besides the environment: a bash that is not
// interactive takes them out of it.
func hostedArgv(argv, own []string) []string {
	const script = `
while [[ $1 != -- ]]; do export -- "$1"; shift; done; shift
type -P -- "$1" >/dev/null || { printf 'limpet: %s: there is no such program here\n' "$1"; exit 127; }
read -r _ _ _ _ group _ </proc/self/stat
[[ $group == "$$" ]] && exec setsid -cw -- "$@"
exec setsid -c -- "$@"`
	args := []string{"bash", "--noprofile", "--norc", "-c", script, "bash"}
	for _, entry := range own {
		if name, _, _ := strings.Cut(entry, "="); name == "PS1" || name == "PS2" {
			args = append(args, entry)
		}
	}
	return append(append(args, "--"), argv...)
}

// await waits for the end of the program, and writes down what became of it.
func (t *Terminal) await(p *program) {
	<-p.conn.Done()
	over, asked := time.Now(), p.asked.Load()
	p.hangUp()
	exit := Exit{Code: p.conn.Exit().Code, Signal: p.conn.Exit().Signal}
	closed := p.conn.Close() // Of a sandbox: it ends what is left in it.
	if closed != nil {
		t.r.opts.Logger.Warn("limpet: after a program on a terminal", "id", t.id, "err", closed)
	}
	to := exit.outcome()
	if asked {
		to = Cancelled
	}
	last := Info{State: Running}
	p.fill(&last)
	guard.DropSession(p.id)
	t.r.stopped()
	logged := t.writeLog(p)
	// Who finds in the record that it has ended, in this program or another, has the whole recording.
	var recording error
	if p.recording != nil {
		recording = p.recording.finish(recordingPatience)
	}
	// It was running, and nobody else ends it.
	recorded := t.move(to, func(i *Info) {
		i.Exit, i.Ended = &exit, over
		i.Lasted = i.Ended.Sub(i.Started)
		i.Kept, i.Truncated, i.Bytes, i.Lines, i.LastLine, i.LastOutput, i.Size = last.Kept, last.Truncated, last.Bytes, last.Lines, last.LastLine, last.LastOutput, last.Size
		if asked {
			i.Why = "it was closed"
		}
		if recording != nil {
			i.RecordingFailed = recording.Error()
		}
	})
	if err := errors.Join(logged, recorded); err != nil {
		t.r.opts.Logger.Warn("limpet: what a terminal has shown cannot be kept; it stays in memory for now", "id", t.id, "err", err)
	} else {
		p.saved.Store(true)
	}
	p.out.finish()
	close(t.ended)
	t.retireLater(p)
}

// Save writes down what could not be when the program ended, as on a full disk. The
// registry tries that now and then; at its Close it is lost. Nil means that all is
// written, and of a program that runs that nothing is due. It is safe to call twice, and
// from anywhere.
func (t *Terminal) Save() error {
	p := t.program()
	if p == nil || !t.Info().State.Ended() {
		return nil
	}
	if err := t.save(p); err != nil {
		return &Error{Op: "save", ID: t.id, Err: err}
	}
	return nil
}

// save is Save of a program that has ended.
func (t *Terminal) save(p *program) error {
	if p.saved.Load() {
		return nil
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	if err := t.writeLog(p); err != nil {
		return err
	}
	t.mu.Lock()
	info := t.info
	t.mu.Unlock()
	if err := t.r.writeJSON(t.id, recordExt, info); err != nil {
		return err
	}
	p.saved.Store(true)
	return nil
}

// writeLog writes what is kept of the output, and what it takes to see it again.
func (t *Terminal) writeLog(p *program) error {
	offset, data := p.out.tail(1 << 62)
	if len(data) == 0 && offset == 0 {
		return nil
	}
	again := replay{Offset: offset, From: offset, History: p.display.history.since(offset)}
	at := p.display.resume()
	again.From, again.Restore = max(at.offset, offset), at.restore
	if err := statedir.Write(t.r.path(t.id, logExt), data); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return t.r.writeJSON(t.id, replayExt, again)
}
