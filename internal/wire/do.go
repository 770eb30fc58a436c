package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/session"
)

// pauses are those before the tries to get at a stream that broke, one after the other.
var pauses = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}

const (
	stopPatience     = 5 * time.Second // for what follows the end of a command that was stopped
	acceptPatience   = time.Second     // for the other program to take note of the command; else it is asked, and says if it waits elsewhere
	deadlinePatience = time.Second     // and to keep a deadline by itself
	writerPatience   = time.Second     // for a Writer of a command that was stopped
)

// Do runs a request in the session, and waits for it, as a session of this program does. If ctx
// ends the command is stopped. A connection that breaks costs nothing while the other program
// lives: the command is asked for by an id, runs once, and its output goes on where it was.
func (s *Session) Do(ctx context.Context, req command.Request) (command.Result, error) {
	return s.DoAt(ctx, "", req)
}

// DoAt is Do for a command that relies on what Look returned with that mark; see [session.Session.DoAt]. A program that does not know marks
// runs nothing. An empty mark relies on nothing.
func (s *Session) DoAt(ctx context.Context, mark string, req command.Request) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown}
	if err := req.Validate(); err != nil {
		return nothing, err
	}
	if s.closed.Load() {
		return nothing, s.fail("use", session.ErrClosed)
	}
	if ctx.Err() != nil {
		return nothing, fmt.Errorf("nothing ran: %w", context.Cause(ctx))
	}
	d := &doing{s: s, mark: mark, id: cmp.Or(req.ID, rand.Text()), req: req, end: make(chan came, 2), accepted: make(chan struct{}), fed: make(chan error, 2)}
	res, err := d.run(ctx)
	return res, d.ofCaller(ctx, err)
}

// doing is a request that is under way.
type doing struct {
	s   *Session
	id  string
	req command.Request

	mark string // empty: in whatever state the session is

	end      chan came     // what came of it: from the stream, and from one beside it that has no output
	accepted chan struct{} // closed when the other program has it
	sent     bool          // it was asked for, and no answer came
	fed      chan error    // what went wrong with stdin: the first counts

	at      [2]int64 // what is to come next of each stream
	failed  [2]error // of the Writers
	began   atomic.Int64
	stopped bool
}

// came is what came of a command, or that there is no telling.
type came struct {
	res command.Result
	err error
}

func (d *doing) run(ctx context.Context) (command.Result, error) {
	// The command ends by the other program's doing, also when ctx ends.
	life, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	if d.req.Stdin != nil {
		go d.feed(life)
	}
	if d.req.Stdout == nil && d.req.Stderr == nil {
		return d.runQuiet(life, ctx, giveUp)
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		res, err := d.follow(life, ctx)
		d.end <- came{res, err}
	}()
	var end came
	over, overdue := ctx.Done(), (<-chan time.Time)(nil)
	look := time.NewTicker(writerPatience)
	defer look.Stop()
	beside := false
	for waits := true; waits; {
		select {
		case end = <-d.end:
			waits = false
		case <-over:
			over, d.stopped = nil, true
			overdue = time.After(stopAfter(ctx))
		case <-overdue:
			go d.stop(life, giveUp, context.Cause(ctx))
		case <-look.C:
			if !beside && d.blocked() {
				beside = true
				go func() { // The stream is not read on until a Write returns.
					if res, err := d.once(life, ctx, -1, -1, func(frame) {}); err == nil {
						d.end <- res
					}
				}()
			}
		}
	}
	select {
	case <-wrote:
	default:
		d.letWrite(wrote, end)
	}
	return d.settled(wrote, end)
}

// runQuiet is run for a command without Writers, on this goroutine: nothing blocks here that the end of ctx does not end. A goroutine
// more, whose stack has to grow, takes a tenth of the time of a "true".
func (d *doing) runQuiet(life, ctx context.Context, giveUp context.CancelCauseFunc) (command.Result, error) {
	stopped := context.AfterFunc(ctx, func() {
		if pause(life, stopAfter(ctx)) {
			d.stop(life, giveUp, context.Cause(ctx))
		}
	})
	res, err := d.follow(life, ctx)
	d.stopped = !stopped()
	wrote := make(chan struct{})
	close(wrote)
	return d.settled(wrote, came{res, err})
}

// stopAfter is how long after the end of ctx to stop the command: the other program knows its deadline as well.
func stopAfter(ctx context.Context) time.Duration {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return deadlinePatience
	}
	return 0
}

// letWrite waits for a Writer that still writes: for as long as it takes, but for a command that
// was stopped.
func (d *doing) letWrite(wrote <-chan struct{}, end came) {
	if end.err == nil {
		<-wrote
		return
	}
	select {
	case <-wrote:
	case <-time.After(writerPatience):
	}
}

