package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// ErrHandedOver is the cause of a [*HandedOverError] when HandOver was called, or at the HandOverAfter
// of the request.
var ErrHandedOver = errors.New("handed over")

// ErrNothingRuns means that there is no command to be handed over, or one whose Stdin has not ended,
// which cannot be.
var ErrNothingRuns = errors.New("shell: no command runs that could be handed over")

// HandedOverError says that the command runs on without the shell, and in Command, of
// which the caller is the owner from now on. The Result has the output until then, the
// exit code -1, and a Restart: the bash went with the command, and the session goes on
// in another one. Unwrap gives ErrHandedOver, ErrTimeout or ErrIdle.
type HandedOverError struct {
	Cause   error
	Command *Running
}

func (e *HandedOverError) Error() string {
	return fmt.Sprintf("shell: the command runs on in the background (%v)", e.Cause)
}

func (e *HandedOverError) Unwrap() error { return e.Cause }

// HandOver gives the command that runs now away, while it runs, and returns without
// waiting for it: its Run returns a [*HandedOverError]. The error is
// [ErrNothingRuns] if there is none, and ErrClosed after Close.
func (s *PersistentShell) HandOver() error {
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.offered == nil:
		return ErrNothingRuns
	case s.offered.inlet.copies():
		return fmt.Errorf("%w: what runs reads standard input, which has not ended", ErrNothingRuns)
	}
	select {
	case s.offered.handOver <- struct{}{}:
	default: // Somebody else has asked for it.
	}
	return nil
}

func isHandedOver(err error) bool {
	_, ok := errors.AsType[*HandedOverError](err)
	return ok
}

// offer lets HandOver reach the command that starts now.
func (s *PersistentShell) offer(r *running) (done func()) {
	r.handOver = make(chan struct{}, 1)
	s.mu.Lock()
	s.offered = r
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.offered = nil
		s.mu.Unlock()
	}
}

// Running is a command that was handed over, in a bash of its own. Its methods are
// safe for concurrent use. Close it, or give it to who does, as jobs.Registry.Adopt
// does. If the program is killed, it ends with it.
type Running struct {
	b      *bash
	r      *running
	output *os.File // the read end of a pipe
	feed   *feed
	entry  string // the mark that was the session's
	late   bool   // it was handed over at its HandOverAfter

	stopping sync.Mutex    // one Stop at a time
	asked    chan struct{} // asks attend to stop it, by the ladder in ladders
	ladders  chan interrupt.Ladder
	outcomes chan interrupt.Outcome
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	awaited  chan struct{} // closed when it has ended
	done     chan struct{} // closed when its output was passed on, too
	exit     transport.Exit
	over     chan struct{} // closed when all is freed
	close    sync.Once

	mu    sync.Mutex
	alone bool // the session is closed: what carries the mark is nobody else's
	ended bool
}

