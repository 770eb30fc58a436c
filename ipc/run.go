package ipc

import (
	"bytes"
	"context"

	"github.com/limpet-sh/limpet/internal/capture"
)

// Run is a command: it is begun, sent, awaited, and its outputs are read and released.
type Run struct {
	capture.Outputs
	x        *Exchange
	call     Call
	lines    string // for bash's stdin
	renewals int    // how often the files had been made anew by then

	record   Record // when it has come
	pipeline []int
	done     bool
}

// Begin puts a command into files; merge wants one stream for both. Give it back by
// Release, whether it is sent or not.
func (x *Exchange) Begin(c Call, merge bool) (*Run, error) {
	d := x.dir
	d.emptyEval()
	r := &Run{x: x, renewals: x.renewals}
	var err error
	if r.Outputs, err = d.pool.Take(merge); err != nil {
		return nil, d.broken(err)
	}
	c.stdout, c.stderr = r.Paths()
	if c.Traps && x.trapSet {
		c.Before = append([]string{noExitTrap}, c.Before...)
		x.trapSet = false
	}
	if err := d.writeCall(c); err != nil {
		r.Release()
		return nil, err
	}
	r.call, r.lines = c, d.lines(c)
	return r, nil
}

// writeCall writes what bash reads for a command.
func (d *dir) writeCall(c Call) error {
	if c.Status != 0 {
		if err := d.checkReturn(); err != nil {
			return err
		}
	}
	if c.Fork != nil {
		d.dropForkEnd()
		if err := d.writeFork(c); err != nil {
			return err
		}
	}
	return d.writeEval(d.evalScript(c))
}

// Send has bash run the command. An error means that bash has ended, or is about to.
func (r *Run) Send() error {
	r.x.dir.rewind()
	return r.x.send(r.lines)
}

// Unread reports whether bash has read nothing of what was sent. It may be asked when bash has
// ended.
func (r *Run) Unread() bool { return r.x.conn.Unread() >= len(r.lines) }

// Nudge sends the second line once more: a signal may have thrown that away, too.
func (r *Run) Nudge() error { return r.x.send(closing(r.call)) }

// Await waits until bash has reported on the command, or one of the other reasons to be woken.
func (r *Run) Await(ctx context.Context, w Wait) Wake {
	w.reported = r.Reported
	return r.x.await(ctx, w)
}

// Reported reports whether bash's report has come.
func (r *Run) Reported() bool {
	_, _, done := r.Record()
	return done
}

// Record returns bash's report on this command if it has come, with the status
// of the command itself and its pipeline where that was asked for.
func (r *Run) Record() (rec Record, pipeline []int, done bool) {
	if !r.done {
		r.record, r.done = r.x.dir.reported(r.call.ID)
		if r.done {
			r.readInner()
		}
	}
	return r.record, r.pipeline, r.done
}

// readInner reads what was reported from inside of the script's eval, or in its place.
func (r *Run) readInner() {
	rec, id := &r.record, r.call.ID
	named := len(r.call.Env)+len(r.call.Unset) > 0
	fresh := r.call.Fork != nil && r.call.Fork.Fresh != nil
	if !r.call.Inner && r.call.Dir == "" && !named && !fresh {
		return
	}
	n, _ := r.x.dir.inner.f.ReadAt(r.x.dir.buf[:], 0) // Short at the end of file, as it mostly is.
	inner := r.x.dir.buf[:n]
	if why, ok := bytes.CutSuffix(inner, []byte(noDir(id)+"\n")); ok && r.call.Dir != "" {
		rec.NoDir = string(why)
		return
	}
	if name, ok := bytes.CutSuffix(inner, []byte(" "+isReadonly(id)+"\n")); ok && named {
		rec.Readonly = string(name)
		return
	}
	if fresh && string(inner) == unread(id)+"\n" {
		rec.Unread = true
		return
	}
	if !r.call.Inner {
		return
	}
	if status, pipeline, ok := parseInner(inner, id); ok {
		rec.Status, r.pipeline = status, pipeline
	}
}

// Disturbed reports whether the files were deleted, or replaced, since the command was begun.
func (r *Run) Disturbed() bool { return r.x.renewals != r.renewals || r.x.dir.damage() != none }
