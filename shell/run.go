package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// run is the life of a command in bash: render, write, wait, collect. Begun is called right before it is sent, and
// what it returns behind it; nil for a command that is not the caller's.
func (b *bash) run(ctx context.Context, req command.Request, begun func(*running) (done func())) (command.Result, error) {
	started := time.Now()
	nothing := command.Result{ExitCode: command.CodeUnknown, Started: started}
	if err := b.exchange.Renew(); err != nil {
		return nothing, b.withoutFiles(ctx, err)
	}
	if req.HandOver || req.HandOverAfter > 0 {
		b.save(ctx) // The session may have to go on with what there is now.
	}
	where := b.whereToRun(ctx, req)
	r, err := b.render(req, where, started)
	if err != nil {
		return nothing, b.withoutFiles(ctx, err)
	}
	if ctx.Err() != nil { // It may have ended while a bash was started, say.
		b.drop(r)
		return nothing, limits.NotBegun(ctx)
	}
	b.processes.note(started)
	r.born = proc.Now()
	b.conn.Forget()
	done := func() {}
	if begun != nil {
		done = begun(r) // It may call HandOver itself.
	}
	if err := r.Send(); err != nil {
		done()
		<-b.conn.Done() // It cannot read any more: it is about to be.
		b.drop(r)
		return nothing, errNotRun
	}
	r.inlet.begin()
	r.end = b.wait(ctx, r)
	r.inlet.end()
	done()
	if r.end.handed != nil {
		return b.handOver(ctx, r)
	}
	if err := b.notRun(ctx, r); err != nil {
		return nothing, err
	}
	if b.waitsAfterFork(r) {
		b.giveUp("could not fork, after which it waits for its last job to end")
	}
	return b.collect(ctx, r)
}

// drop gives up a command that did not run.
func (b *bash) drop(r *running) {
	r.inlet.end()
	_ = r.monitor.Finish(context.Background(), false, 0) // Nothing was written: no Writer can be stuck.
	b.shell.tender.Tend(r.Release())
}

// withoutFiles retires bash if its files are beyond repair: the next one has its own.
func (b *bash) withoutFiles(ctx context.Context, err error) error {
	if !errors.Is(err, ipc.ErrReplaced) {
		return err
	}
	b.retire(ctx, "could not be spoken to ("+ipc.ErrReplaced.Error()+")")
	return errNotRun
}

// retire ends a bash that is well, but cannot go on with its files. It may be able to
// write its state in another one.
func (b *bash) retire(ctx context.Context, why string) {
	if !b.isSaved() && b.exchange.RenameState() == nil {
		b.trySave(ctx, "") // Back is not needed: the state's directory is known here.
	}
	b.giveUp(why)
}

// giveUp ends a bash that is of no more use.
func (b *bash) giveUp(failure string) {
	b.obituary.failure = failure
	_ = b.conn.Signal(syscall.SIGKILL) // Done is what is waited for.
	<-b.conn.Done()
}

// running is a command that was rendered.
type running struct {
	*ipc.Run
	req     command.Request
	place   place
	call    ipc.Call
	monitor *capture.Monitor
	inlet   *inlet // what it reads, if that comes in the shell; else nil
	started time.Time
	clock   cpuClock
	born    uint64 // when it was sent, as proc.Now has it
	limits  limits.Limits
	end     ending
	forkEnd ipc.ForkEnd // if the fork saves its state
	forkErr error

	handOver chan struct{} // has a token when somebody wants the command handed over
	stuck    bool          // a Writer of the caller's still reads the captures
}

// ending is how a wait ended: with a record, or because bash died, or because
// the command was stopped; a stopped command may have a record too.
type ending struct {
	record   ipc.Record
	pipeline []int
	reported bool
	died     bool
	cause    error // why it was stopped
	handed   error // why it is handed over
	late     bool  // that is for its HandOverAfter
	outcome  interrupt.Outcome
}

