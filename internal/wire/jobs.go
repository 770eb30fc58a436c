package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/limpet-sh/limpet/internal/exact"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

// jobsHandle reaches the jobs of a session of another program.
type jobsHandle struct{ s *Session }

var _ jobs.Handle = jobsHandle{}

// Jobs returns what reaches the jobs of the session. That they can be had is found out by its methods. Those that have no context fail
// with ErrUnreachable if the program has not answered within 30 s, or within 6 min where the connection is dialled again when it is lost.
func (s *Session) Jobs() (jobs.Handle, error) { return jobsHandle{s}, nil }

// StartJob starts a job in the session.
func (s *Session) StartJob(ctx context.Context, spec jobs.Spec) (job jobs.Job, err error) {
	if spec.Transport != nil {
		return job, s.fail("start a job in", errNoTransport)
	}
	err = s.once(ctx, "start a job in", "/jobs", newJob{Spec: spec, Command: exact.String(spec.Command), Dir: exact.String(spec.Dir), Env: spec.Env}, &job)
	return job, err
}

// StartTerminal starts a program on a terminal of its own in the session. Get it from [Session.Terminals].
func (s *Session) StartTerminal(ctx context.Context, spec terminal.Spec) (info terminal.Info, err error) {
	if spec.Transport != nil {
		return info, s.fail("start a terminal in", errNoTransport)
	}
	err = s.once(ctx, "start a terminal in", "/terminals", newTerminal{Spec: spec, Argv: spec.Argv, Line: exact.String(spec.Line), Dir: exact.String(spec.Dir), Env: spec.Env, Record: exact.String(spec.Record)}, &info)
	return info, err
}

var errNoTransport = errors.New("where a program of another limpet runs is not for this one to say: leave the Transport out")

// once starts something, which is not to be asked for twice. The error is ErrMayHaveStarted if the answer is lost.
func (s *Session) once(ctx context.Context, op, path string, content, value any) error {
	a, err := s.open(ctx, op, path, content)
	unknown := jsonhttp.Sent(err)
	if err == nil {
		err = a.Decode(value)
		unknown = err != nil // It has started; its ID is lost.
	}
	if unknown {
		err = fmt.Errorf("%w: %w", err, ErrMayHaveStarted)
	}
	return s.worded(ctx, op, err)
}

// ask asks for something about jobs. The error is as it is.
func (s *Session) ask(ctx context.Context, op, path string, content, value any) error {
	a, err := s.open(ctx, op, path, content)
	if err != nil {
		return err
	}
	return a.Decode(value)
}

func (s *Session) open(ctx context.Context, op, path string, content any) (*jsonhttp.Answer, error) {
	if s.closed.Load() {
		return nil, s.fail(op, session.ErrClosed)
	}
	return s.c.open(ctx, jsonhttp.Request{Method: http.MethodPost, Path: below(s.name) + path, Content: content})
}

// call asks for something about a job; an empty id means about all of them. What did not do all has done some:
// the value then says what, beside the error.
func (h jobsHandle) call(ctx context.Context, op, id, path string, content, value any) error {
	if id != "" {
		path = "/" + url.PathEscape(id) + path
	}
	err := h.s.ask(ctx, op, "/jobs"+path, content, value)
	if p, ok := errors.AsType[*partly](err); ok {
		err = p.error
		_ = json.Unmarshal(p.value, value) // Else it says less.
	}
	return h.fault(op, id, err)
}

// soon is call for what does not wait for a job, and has no context: the error is ErrUnreachable if the program has not answered
// within the client's patience. It may do later what it was asked for.
func (h jobsHandle) soon(op, id, path string, content, value any) error {
	patience := h.s.c.patience
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, slowError(patience))
	defer cancel()
	return h.call(ctx, op, id, path, content, value)
}

// fault says with which job it was that a connection broke. What another program says is worded.
func (h jobsHandle) fault(op, id string, err error) error {
	if _, ok := errors.AsType[*jobs.Error](err); ok || err == nil {
		return err
	}
	return &jobs.Error{Op: op, ID: id, Err: err}
}

func (h jobsHandle) Get(id string) (job jobs.Job, err error) {
	err = h.soon("get", id, "/get", nil, &job)
	return job, err
}

func (h jobsHandle) List(filter jobs.Filter) (list []jobs.Job, err error) {
	err = h.soon("list", "", "/list", filter, &list)
	return list, err
}