// settled adds what went wrong on this side, where nothing worse did.
func (d *doing) settled(wrote <-chan struct{}, end came) (command.Result, error) {
	if end.err != nil {
		return end.res, end.err
	}
	<-wrote
	for _, err := range d.failed {
		if err != nil {
			return end.res, err
		}
	}
	select {
	case err := <-d.fed:
		return end.res, fmt.Errorf("session: reading the command's stdin: %w", err)
	default:
	}
	return end.res, nil
}

// epoch is what the times of writes are counted from, by the monotonic clock. It is before the first of them, since 0 says that there
// is none.
var epoch = time.Now().Add(-time.Second)

// blocked reports whether a Write has not returned for long.
func (d *doing) blocked() bool {
	began := d.began.Load()
	return began != 0 && time.Since(epoch) >= time.Duration(began)+writerPatience
}

// follow asks for the command, and reads its output until its end, over as many connections as it
// takes. The error is that of the command, or that of the last try.
func (d *doing) follow(life, ctx context.Context) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown}
	var err error
	for try := 0; try < len(pauses); try++ {
		if !pause(life, pauses[try]) {
			err = context.Cause(life)
			break
		}
		before := d.at
		var end came
		if end, err = d.once(life, ctx, d.want(0), d.want(1), d.write, d.ask(ctx)...); err == nil {
			return end.res, end.err
		}
		if !isOneOf(err, ErrGone, ErrUnreachable) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) { // A transport gives up by itself.
			break
		}
		if d.at != before {
			try = -1 // It goes on.
		}
	}
	if d.begun() && isOneOf(err, ErrGone, ErrUnreachable) && !errors.Is(err, ErrMayHaveRun) { // Else a transport has said so.
		err = fmt.Errorf("%w: %w", err, ErrMayHaveRun)
	}
	return nothing, d.s.worded(life, "run in", err)
}

// begun reports whether the other program may have it.
func (d *doing) begun() bool {
	select {
	case <-d.accepted:
		return true
	default:
		return d.sent
	}
}