// render puts the command into files.
func (b *bash) render(req command.Request, where place, started time.Time) (*running, error) {
	anew := b.back == "" && req.Dir == "" && b.inDeadDir()
	if anew {
		b.back = b.pwd
	}
	if b.back != "" {
		if err := b.checkDir(b.back); err != nil {
			// The script must not run elsewhere. The next one may: Dir tells.
			b.back = b.existing(b.back)
			return nil, err
		}
	}
	call := ipc.Call{
		ID: environ.NewID(), Script: req.Script, Env: req.Env, Unset: req.Unset, Status: b.status, Back: b.back, Anew: anew,
		Inner: where.inner, Fork: where.fork, Aside: b.putsAside(&where), Names: b.nameBuiltins(&where),
		Enable: b.disabled, Traps: where.traits.Traps && where.fork == nil,
		Stdin: req.Stdin != nil || b.opts.StdinInShell, // The shell's, or one that is read in the shell: it runs no other request.
	}
	from := b.dir()
	if req.Dir != "" {
		call.Dir = req.Dir
		if !filepath.IsAbs(call.Dir) {
			call.Dir = filepath.Join(from, call.Dir)
		}
		if err := b.checkDir(call.Dir); err != nil {
			return nil, err
		}
	}
	if b.poisoned {
		call.Before = append(call.Before, string(call.Names)+"eval '[[ x ]]' 2>/dev/null")
	}
	var in *inlet
	if req.Stdin != nil && b.opts.StdinInShell {
		var err error
		if in, err = b.newInlet(req.Stdin); err != nil {
			return nil, err
		}
		call.Input = in.path
	}
	run, err := b.exchange.Begin(call, req.MergeStderr)
	if err != nil {
		in.end()
		return nil, err
	}
	b.pwd, b.back, b.current = from, "", call
	return &running{
		Run: run, req: req, place: where, call: call, inlet: in,
		limits: limits.Limits{
			Started: started, Timeout: limits.Pick(req.Timeout, b.opts.Timeout), Idle: limits.Pick(req.IdleTimeout, b.opts.IdleTimeout),
			HandOver: req.HandOverAfter,
		},
		started: started,
		monitor: capture.NewMonitor(run.Outputs, req.Stdout, req.Stderr),
	}, nil
}

// nameBuiltins returns how to reach bash's own builtins past functions that the script
// names like them. What a script in a fork defines comes to bash later, if at all.
func (b *bash) nameBuiltins(p *place) script.Names {
	names := b.exchange.Names
	if names == script.ViaBuiltin && p.traits.BuiltinFunction {
		names = script.ViaCommand
	}
	if names == script.ViaCommand && p.traits.CommandFunction {
		names = script.Plain
	}
	if p.fork == nil {
		b.exchange.Names = names
	}
	return names
}

// firstTick is when to look after the output for the first time. Most commands
// are through by then.
const firstTick = 2 * time.Millisecond

// wait waits for the first of: bash's report, bash's death, the end of ctx, a
// limit.
func (b *bash) wait(ctx context.Context, r *running) (end ending) {
	mute, still := muteness{b: b, r: r}, stillness{b: b, r: r}
	var cause error // why look has seen enough
	why := r.Await(ctx, ipc.Wait{
		Look: func() (time.Duration, bool) {
			r.clock.begin(b)
			again := r.monitor.Look()
			switch cause = r.limits.Exceeded(r.monitor.Quiet()); {
			case cause != nil:
			case r.limits.HandOver > 0 && time.Since(r.started) >= r.limits.HandOver:
				cause = ErrHandedOver
			case mute.noticed():
				cause = errMute
			case still.noticed():
				cause = errStoodStill
			}
			return r.limits.Next(again, r.monitor.Quiet()), cause != nil
		},
		First: r.limits.Next(firstTick, 0),
		Asked: r.handOver,
	})
	switch {
	case why == ipc.Reported:
		end, _ = r.reported()
		return end
	case why == ipc.Ended, cause == errMute:
		if _, said := b.conn.Said(); mute.closed && bytes.HasSuffix(said, []byte("exit\n")) {
			b.obituary.failure = wentBack // There bash says so at end-of-file, and nowhere else.
		}
		return ending{died: true}
	case why == ipc.Asked, cause == ErrHandedOver:
		return ending{handed: ErrHandedOver, late: cause != nil}
	case why == ipc.GaveUp:
		return b.stop(ctx, r, context.Cause(ctx))
	case r.req.HandOver && cause != errStoodStill:
		return ending{handed: cause}
	}
	return b.stop(ctx, r, cause)
}

func (r *running) reported() (ending, bool) {
	rec, pipeline, ok := r.Record()
	return ending{record: rec, pipeline: pipeline, reported: ok}, ok
}

// stop ends the command, unless its report is there: the record wins.
func (b *bash) stop(ctx context.Context, r *running, cause error) ending {
	if end, ok := r.reported(); ok {
		return end
	}
	target := &target{b: b, r: r}
	end := ending{cause: cause, outcome: interrupt.Stop(r.ladder(b.opts), target)}
	if rec, _, ok := r.Record(); ok {
		end.record, end.reported = rec, true
	}
	end.died = b.dead()
	return end
}

// writerPatience is how long Writers are waited for when the command was stopped
// or the caller has given up.
const writerPatience = time.Second

