package transfer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
)

// Remote reads and writes the files of another machine, which is not trusted. Its methods are safe for concurrent use.
type Remote struct {
	Asks *jsonhttp.Client

	// Lost reports whether an error is that of a connection: the other side was not asked, or its answer did not come.
	Lost func(err error) bool

	// Patience is how long an answer may take, or the next bytes of one, and connecting again with it. 0 means 10 min.
	Patience time.Duration

	flight chan struct{} // has one for each chunk that is under way
	once   sync.Once
}

// mostFlying bounds the chunks that are under way, of all files.
const mostFlying = 16

const defaultPatience = 10 * time.Minute

var errStalled = errors.New("the other machine does not answer")

// patient returns a context that ends unless again is called each now and then.
func (r *Remote) patient(ctx context.Context) (_ context.Context, again, stop func()) {
	patience := r.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(errStalled) })
	return ctx, func() { timer.Reset(patience) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// call asks, and reads an answer. It asks again if the answer breaks off.
func (r *Remote) call(ctx context.Context, op string, in request, value any) (err error) {
	for range mostVain {
		if err = r.callOnce(ctx, op, in, value); err == nil || ctx.Err() != nil || !r.Lost(err) {
			return err
		}
	}
	return err
}

// callOnce is call with an answer that is whole, and bounded.
func (r *Remote) callOnce(ctx context.Context, op string, in request, value any) error {
	ctx, _, stop := r.patient(ctx)
	defer stop()
	line, err := json.Marshal(in)
	if err != nil {
		return err
	}
	content := [][]byte{line}
	if in.chunk != nil {
		content = [][]byte{append(line, '\n'), in.chunk}
	}
	a, err := r.Asks.Open(ctx, jsonhttp.Request{Method: http.MethodPost, Path: "/files/" + op, Content: content, Again: true})
	if err != nil {
		return r.said(ctx, err)
	}
	defer a.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostMessage+1))
	if err != nil {
		return a.Broken(err)
	}
	if len(b) > mostMessage || json.Unmarshal(b, value) != nil {
		return fmt.Errorf("%w: %s", errStream, op)
	}
	return nil
}

// said marks an error as what the other side says, unless it was not asked, or did not answer.
func (r *Remote) said(ctx context.Context, err error) error {
	if ctx.Err() != nil || r.Lost(err) {
		return err
	}
	return &FarError{err}
}

// Stat is that of [Local].
func (r *Remote) Stat(ctx context.Context, path string) (n Named, err error) {
	err = r.call(ctx, "stat", request{Root: Bytes(path)}, &n)
	const most = 2 * mostPath // They are sent back, each time.
	if err == nil && len(n.Root)+len(n.Path)+len(n.Entry.What) > most {
		err = fmt.Errorf("%w: stat", errStream)
	}
	return n, err
}

// List is that of [Local].
func (r *Remote) List(ctx context.Context, root, dir, after string) (p Page, err error) {
	err = r.call(ctx, "list", request{Root: Bytes(root), Path: Bytes(dir), After: Bytes(after)}, &p)
	return p, err
}

// Prepare is that of [Local].
func (r *Remote) Prepare(ctx context.Context, root, dir string, entries []Entry) (all []Prepared, err error) {
	err = r.call(ctx, "prepare", request{Root: Bytes(root), Path: Bytes(dir), Entries: entries}, &all)
	if err == nil && len(all) != len(entries) {
		err = fmt.Errorf("%w: prepare", errStream)
	}
	return all, err
}

// Finish is that of [Local].
func (r *Remote) Finish(ctx context.Context, root, dir string, e Entry) error {
	return r.call(ctx, "finish", request{Root: Bytes(root), Path: Bytes(dir), Entry: e}, &struct{}{})
}

// Read is that of [Local].
func (r *Remote) Read(ctx context.Context, root, path string, e Entry, from State, to func(offset int64, b []byte) error) (End, error) {
	ctx, again, stop := r.patient(ctx)
	defer stop()
	in := request{Root: Bytes(root), Path: Bytes(path), Entry: e, Offset: from.Offset, Sum: from.Sum}
	a, err := r.Asks.Open(ctx, jsonhttp.Request{Method: http.MethodPost, Path: "/files/read", Content: in, Again: true})
	if err != nil {
		return End{}, r.said(ctx, err)
	}
	defer a.Close()
	end, err := parse(a.Body, from.Offset, func(offset int64, b []byte) error {
		again()
		if offset+int64(len(b)) > e.Size {
			return errLonger
		}
		return to(offset, b)
	})
	called, isCalled := errors.AsType[*calledError](err)
	switch {
	case isCalled:
		return End{}, called.error
	case errors.Is(err, errStream):
		return End{}, err
	case err != nil:
		return End{}, a.Broken(err)
	case end.Changed:
		return End{}, &Error{Op: "reading", Path: string(Bytes(":") + in.Root + "/" + in.Path), Err: ErrChanged}
	case end.Error != "":
		return End{}, &FarError{errors.New(end.Error)}
	}
	return end.End, nil
}

// Open is that of [Local].
func (r *Remote) Open(ctx context.Context, root, path string, e Entry, resume bool) (Writer, State, error) {
	r.once.Do(func() { r.flight = make(chan struct{}, mostFlying) })
	w := &remoteWriter{r: r, in: request{Root: Bytes(root), Path: Bytes(path), Entry: e, ID: rand.Text()}, restart: !resume}
	var have State
	if resume {
		if err := r.call(ctx, "begin", w.in, &have); err != nil {
			return nil, have, err
		}
		if have.Offset < 0 || have.Offset > e.Size {
			return nil, have, errStream
		}
	}
	w.life, w.end = context.WithCancelCause(ctx)
	return w, have, nil
}
