package shell

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
)

// errNotRun means that bash did not read the command, which therefore did not
// run and can be run again: bash had ended a moment before, the eval script or
// an output file was deleted, bash may open no more files (ulimit -n), or none
// by that name (set -r).
var errNotRun = errors.New("could not read the command")

// couldNotRead reports whether bash itself, rather than the command, complains
// that it could not read the command's files, and replaces bash if so.
func (b *bash) couldNotRead(ctx context.Context, r *running) bool {
	if rec := r.end.record; rec.Status != 1 && rec.Status != 127 && rec.NoDir == "" {
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
		at := strings.LastIndex(line, b.files.Path())
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
	if text := out.String() + errs.String(); err == nil && !b.mayDisable(r.req.Script) && b.lacksBuiltin(text, "eval") && !b.reads(ctx) {
		return text
	}
	return ""
}

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
	if b.names == ipc.ViaBuiltin {
		return strings.Contains(text, ": builtin: "+name+": ")
	}
	return strings.Contains(text, ": "+name+": ")
}

// mayDisable reports whether the script, or a function that it may call, has the word
// enable. A script that has run must not run again because of what it has disabled.
func (b *bash) mayDisable(script string) bool {
	return ipc.HasWord(script, "enable") || b.saved.state.Mentions("enable")
}

// reads reports whether bash can read and run a script.
func (b *bash) reads(ctx context.Context) bool {
	id := ipc.NewID()
	lines, err := b.files.Probe(b.names, id)
	if err != nil {
		return true // That has another reason, of which the next command hears.
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	rec, err := b.exchange(ctx, id, lines)
	return err != nil || rec.Status == ipc.ProbeStatus
}

// forkFailed is the status of a command that bash threw away since it could not fork.
const forkFailed = 254

// waitsAfterFork reports whether bash waits for its last job to end, instead of reading
// on: after a fork that failed, as by "ulimit -u", it takes that job (5.2) for one that
// runs in the foreground, as soon as it runs a builtin. Nothing wakes it from that.
func (b *bash) waitsAfterFork(r *running) bool {
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
	b.away = ""
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
