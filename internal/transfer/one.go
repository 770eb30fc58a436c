package transfer

import (
	"cmp"
	"context"
	"errors"
)

// mostVain bounds the tries of a request or a file that bring nothing.
const mostVain = 3

// file copies a file. If the connection is lost it goes on where it was.
func (w *walk) file(ctx context.Context, j job) {
	from, to := cmp.Or(j.from, j.dir.fromOf(j.entry)), j.dir.toOf(j.entry)
	w.count(func(r *Result) { r.Now = to })
	resume := j.part
	var err error
	var last int64 // how much there was at the last try
	for vain, behind := 0, 0; vain < mostVain && behind < mostVain && ctx.Err() == nil; vain++ {
		var began int64
		if began, err = w.try(ctx, from, to, j.entry, resume); err == nil {
			w.count(func(r *Result) { r.Files++ })
			return
		}
		if errors.Is(err, errBehind) {
			behind++
		} else if !w.opts.Lost(err) {
			break
		}
		if began > last {
			vain, last = 0, began
		}
		resume = true
	}
	w.failed(ctx, to, err)
}

// try copies a file, and returns how much of it there was before.
func (w *walk) try(ctx context.Context, from, to string, e Entry, resume bool) (began int64, err error) {
	file, have, err := w.Copier.to.Open(ctx, w.to, to, e, resume)
	if err != nil {
		return 0, err
	}
	end, err := w.Copier.from.Read(ctx, w.from, from, e, have, func(offset int64, b []byte) error {
		if err := file.Write(ctx, offset, b); err != nil {
			return err
		}
		w.count(func(r *Result) { r.Bytes += int64(len(b)) })
		return nil
	})
	if err == nil && end.Size != e.Size {
		err = ErrChanged
	}
	switch {
	case err == nil:
		return have.Offset, file.Commit(ctx, end)
	case noRoom(context.Cause(ctx)): // Another file has found that out: this one must not take it.
		file.Discard()
	case ctx.Err() != nil, w.opts.Lost(err), errors.Is(err, errBehind):
		file.Keep()
	default:
		file.Discard()
	}
	return have.Offset, err
}