// collect makes the Result: what was written, how it ended, what it cost.
func (b *bash) collect(ctx context.Context, r *running) (command.Result, error) {
	end := r.end
	res := command.Result{Started: r.started}
	// What bash, or a fork, has written at its end may take the room that the captures had.
	if b.dead() {
		_, _ = b.exchange.SavedAtExit() // Bury looks at it.
	}
	if f := r.place.fork; f != nil && f.Save {
		r.forkEnd, r.forkErr = r.ForkEnd()
	}
	res.Receipt.Leftover = b.leftover()
	if end.cause == nil {
		res.Receipt.Leftover = b.awaitSubstitutions(ctx, r, res.Receipt.Leftover)
	}
	diskErr := r.monitor.Full()
	writeErr := r.monitor.Finish(ctx, end.cause != nil, writerPatience)

	var readErr error
	res.Stdout, res.Stderr, readErr = r.Read(b.opts.OutputLimit)
	if errors.Is(writeErr, ipc.ErrWriterStuck) {
		r.Abandon()
	} else {
		b.spoolOutput(r, &res)
		b.shell.tender.Tend(r.Release())
	}
	res.Elapsed = time.Since(r.started)
	res.Receipt.User, res.Receipt.System = r.clock.end(b)

	b.commands++
	if end.reported {
		b.settle(ctx, r)
	}
	if r.place.fork != nil {
		res.Receipt.NotKept = b.takeOver(r, len(res.Receipt.Leftover) > 0)
	}
	b.saved.since.add(&r.place)
	err := b.verdict(ctx, r, &res)
	if res.ExitCode != 0 {
		res.Denied = transport.DeniedBy(b.conn, res.ExitCode, res.Stderr.Bytes(), res.Stdout.Bytes())
	}
	if err == nil {
		err = errors.Join(b.lostStatus(r, &res, diskErr), readErr, writeErr, r.inlet.failure())
	}
	return res, err
}

// lostStatus returns what the disk did to the command, if anything. A script that
// reports from inside of its eval and could not has no exit code: what bash says
// then is that it could not write.
func (b *bash) lostStatus(r *running, res *command.Result, diskErr error) error {
	if !r.call.Inner || !r.end.reported || r.end.pipeline != nil || r.call.Fork != nil && r.end.record.Status != 1 {
		return diskErr
	}
	if diskErr == nil && r.Disturbed() {
		diskErr = &ipc.DiskError{Dir: b.exchange.Path(), Err: errStatusLost}
	}
	if diskErr != nil {
		res.ExitCode, res.Receipt.Signal, res.Receipt.Pipeline = command.CodeUnknown, 0, nil
	}
	return diskErr
}

var errStatusLost = fmt.Errorf("%w while the command ran, and the exit code of the command with it", ipc.ErrDeleted)

// settle takes over what bash said about itself.
func (b *bash) settle(ctx context.Context, r *running) {
	rec := r.end.record
	b.status = rec.Status
	before := b.pwd
	b.pwd = b.trueDir(rec.Dir)
	b.current = ipc.Call{}
	if r.call.Dir != "" && b.sameDir(b.pwd, r.call.Dir) {
		b.back = before // The request's directory was for this command alone.
		b.current = ipc.Call{ID: r.call.ID, Dir: r.call.Dir}
	}
	if r.call.Fork != nil {
		return // Bash itself is as it was otherwise.
	}
	// After a syntax error inside of [[ ]], bash (5.2) takes the next [[ for
	// another one, however right it is.
	b.disabled = r.place.traits.Enable
	b.poisoned = rec.Status != 0 && r.place.traits.Test
	b.monitor = rec.Has("monitor")
	b.switchOff(ctx, rec)
}

// verdict says how the command ended. The order is the rule: a record that was
// seen before any signal, then a stop, then bash's death.
func (b *bash) verdict(ctx context.Context, r *running, res *command.Result) error {
	end := r.end
	switch {
	case end.cause != nil:
		stopped := interrupt.NewError(ctx, end.cause, end.outcome)
		res.ExitCode = stopped.ExitCode()
		return stopped
	case end.reported:
		res.ExitCode = end.record.Status
		res.Receipt.Pipeline = end.pipeline
		if !r.call.Inner && !r.place.traits.Pipeline && !r.place.traits.Unreadable {
			res.Receipt.Pipeline = []int{end.record.Status}
		}
	default:
		exit := b.conn.Exit()
		_, stderr := b.conn.Said()
		if exit.Signal != 0 || b.obituary.failure != "" {
			res.ExitCode = command.CodeUnknown
			return &DeadError{Argv: b.argv(), Code: exit.Code, Signal: exit.Signal, Said: said(stderr), Reason: b.obituary.failure}
		}
		// The script ended bash. Its exit trap ran at bash's top level, with
		// bash's own streams, and belongs to this command.
		res.ExitCode = exit.Code
		if rec, ok := misplaced(&res.Stdout, r.call.ID); ok {
			res.ExitCode = rec.Status
		}
		appendOutput(&res.Stdout, b.exchange.Printed(), r.req.Stdout)
		appendOutput(&res.Stderr, b.withoutTraces(stderr), r.req.Stderr)
	}
	if res.ExitCode > 128 && res.ExitCode < 128+65 {
		res.Receipt.Signal = syscall.Signal(res.ExitCode - 128)
	}
	return nil
}
