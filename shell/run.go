package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// run is the life of a command in bash: render, write, wait, collect.
func (b *bash) run(ctx context.Context, req command.Request) (command.Result, error) {
	started := time.Now()
	nothing := command.Result{ExitCode: command.CodeUnknown, Started: started}
	if err := b.renewFiles(); err != nil {
		return nothing, b.withoutFiles(ctx, err)
	}
	if req.HandOver {
		b.save(ctx) // The session may have to go on with what there is now.
	}
	b.saveFirst(ctx, req.Script)
	r, lines, err := b.render(req, started)
	if err != nil {
		return nothing, b.withoutFiles(ctx, err)
	}
	if ctx.Err() != nil { // It may have ended while a bash was started, say.
		b.drop(r)
		return nothing, interrupt.NewError(ctx, context.Cause(ctx), interrupt.Outcome{ShellSurvived: true})
	}
	b.noteProcesses(started)
	r.born = proc.Now()
	b.conn.Forget()
	b.files.Rewind()
	done := b.shell.offered(r) // Before it runs: it may ask for it itself.
	if err := b.send(lines); err != nil {
		done()
		<-b.conn.Done() // It cannot read any more: it is about to be.
		b.drop(r)
		return nothing, errNotRun
	}
	r.end = b.wait(ctx, r)
	done()
	if r.end.handed != nil {
		return b.handOver(ctx, r)
	}
	if r.end.died && r.end.cause == nil && b.conn.Unread() >= len(lines) ||
		r.end.reported && b.couldNotRead(ctx, r) {
		b.drop(r)
		return nothing, errNotRun
	}
	if r.end.reported && r.end.record.NoDir != "" && r.end.cause == nil {
		b.drop(r)
		return nothing, b.noDir(r)
	}
	if r.end.reported && r.end.record.Status == forkFailed && b.waitsAfterFork(r) {
		b.giveUp("could not fork, after which it waits for its last job to end")
	}
	return b.collect(ctx, r)
}

// drop gives up a command that did not run.
func (b *bash) drop(r *running) {
	_ = r.monitor.Finish(context.Background(), false, 0) // Nothing was written: no Writer can be stuck.
	b.shell.keeper.Keep(r.Release())
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
	if b.saved.commands != b.commands && b.files.RenameState() == nil {
		b.trySave(ctx, "") // Back is not needed: the state's directory is known here.
	}
	b.giveUp(why)
}

// giveUp ends a bash that is of no more use.
func (b *bash) giveUp(failure string) {
	b.failure = failure
	_ = b.conn.Signal(syscall.SIGKILL) // Done is what is waited for.
	<-b.conn.Done()
}

// running is a command that was rendered.
type running struct {
	*ipc.Run
	req     command.Request
	call    ipc.Call
	monitor *ipc.Monitor
	started time.Time
	clock   cpuClock
	born    uint64 // when it was sent, as proc.Now has it
	renewed int    // how often the files had been made anew by then
	limits  limits.Limits
	end     ending

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
	outcome  interrupt.Outcome
}

// render puts the command into files and returns the lines for bash's stdin.
func (b *bash) render(req command.Request, started time.Time) (*running, string, error) {
	if b.back != "" {
		if err := b.checkDir(b.back); err != nil {
			// The script must not run elsewhere. The next one may: Dir tells.
			b.back = b.existing(b.back)
			return nil, "", err
		}
	}
	shape := b.shapeOf(req.Script)
	call := ipc.Call{
		ID: ipc.NewID(), Script: req.Script, Env: req.Env, Status: b.status, Back: b.back,
		Inner: shape.inner, Group: shape.group, Apart: shape.apart, Names: b.nameBuiltins(req.Script),
		Enable: b.disabled,
		Stdin:  req.Stdin != nil, // The shell's: it runs no other request.
	}
	from := b.dir()
	if req.Dir != "" {
		call.Dir = req.Dir
		if !filepath.IsAbs(call.Dir) {
			call.Dir = filepath.Join(from, call.Dir)
		}
		if err := b.checkDir(call.Dir); err != nil {
			return nil, "", err
		}
	}
	if strings.Contains(b.flags, "e") {
		call.Status = 0 // Under set -e nothing may fail, not even this.
	}
	if b.trapSet && strings.Contains(req.Script, "trap") {
		// The script is about traps: it shall find none of ours.
		call.Before = append(call.Before, ipc.NoExitTrap)
		b.trapSet = false
	}
	if b.poisoned {
		call.Before = append(call.Before, string(call.Names)+"eval '[[ x ]]' 2>/dev/null")
	}
	run, lines, err := b.files.Begin(call, req.MergeStderr)
	if err != nil {
		return nil, "", err
	}
	b.pwd, b.back, b.away = from, "", call.Dir
	return &running{
		Run: run, req: req, call: call,
		limits: limits.Limits{
			Started: started, Timeout: limits.Pick(req.Timeout, b.opts.Timeout), Idle: limits.Pick(req.IdleTimeout, b.opts.IdleTimeout),
		},
		started: started, renewed: b.renewals,
		monitor: ipc.NewMonitor(run.Outputs, req.Stdout, req.Stderr),
	}, lines, nil
}

// nameBuiltins notices that the script names a function "builtin" or
// "command", and returns how to reach bash's own from now on.
func (b *bash) nameBuiltins(script string) ipc.Names {
	defines := func(name string) bool {
		return strings.Contains(script, name+"()") || strings.Contains(script, name+" ()") ||
			strings.Contains(script, "function "+name)
	}
	if b.names == ipc.ViaBuiltin && defines("builtin") {
		b.names = ipc.ViaCommand
	}
	if b.names == ipc.ViaCommand && defines("command") {
		b.names = ipc.Plain
	}
	return b.names
}

