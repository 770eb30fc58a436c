package shell

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/ipc"
)

// errNotRun means that bash did not read the command, which therefore did not
// run and can be run again: bash had ended a moment before, the eval script or
// an output file was deleted, bash may open no more files (ulimit -n), or none
// by that name (set -r).
var errNotRun = errors.New("could not read the command")

// notRun returns why nothing of the script ran, if that is so, and gives the command up.
func (b *bash) notRun(ctx context.Context, r *running) error {
	rec, stopped := &r.end.record, r.end.cause != nil
	switch {
	case b.endedBefore(r) || b.couldNotRead(ctx, r):
		b.drop(r)
		return errNotRun
	case !r.end.reported || stopped:
		return nil
	case b.maybeNotRun(r):
		b.giveUp("complained that it has too few descriptors, and it is not known whether the command ran")
		r.end = ending{died: true}
		return nil
	case rec.Unread:
		b.drop(r)
		b.retire(ctx, errNotRun.Error())
		return errNotRun
	case rec.NoDir != "":
		b.drop(r)
		return b.noDir(r)
	case rec.Readonly != "":
		b.drop(r)
		b.current = ipc.Call{}
		return &command.EnvError{Name: rec.Readonly, Err: command.ErrReadonly}
	}
	return nil
}

// endedBefore reports whether bash ended before it read anything of the command.
func (b *bash) endedBefore(r *running) bool {
	return r.end.died && r.end.cause == nil && r.Unread()
}

// couldNotRead reports whether bash itself, rather than the command, complains
// that it could not read the command's files, and replaces bash if so.
func (b *bash) couldNotRead(ctx context.Context, r *running) bool {
	if rec := r.end.record; !r.end.reported || rec.Status != 1 && rec.Status != 127 && rec.NoDir == "" {
		return false
	}
	complaint := b.complaint(ctx, r)
	if complaint == "" {
		return false
	}
	b.retire(ctx, errNotRun.Error()+": "+said([]byte(complaint)))
	return true
}

// complaint returns what bash says if one of the session's files cannot be opened, or if
// a builtin was disabled with which it reads them. What traces (set -x) and ERR traps
// print may look like it.
func (b *bash) complaint(ctx context.Context, r *running) string {
	_, stderr := b.conn.Said()
	for line := range strings.Lines(string(stderr)) {
		if b.lacksBuiltin(line, ".") && !b.reads(ctx) {
			return line
		}
		if cannotRedirect(line) && !mayStarve(&r.place.traits) {
			return line // It could not put its own streams aside, before it opened any file.
		}
		at := strings.LastIndex(line, b.exchange.Path())
		if at < 0 {
			continue
		}
		name, why, found := strings.Cut(line[at:], ": ")
		if found && !strings.ContainsAny(name, " '") && refusal(strings.TrimSpace(why)) {
			return line
		}
	}
	// Where the script's own eval is missing, the script's streams are there already.
	if stdout, stderr := r.Sizes(); stdout+stderr == 0 || stdout+stderr > complaintMax {
		return ""
	}
	out, errs, err := r.Read(complaintMax)
	if text := out.String() + errs.String(); err == nil && !mayDisable(&r.place.traits) && b.lacksBuiltin(text, "eval") && !b.reads(ctx) {
		return text
	}
	return ""
}

// maybeNotRun reports whether bash complains that it could not put its streams aside, about a
// script that may itself be why. Bash may have said so behind it, in PROMPT_COMMAND for one, and
// what has run must not run again.
func (b *bash) maybeNotRun(r *running) bool {
	_, stderr := b.conn.Said()
	if r.end.record.Status != 1 || !mayStarve(&r.place.traits) {
		return false
	}
	for line := range strings.Lines(string(stderr)) {
		if cannotRedirect(line) {
			return true
		}
	}
	return false
}