func (h jobsHandle) Poll(id string, opts *jobs.PollOptions) (jobs.Polled, error) {
	var o jobs.PollOptions
	if opts != nil {
		o = *opts
	}
	var p polled
	err := h.soon("poll", id, "/poll", o, &p)
	if p.Binary {
		p.New, p.Last = string(p.Raw), texts(p.RawLast)
	}
	return p.Polled, err
}

func (h jobsHandle) Log(id string, opts jobs.LogOptions) (jobs.Log, error) {
	var l logged
	err := h.soon("log", id, "/log", opts, &l)
	if l.Binary {
		l.Text = string(l.Raw)
	}
	return l.Log, err
}

func (h jobsHandle) Search(id, pattern string, o jobs.SearchOptions) (found jobs.Found, err error) {
	err = h.soon("search", id, "/search", searched{o, pattern}, &found)
	return found, err
}

func (h jobsHandle) History(id string) (events []jobs.Event, err error) {
	err = h.soon("history", id, "/history", nil, &events)
	return events, err
}

func (h jobsHandle) Wait(ctx context.Context, o jobs.WaitOptions) (jobs.Waited, error) {
	began := time.Now()
	var got jobs.Waited
	err := h.call(ctx, "wait", "", "/wait", o, &got)
	if err != nil && ctx.Err() != nil {
		got.Reason, got.Took = jobs.WaitInterrupted, time.Since(began)
	}
	return got, err
}

func (h jobsHandle) Stop(ctx context.Context, id string) (stopped jobs.Stopped, err error) {
	err = h.call(ctx, "stop", id, "/stop", nil, &stopped)
	return stopped, err
}

func (h jobsHandle) StopAll(ctx context.Context, filter jobs.Filter) (list []jobs.Stopped, err error) {
	err = h.call(ctx, "stop", "", "/stop", filter, &list)
	return list, err
}

func (h jobsHandle) Write(id string, p []byte) (int, error) {
	var n wrote
	err := h.soon("write", id, "/write", p, &n)
	return n.Written, err
}

func (h jobsHandle) Submit(id, text string) error {
	return h.soon("submit", id, "/submit", []byte(text), &struct{}{})
}

func (h jobsHandle) CloseStdin(id string) error {
	return h.soon("close stdin of", id, "/eof", nil, &struct{}{})
}

func (h jobsHandle) Resize(id string, size jobs.Size) error {
	return h.soon("resize", id, "/resize", size, &struct{}{})
}

func (h jobsHandle) Forget(id string) error {
	return h.soon("forget", id, "/forget", nil, &struct{}{})
}

// Follow asks again, from where it was, when a connection breaks.
func (h jobsHandle) Follow(ctx context.Context, id string, offset int64) iter.Seq2[jobs.Chunk, error] {
	const op = "follow"
	return func(yield func(jobs.Chunk, error) bool) {
		for tries := 0; ; tries++ {
			err := h.follow(ctx, id, offset, func(c jobs.Chunk) bool {
				offset, tries = c.Offset+int64(len(c.Data)), 0
				return yield(c, nil)
			})
			switch {
			case err == nil:
				return
			case errors.Is(err, ErrMoved) && tries < mostMoves && h.s.c.Follow != nil && h.s.c.Follow(ctx):
				h.s.c.http.CloseIdleConnections() // They lead to the old one.
				continue
			case isOneOf(err, ErrGone, ErrUnreachable) && tries < len(pauses) && pause(ctx, pauses[tries]):
				continue
			}
			yield(jobs.Chunk{}, h.fault(op, id, err))
			return
		}
	}
}

// follow reads the stream over one connection. No error means that it was read to its end, or is not wanted any more.
func (h jobsHandle) follow(ctx context.Context, id string, offset int64, each func(jobs.Chunk) bool) error {
	a, err := h.s.c.open(ctx, jsonhttp.Request{
		Method: http.MethodGet, Path: below(h.s.name) + "/jobs/" + url.PathEscape(id) + "/output?from=" + strconv.FormatInt(offset, 10), Again: true,
	})
	if err != nil {
		return err
	}
	defer a.Close()
	for r := bufio.NewReader(a.Body); ; {
		f, err := readFrame(r)
		switch {
		case err != nil:
			return a.Broken(err)
		case f.stream == streamLast:
			var end last
			if err := json.Unmarshal(f.data, &end); err != nil {
				return fmt.Errorf("%w: what it says of the job makes no sense: %w", ErrUnreachable, err)
			}
			return end.Error.unpack()
		case !each(jobs.Chunk{Offset: f.offset, Data: f.data, Dropped: f.missed}):
			return nil
		}
	}
}