// firstTick is when to look after the output for the first time. Most commands
// are through by then.
const firstTick = 2 * time.Millisecond

// wait waits for the first of: bash's report, bash's death, the end of ctx, a
// limit. Whoever wakes it, it looks for the report before anything else.
func (b *bash) wait(ctx context.Context, r *running) ending {
	tick := time.NewTimer(r.limits.Next(firstTick, 0))
	defer tick.Stop()
	poll := b.newPoll(0) // The tick looks, too.
	defer poll.stop()
	mute := muteness{b: b}
	for {
		select {
		case <-b.events():
			if end, ok := r.reported(); ok {
				return end
			}
			_ = b.renewFiles() // If that fails, the next event or the next command tries again.
		case <-poll.c:
			if end, ok := r.reported(); ok {
				return end
			}
			poll.again()
		case <-b.conn.Done():
			if end, ok := r.reported(); ok {
				return end
			}
			return ending{died: true}
		case <-ctx.Done():
			return b.stop(ctx, r, context.Cause(ctx))
		case <-r.handOver:
			if end, ok := r.reported(); ok {
				return end
			}
			return ending{handed: ErrHandedOver}
		case <-tick.C:
			if end, ok := r.reported(); ok {
				return end // Events are a promise of the kernel's. Believe the file.
			}
			_ = b.renewFiles() // As above.
			r.clock.begin(b)
			again := r.monitor.Look()
			if cause := r.limits.Exceeded(r.monitor.Quiet()); cause != nil {
				if r.req.HandOver {
					return ending{handed: cause}
				}
				return b.stop(ctx, r, cause)
			}
			if mute.noticed() {
				return ending{died: true}
			}
			tick.Reset(r.limits.Next(again, r.monitor.Quiet()))
		}
	}
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
	end := ending{cause: cause, outcome: b.opts.Ladder.Stop(target)}
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
	diskErr := r.monitor.Full()
	writeErr := r.monitor.Finish(ctx, end.cause != nil, writerPatience)

	var readErr error
	res.Stdout, res.Stderr, readErr = r.Read(b.opts.OutputLimit)
	if errors.Is(writeErr, ipc.ErrWriterStuck) {
		r.Abandon()
	} else {
		b.spoolOutput(r, &res)
		b.shell.keeper.Keep(r.Release())
	}
	res.Elapsed = time.Since(r.started)
	res.Receipt.User, res.Receipt.System = r.clock.end(b)
	res.Receipt.Leftover = b.leftover()

	b.commands++
	b.unsaved += r.req.Script + "\n"
	if end.reported {
		b.settle(r)
	}
	err := b.verdict(ctx, r, &res)
	if res.ExitCode != 0 {
		res.Denied = transport.DeniedBy(b.conn, res.ExitCode, res.Stderr.Bytes(), res.Stdout.Bytes())
	}
	if err == nil {
		err = errors.Join(b.lostStatus(r, &res, diskErr), readErr, writeErr)
	}
	return res, err
}

// lostStatus returns what the disk did to the command, if anything. A script that
// reports from inside of its eval and could not has no exit code: what bash says
// then is that it could not write.
func (b *bash) lostStatus(r *running, res *command.Result, diskErr error) error {
	if !r.call.Inner || !r.end.reported || r.end.pipeline != nil {
		return diskErr
	}
	if diskErr == nil && (b.renewals != r.renewed || b.files.Damage() != ipc.None) {
		diskErr = &ipc.DiskError{Dir: b.files.Path(), Err: errStatusLost}
	}
	if diskErr != nil {
		res.ExitCode, res.Receipt.Signal, res.Receipt.Pipeline = command.CodeUnknown, 0, nil
	}
	return diskErr
}

var errStatusLost = fmt.Errorf("%w while the command ran, and the exit code of the command with it", ipc.ErrDeleted)

// settle takes over what bash said about itself.
func (b *bash) settle(r *running) {
	rec := r.end.record
	b.status, b.flags = rec.Status, rec.Flags
	// After a syntax error inside of [[ ]], bash (5.2) takes the next [[ for
	// another one, however right it is.
	b.disabled = strings.Contains(r.req.Script, "enable")
	b.poisoned = rec.Status != 0 && strings.Contains(r.req.Script, "[[")
	before := b.pwd
	b.pwd = b.trueDir(rec.Dir)
	if r.call.Dir != "" && b.sameDir(b.pwd, r.call.Dir) {
		b.back = before // The request's directory was for this command alone.
	}
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
		if !r.call.Inner {
			res.Receipt.Pipeline = []int{end.record.Status}
		}
	default:
		exit := b.conn.Exit()
		_, stderr := b.conn.Said()
		if exit.Signal != 0 || b.failure != "" {
			res.ExitCode = command.CodeUnknown
			return &DeadError{Argv: b.argv(), Code: exit.Code, Signal: exit.Signal, Said: said(stderr), Reason: b.failure}
		}
		// The script ended bash. Its exit trap ran at bash's top level, with
		// bash's own streams, and belongs to this command.
		res.ExitCode = exit.Code
		if rec, ok := misplaced(&res.Stdout, r.call.ID); ok {
			res.ExitCode = rec.Status
		}
		appendOutput(&res.Stdout, b.files.Printed(), r.req.Stdout)
		appendOutput(&res.Stderr, b.withoutTraces(stderr), r.req.Stderr)
	}
	if res.ExitCode > 128 && res.ExitCode < 128+65 {
		res.Receipt.Signal = syscall.Signal(res.ExitCode - 128)
	}
	return nil
}