// cannotRedirect reports whether bash says so that it has no descriptor left to keep what a
// redirection hides.
func cannotRedirect(line string) bool {
	_, why, found := strings.Cut(line, "cannot duplicate fd: ")
	return found && refusal(strings.TrimSpace(why))
}

// mayStarve reports whether a script of these traits may have taken the last descriptors from
// bash.
func mayStarve(t *script.Traits) bool { return t.Limits || t.Descriptors || t.Unknown || t.Unreadable }

// complaintMax is more than bash says of a builtin that is missing, in bytes.
const complaintMax = 512

// lacksBuiltin reports whether the text may be what bash says when limpet calls a builtin
// that was disabled (enable -n): a line in some language, with the builtin's name. What a
// script says that calls it by its bare name differs, as long as there is no function named
// builtin.
func (b *bash) lacksBuiltin(text, name string) bool {
	if strings.Count(text, "\n") != 1 {
		return false
	}
	if b.exchange.Names == script.ViaBuiltin {
		return strings.Contains(text, ": builtin: "+name+": ")
	}
	return strings.Contains(text, ": "+name+": ")
}

// mayDisable reports whether a script of these traits may have disabled a builtin. One that
// has run must not run again because of that.
func mayDisable(t *script.Traits) bool { return t.Enable || t.Unknown || t.Unreadable }

// reads reports whether bash can read and run a script.
func (b *bash) reads(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return b.exchange.Reads(ctx)
}

// forkFailed is the status of a command that bash threw away since it could not fork.
const forkFailed = 254

// waitsAfterFork reports whether bash waits for its last job to end, instead of reading
// on: after a fork that failed, as by "ulimit -u", it takes that job (5.2) for one that
// runs in the foreground, as soon as it runs a builtin. Nothing wakes it from that.
func (b *bash) waitsAfterFork(r *running) bool {
	if !r.end.reported || r.end.record.Status != forkFailed {
		return false
	}
	const most = 64 << 10
	stdout, stderr, err := r.Read(most)
	if err != nil || !strings.Contains(stderr.String()+stdout.String(), ": fork: ") {
		return false
	}
	reported := proc.Now()
	const patience, pause = 200 * time.Millisecond, 5 * time.Millisecond // It is back at once, or never.
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pause) {
		if proc.AwaitsInput(b.id.PID, b.stdin) || b.dead() {
			return false
		}
	}
	// A child that came since is one that bash waits for rightly, as in PROMPT_COMMAND.
	return proc.Waits(b.id.PID) && !slices.ContainsFunc(proc.Children(b.id.PID), func(st proc.Stat) bool { return st.Start >= reported })
}

// noDir says why bash could not go to the directory of the request: it is there on this
// machine, but not where bash is, or not for whom it runs as.
func (b *bash) noDir(r *running) error {
	b.current = ipc.Call{}
	_, why, found := strings.Cut(r.end.record.NoDir, r.call.Dir+": ")
	why, _, _ = strings.Cut(why, "\n")
	if errno, ok := errnoOf(why); ok {
		return &DirError{Dir: r.call.Dir, Err: errno}
	}
	if !found {
		why = "bash cannot go there"
	}
	return &DirError{Dir: r.call.Dir, Err: errors.New(why)} // In another language, say.
}

// refusal reports whether the text is why bash could not open a file.
func refusal(why string) bool {
	_, ok := errnoOf(why)
	return ok || strings.HasPrefix(why, "restricted") || strings.HasPrefix(why, "cannot make pipe") || strings.HasPrefix(why, "cannot duplicate fd")
}

// errnoOf returns the error of open(2) or chdir(2) that bash names so.
func errnoOf(why string) (syscall.Errno, bool) {
	for _, errno := range []syscall.Errno{
		syscall.ENOENT, syscall.EACCES, syscall.EPERM, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC,
		syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.EFBIG,
	} {
		if strings.EqualFold(why, errno.Error()) {
			return errno, true
		}
	}
	return 0, false
}