// handOver makes a Running of the command, and takes leave of its bash.
func (b *bash) handOver(ctx context.Context, r *running) (command.Result, error) {
	res := command.Result{ExitCode: command.CodeUnknown, Started: r.started}
	h := &Running{
		b: b, r: r, entry: b.entry, late: r.end.late, asked: make(chan struct{}, 1), ladders: make(chan interrupt.Ladder, 1), outcomes: make(chan interrupt.Outcome),
		awaited: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	pipe, w, err := os.Pipe()
	if err != nil {
		h.cancel()
		r.end = b.stop(ctx, r, r.end.handed) // As if it was not to be handed over.
		res, stopped := b.collect(ctx, r)
		return res, errors.Join(stopped, fmt.Errorf("shell: handing the command over: %w", err))
	}
	h.output = pipe
	writeErr := r.monitor.Finish(ctx, true, writerPatience)
	r.stuck = errors.Is(writeErr, ipc.ErrWriterStuck)
	var readErr error
	res.Stdout, res.Stderr, readErr = r.Read(b.opts.OutputLimit)
	res.Elapsed = time.Since(r.started)

	h.feed = newFeed(w, res.Stdout.Bytes(), res.Stderr.Bytes())
	r.monitor = capture.NewMonitor(r.Outputs, h.feed, h.feed)
	r.monitor.From(res.Stdout.Total, res.Stderr.Total)
	b.shell.part(h)
	go h.attend()
	return res, errors.Join(&HandedOverError{Cause: r.end.handed, Command: h}, readErr, writeErr)
}

// part takes leave of a bash that goes with its command. The session's processes get
// another mark from now on.
func (s *PersistentShell) part(h *Running) {
	b := h.b
	d := &death{reason: "bash went with the command that was handed over", state: b.saved.state, have: b.saved.have}
	if missed := b.commands - b.saved.commands; missed > 0 || !d.have {
		d.lost = append(d.lost, fmt.Sprintf("what the last %s changed", count(max(missed, 1), "command")))
	}
	for _, job := range b.jobs() {
		d.lost = append(d.lost, fmt.Sprintf("job %s, which runs on but is no job of the new bash", job))
		s.orphans = append(s.orphans, proc.ID{PID: job.PID, Start: job.Start})
	}
	d.state.Begin, d.state.Nameless = b.options, b.nameless
	d.lost = append(d.lost, b.unsavable(d.state)...)
	s.bash, s.died = nil, d

	<-s.guarded // The guard knows of the mark that goes.
	s.handed = append(slices.DeleteFunc(s.handed, (*Running).spent), h)
	s.newMark(environ.NewID())
	if s.runner != nil {
		_ = s.runner.Close() // It marks what it starts. Nothing runs in it.
		s.runner = nil
	}
	s.guarded = make(chan struct{})
	go s.watchOver(s.entry, s.guarded)
	if p, err := rundir.Acquire(s.opts.RuntimeDir, "", s.owner != nil); err == nil { // It is there: this only counts.
		h.b.held = p
	}
}

// attend looks after the command until it has ended, and stops it when it is asked to.
func (h *Running) attend() {
	defer close(h.over)
	h.exit = h.await()
	close(h.awaited)
	// All that was printed is on its way before anybody hears of the end.
	writeErr := h.r.monitor.Finish(h.ctx, false, writerPatience)
	h.feed.close()
	close(h.done)
	if h.r.stuck || errors.Is(writeErr, ipc.ErrWriterStuck) {
		h.r.Abandon()
	} else {
		h.b.shell.tender.Tend(h.r.Release())
	}
	h.b.close() // Its exit trap is the session's, which goes on.
	if lost := h.b.obituary.lost; lost != nil {
		h.b.opts.Logger.Warn("limpet: after a command that was handed over: " + lost.Error())
	}
	h.mu.Lock()
	h.ended = true
	alone := h.alone
	h.mu.Unlock()
	if alone {
		h.sweep()
	}
	if h.b.held != nil {
		h.b.held.Release()
	}
}

// await waits for the end of the command.
func (h *Running) await() transport.Exit {
	b, r := h.b, h.r
	w := ipc.Wait{
		Look:  func() (time.Duration, bool) { return r.monitor.Look(), false },
		First: firstTick,
		Asked: h.asked,
	}
	for {
		switch r.Await(h.ctx, w) {
		case ipc.Asked:
			h.outcomes <- interrupt.Stop(<-h.ladders, &target{b: b, r: r})
			continue
		case ipc.GaveUp:
			_ = interrupt.Stop(r.ladder(b.opts), &target{b: b, r: r}) // Close kills what is left.
			if !r.Reported() {
				b.giveUp("was closed")
			}
		}
		if end, ok := r.reported(); ok {
			return transport.Exit{Code: end.record.Status}
		}
		return b.conn.Exit()
	}
}

// Script is what runs.
func (h *Running) Script() string { return h.r.req.Script }

// Dir is where it was started.
func (h *Running) Dir() string {
	return cmp.Or(h.r.call.Dir, h.b.pwd)
}

// Left is what is left now of the Timeout of a request that was handed over at its HandOverAfter, at
// least a millisecond. 0 means that there is no limit.
func (h *Running) Left() time.Duration {
	if !h.late || h.r.limits.Timeout == 0 {
		return 0
	}
	return max(h.r.limits.Timeout-time.Since(h.r.started), time.Millisecond)
}

// Started is when it was.
func (h *Running) Started() time.Time { return h.r.started }

// PID is that of its bash, on this machine. It ends soon after the command.
func (h *Running) PID() int { return h.b.id.PID }

// Output is the read end of a pipe with all that the command prints on both of its
// streams, from its beginning on; if that was long, without its middle. It stays the
// Running's. A reader that is too slow loses some, and is told so by a line.
func (h *Running) Output() *os.File { return h.output }

// Done is closed when the command has ended and the pipe has all of its output.
func (h *Running) Done() <-chan struct{} { return h.done }

// Exit says how it ended. Call it when Done is closed. As in a Result, a command that a
// signal ended has a code of 128+n.
func (h *Running) Exit() transport.Exit { return h.exit }

// Stop ends the command by the ladder, as a timeout would have, and says what became
// of its processes. It does nothing if the command has ended.
func (h *Running) Stop(ladder interrupt.Ladder) interrupt.Outcome {
	h.stopping.Lock()
	defer h.stopping.Unlock()
	select {
	case <-h.awaited:
		return interrupt.Outcome{}
	default:
	}
	h.ladders <- ladder
	h.asked <- struct{}{}
	select {
	case outcome := <-h.outcomes:
		return outcome
	case <-h.awaited: // Nobody may read its output: that is not waited for.
		return interrupt.Outcome{}
	}
}

// Close stops the command if it runs, ends its bash, frees what it holds, and waits for
// that. It is safe to call twice.
func (h *Running) Close() error {
	h.close.Do(func() {
		h.cancel()
		<-h.over
		_ = h.output.Close() // Read only.
	})
	return nil
}

// sessionClosed leaves what carries the mark to the command, if it runs on.
func (h *Running) sessionClosed() {
	h.mu.Lock()
	h.alone = true
	ended := h.ended
	h.mu.Unlock()
	if ended {
		h.sweep()
	}
}

// spent reports whether the command has ended, and nobody carries its mark any more. The
// guard has forgotten it then.
func (h *Running) spent() bool {
	h.mu.Lock()
	ended := h.ended
	h.mu.Unlock()
	if !ended {
		return false
	}
	tree, err := proc.Snapshot()
	if err != nil || len(tree.Session(proc.ID{}, h.entry)) > 0 {
		return false
	}
	guard.Forget(h.entry)
	return true
}

// sweep ends what neither the session nor the command is there for any more.
func (h *Running) sweep() {
	proc.KillAll(h.entry)
	guard.Forget(h.entry)
}

// feed is a Writer that first writes what there was before. One write is under way at
// a time.
type feed struct {
	mu   sync.Mutex
	w    *os.File
	done chan struct{}
}

func newFeed(w *os.File, before ...[]byte) *feed {
	f := &feed{w: w, done: make(chan struct{})}
	f.mu.Lock()
	go func() {
		defer close(f.done)
		defer f.mu.Unlock()
		for _, b := range before {
			if _, err := w.Write(b); err != nil {
				return // Nobody reads it.
			}
		}
	}()
	return f
}

// Write implements io.Writer.
func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.w.Write(p)
}

// close gives what was not read yet a moment, and ends the pipe.
func (f *feed) close() {
	_ = f.w.SetWriteDeadline(time.Now().Add(writerPatience)) // A pipe can.
	<-f.done
	_ = f.w.Close() // Each write has said how it went.
}
