package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
)

// Read reads a file, which must be as the entry says, from the state's offset on, if the bytes before it have the state's sum;
// else from its beginning. It calls to with chunk after chunk, which are valid until to returns, and returns the size and the sum of
// the whole. The error is ErrChanged if the file is another one when it was read.
func (l *Local) Read(ctx context.Context, root, path string, e Entry, from State, to func(offset int64, b []byte) error) (End, error) {
	end, err := l.read(ctx, root, path, e, from, to)
	if called, ok := errors.AsType[*calledError](err); ok {
		return end, called.error
	}
	if err != nil && ctx.Err() == nil {
		err = l.wrong("reading", root, path, err)
	}
	return end, err
}

// calledError is what the caller's function returned.
type calledError struct{ error }

func (l *Local) read(ctx context.Context, root, path string, e Entry, from State, to func(offset int64, b []byte) error) (end End, err error) {
	if err := checkPath(path); err != nil {
		return end, err
	}
	top, err := l.open(root)
	if err != nil {
		return end, err
	}
	defer top.Close() // Nothing was written.
	before, err := top.Lstat(orDot(path))
	if err != nil {
		return end, err
	}
	if now := entryOf("", before); now.Kind != File || now.Size != e.Size || now.Time != e.Time {
		return end, ErrChanged
	}
	f, err := openSame(top, path, os.O_RDONLY, before)
	if err != nil {
		return end, err
	}
	if f == nil {
		return end, ErrChanged
	}
	defer f.Close() // As above.
	sum := sha256.New()
	offset := from.Offset
	if offset > 0 {
		if err := sumOf(ctx, sum, io.NewSectionReader(f, 0, offset)); err != nil {
			return end, err
		}
		if !bytes.Equal(sum.Sum(nil), from.Sum) {
			sum.Reset()
			offset = 0
		}
	}
	b := make([]byte, mostChunk)
	for offset < e.Size {
		if ctx.Err() != nil {
			return end, context.Cause(ctx)
		}
		n, err := f.ReadAt(b[:min(int64(len(b)), e.Size-offset)], offset)
		if n == 0 && errors.Is(err, io.EOF) {
			return end, ErrChanged // It is shorter now.
		}
		if n == 0 {
			return end, err
		}
		_, _ = sum.Write(b[:n]) // It cannot fail.
		if err := to(offset, b[:n]); err != nil {
			return end, &calledError{err}
		}
		offset += int64(n)
	}
	after, err := f.Stat()
	if err != nil {
		return end, err
	}
	more, _ := f.ReadAt(b[:1], e.Size) // An error is no more, either.
	if more > 0 && after.Size() == 0 {
		return end, errUnsized
	}
	if more > 0 || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return end, ErrChanged
	}
	return End{Size: e.Size, Sum: sum.Sum(nil)}, nil
}

// sumOf adds what there is to read to a sum.
func sumOf(ctx context.Context, sum hash.Hash, r io.Reader) error {
	b := make([]byte, mostChunk)
	for {
		n, err := r.Read(b)
		_, _ = sum.Write(b[:n]) // It cannot fail.
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}