// pause waits, and reports false if ctx ends before that.
func pause(ctx context.Context, wait time.Duration) bool {
	if wait == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// ask is the request, for a try that is to make sure that the other program has it.
func (d *doing) ask(ctx context.Context) []any {
	select {
	case <-d.accepted:
		return nil
	default:
	}
	r := requestOf(d.id, d.req)
	r.Away = int64(d.s.c.Away)
	r.Quiet = d.req.Stdout == nil && d.req.Stderr == nil
	if deadline, ok := ctx.Deadline(); ok {
		r.Deadline = max(int64(time.Until(deadline)), 1)
	}
	return []any{r}
}

// want is the offset from which on a stream is wanted; -1 means that it is not.
func (d *doing) want(i int) int64 {
	if w := []io.Writer{d.req.Stdout, d.req.Stderr}[i]; w == nil || d.failed[i] != nil {
		return -1
	}
	return d.at[i]
}

// once reads the stream of the command over one connection. The error is that of the connection:
// what came of the command has its own. When ctx has ended the end of the
// stream is not waited for long after the last frame.
func (d *doing) once(life, ctx context.Context, out, errs int64, each func(frame), ask ...any) (came, error) {
	method, path, content := http.MethodGet, fmt.Sprintf("/%s/output?out=%d&err=%d", d.id, out, errs), any(nil)
	if len(ask) > 0 {
		method, path, content = http.MethodPost, fmt.Sprintf("?out=%d&err=%d", out, errs), ask[0]
	}
	commands := "/commands"
	if len(ask) > 0 && d.mark != "" {
		commands = "/at/" + url.PathEscape(d.mark) + "/commands"
	}
	resp, err := d.s.c.open(life, jsonhttp.Request{Method: method, Path: below(d.s.name) + commands + path, Content: content, Again: true})
	if err != nil {
		d.sent = d.sent || len(ask) > 0 && (jsonhttp.Sent(err) || errors.Is(err, ErrMayHaveRun))
		return came{}, err
	}
	defer resp.Close()
	if len(ask) > 0 {
		close(d.accepted)
	}
	r := bufio.NewReader(resp.Body)
	for {
		f, err := readFrame(r)
		if err != nil {
			return came{}, resp.Broken(err)
		}
		if f.stream != streamLast {
			each(f)
			continue
		}
		stop := context.AfterFunc(ctx, func() {
			if pause(life, stopPatience) {
				resp.Close()
			}
		})
		_, _ = r.Peek(1) // At its end the connection can be used again.
		stop()
		var said last
		if err := json.Unmarshal(f.data, &said); err != nil {
			return came{}, fmt.Errorf("%w: what it says of the command makes no sense: %w", ErrUnreachable, err)
		}
		return came{said.Result.value(), said.Error.unpack()}, nil
	}
}

// write gives a piece of output to its Writer.
func (d *doing) write(f frame) {
	i := f.stream - 1
	d.at[i] = f.offset + int64(len(f.data))
	w := []io.Writer{d.req.Stdout, d.req.Stderr}[i]
	if w == nil || d.failed[i] != nil {
		return
	}
	d.began.Store(int64(time.Since(epoch)))
	defer d.began.Store(0)
	var err error
	if f.missed > 0 {
		_, err = fmt.Fprintf(w, "\n[limpet: %d bytes omitted: the reader is too slow, or came later]\n", f.missed)
	}
	if err == nil && len(f.data) > 0 {
		var wrote int
		if wrote, err = w.Write(f.data); err == nil && wrote < len(f.data) {
			err = io.ErrShortWrite // As on this machine, see capture.
		}
	}
	d.failed[i] = err
}

// feed sends what the command reads, a piece after the other.
func (d *doing) feed(life context.Context) {
	select {
	case <-d.accepted:
	case <-life.Done():
		return
	}
	b := make([]byte, mostStdin)
	var offset int64
	for {
		n, err := d.req.Stdin.Read(b)
		if n == 0 && err == nil {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			d.fed <- err // First: the command may end with its input.
		}
		said, failed := d.put(life, offset, b[:n], err != nil)
		sent := offset + int64(n)
		short := failed == nil && !said.Ended && said.Next < sent // An older program says no more of an input that it has ended.
		if short {
			failed = fmt.Errorf("%d bytes of it were taken, and %d were sent", said.Next, sent)
		}
		if failed != nil && (err == nil || short) {
			d.fed <- failed // The command gets no more, and an end once this one is missed there.
		}
		if failed != nil || said.Ended || err != nil {
			return
		}
		offset += int64(n)
	}
}

// put sends a piece, over as many connections as it takes.
func (d *doing) put(life context.Context, offset int64, b []byte, eof bool) (said took, err error) {
	path := fmt.Sprintf("%s/commands/%s/stdin?offset=%d", below(d.s.name), d.id, offset)
	if eof {
		path += "&eof=1"
	}
	for _, wait := range pauses {
		if !pause(life, wait) {
			return took{}, context.Cause(life)
		}
		if err = d.s.c.call(life, http.MethodPost, path, b, &said); !isOneOf(err, ErrGone, ErrUnreachable) {
			break
		}
	}
	return said, err
}

// stop has the command stopped, for a cause, and gives it up if the other program does not listen,
// or has not stopped it long after it should have.
func (d *doing) stop(life context.Context, giveUp context.CancelCauseFunc, cause error) {
	select {
	case <-d.accepted:
	case <-time.After(acceptPatience): // It may wait at the gate, as no command yet.
	case <-life.Done():
		return
	}
	ctx, cancel := context.WithTimeoutCause(life, d.s.c.noted, slowError(d.s.c.noted))
	defer cancel()
	err := d.s.c.call(ctx, http.MethodPost, below(d.s.name)+"/commands/"+d.id+"/stop", what{Why: pack(cause)}, &Command{})
	if err == nil {
		wait := d.req.Ladder.Grace() + stopPatience + time.Minute
		select {
		case <-time.After(wait):
			err = slowError(wait)
		case <-life.Done():
			return
		}
	}
	if errors.Is(err, ErrUnknown) { // It waits at the gate, and does so no more when its request is over.
		err = cause
	}
	giveUp(err) // Whether it may have run follow knows.
}

// ofCaller gives an error of a command that was stopped since the caller's context ended the
// context's own errors, which do not travel.
func (d *doing) ofCaller(ctx context.Context, err error) error {
	stop, ok := errors.AsType[*interrupt.Error](err)
	if ok && errors.Is(stop.Context, context.DeadlineExceeded) {
		if _, has := ctx.Deadline(); has && !d.stopped {
			<-ctx.Done() // It is about to.
			d.stopped = true
		}
	}
	switch cause := context.Cause(ctx); {
	case err == nil || !d.stopped || errors.Is(err, cause):
		return err
	case ok && stop.Context != nil:
		stop.Cause, stop.Context = cause, ctx.Err()
		return err
	default:
		return &elsewhere{text: err.Error(), wraps: []error{err, cause}}
	}
}

func isOneOf(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
