package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// Later says what a session is whose opening waits for the first request: see [Host.Later].
type Later struct {
	// Temporary is as with [Host.Temporary]: no other session may have the name. With Only the first command is the only one, and the session
	// ends with it.
	Temporary, Only bool

	// Opened, if not nil, is called once, when the session is open, before anything else of the answer is read. It may be called by another
	// goroutine.
	Opened func(ctx context.Context, k *keeper.Kept)
}

// Later returns a session that is opened as [Host.Session] does, by the first request that is made of it. A command is asked for in the same
// request, where the limpet over there knows that, so that its caller waits for one round trip. The error of a session that cannot be opened is
// that of the first request, as long as Opened was not called. A command that may have been asked for in vain is not asked for again, unless it is
// found by its id: the error is wire.ErrMayHaveRun then. The end of ctx ends a request that has not opened the session soon after, and means nothing
// to a session that is open.
func (h *Host) Later(ctx context.Context, name string, spec *keeper.Spec, how Later) *keeper.Kept {
	l := &later{h: h, until: ctx, name: name, spec: spec, how: how, turn: make(chan struct{}, 1), ready: make(chan struct{})}
	return h.kept(l, keeper.Opened{Record: keeper.Record{Name: name}})
}

// later sends requests about a session that the first of them opens.
type later struct {
	h     *Host
	until context.Context // its end ends what opens the session
	name  string
	spec  *keeper.Spec
	how   Later

	turn  chan struct{} // held by the request that opens the session
	doubt bool          // a command was asked for, and it is not known in which session; guarded by turn
	ready chan struct{} // closed when the session is open
	by    *addressed    // once it is
}

// asks is the client of requests that open the session.
func (l *later) asks() *jsonhttp.Client {
	if l.how.Temporary {
		return l.h.ending
	}
	return l.h.asks
}

// to is the transport of all others.
func (l *later) to() http.RoundTripper {
	if l.how.Temporary {
		return temporary{l.h}
	}
	return l.h
}

func (l *later) isOpen() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

var (
	errNotOpen = errors.New("the session is not open yet")
	errDoubt   = fmt.Errorf("%w, and it is not known what became of the request that opens the session", wire.ErrUnreachable)
)

func (l *later) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.isOpen() {
		refused, err := l.first(r)
		if refused != nil || err != nil {
			return refused, err
		}
	}
	return l.by.RoundTrip(r)
}

// first opens the session, by a request that is sent on then; unless it returns the answer to it.
func (l *later) first(r *http.Request) (*http.Response, error) {
	if !session.ValidName(l.name) {
		return nil, &session.Error{Op: "open", Session: l.name, Err: session.ErrName}
	}
	path := "/v1" + below(l.name)
	if r.URL.Path == path+followPath {
		return nil, errNotOpen // There is nothing to follow.
	}
	select {
	case <-l.ready:
		return nil, nil
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.until.Done():
		return nil, l.givenUp(context.Cause(l.until))
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	command := r.Method == http.MethodPost && r.URL.Path == path+"/commands" && r.GetBody != nil
	switch {
	case l.isOpen(): // By the one before.
		return nil, nil
	case l.until.Err() != nil:
		return nil, l.givenUp(context.Cause(l.until))
	case l.doubt && !command:
		return nil, errDoubt // Whatever has the name now may be another session.
	case l.doubt:
		return nil, l.findAgain(r)
	case command && l.canRun(r):
		answer, err := l.run(r)
		if err != nil || l.isOpen() || l.canRun(r) {
			return answer, err
		}
		_ = answer.Body.Close() // An older limpet says that it does not know the request: it has been dialled again.
	}
	return l.open(r.Context(), l.spec)
}

// mostRun is the longest command that is sent with what opens its session, which has to fit into wire.MostBody as a whole.
const mostRun = wire.MostBody / 2

func (l *later) canRun(r *http.Request) bool {
	return r.ContentLength <= mostRun && slices.Contains(l.h.Hello().Can, connect.CanRun)
}

// open opens the session by a request of its own. It returns the answer if that is an error.
func (l *later) open(ctx context.Context, spec *keeper.Spec) (*http.Response, error) {
	ctx, end := untraced(ctx)
	defer end()
	ctx = l.opening(ctx)
	a, err := l.asks().Do(ctx, jsonhttp.Request{Method: http.MethodPut, Path: keptPath + l.name, Content: connect.Open{Spec: spec}})
	if err != nil {
		return nil, l.givenUp(err)
	}
	if a.StatusCode == http.StatusOK {
		var o keeper.Opened
		if err := a.Decode(&o); err != nil {
			return nil, err
		}
		l.opened(ctx, o)
		return nil, nil
	}
	defer a.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostOpened))
	if err != nil {
		return nil, a.Broken(err)
	}
	answer := *a.Response
	answer.Body = io.NopCloser(bytes.NewReader(b))
	return &answer, nil
}

// run opens the session and runs a command in it.
func (l *later) run(r *http.Request) (*http.Response, error) {
	command, err := commandOf(r)
	if err != nil {
		return nil, err
	}
	ask := connect.Run{Spec: l.spec, Command: command, Close: l.how.Temporary && l.how.Only}
	ctx := l.opening(r.Context())
	a, err := l.asks().Do(ctx, jsonhttp.Request{Method: http.MethodPost, Path: keptPath + l.name + runPath + "?" + r.URL.RawQuery, Content: ask})
	switch {
	case jsonhttp.Sent(err):
		return nil, l.doubted(err)
	case err != nil:
		return nil, l.givenUp(err)
	}
	answer := *a.Response
	if a.StatusCode != http.StatusOK { // It could not be opened.
		answer.Body = &answered{Reader: a.Body, answer: a}
		return &answer, nil
	}
	from := bufio.NewReader(a.Body)
	o, err := readOpened(from)
	if err != nil {
		defer a.Close()
		return nil, l.doubted(a.Broken(err))
	}
	l.opened(r.Context(), o)
	status, err := readNumber(from)
	if err == nil && status < http.StatusOK {
		err = fmt.Errorf("an answer has the status %d", status)
	}
	switch {
	case err != nil: // It is asked for again, in that session.
		defer a.Close()
		if err = a.Broken(err); ctx.Err() != nil && r.Context().Err() == nil { // Given up at the very moment.
			err = fmt.Errorf("%w: %s", wire.ErrUnreachable, err.Error())
		}
		return nil, fmt.Errorf("%w: %w", err, wire.ErrMayHaveRun)
	case status == connect.NoAnswer:
		defer a.Close()
		return nil, fmt.Errorf("%w: its keeper has not answered: %w", wire.ErrUnreachable, wire.ErrMayHaveRun)
	}
	answer.StatusCode, answer.Status, answer.ContentLength = status, http.StatusText(status), -1
	answer.Body = &answered{from, a, func() {
		if a.Trailer.Get(connect.HeadClosed) != "" {
			l.h.ended(l.by.id)
		}
	}}
	return &answer, nil
}

// commandOf returns the body of a request, which can be read again.
func commandOf(r *http.Request) ([]byte, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close() // It is in memory.
	return io.ReadAll(body)
}

// doubted notes that a command was asked for and that there is no telling what became of it.
func (l *later) doubted(err error) error {
	if !l.doubt && l.how.Temporary {
		l.h.mu.Lock()
		l.h.unsure = append(l.h.unsure, l)
		l.h.mu.Unlock()
	}
	l.doubt = true
	return l.givenUp(fmt.Errorf("%w: %w", err, wire.ErrMayHaveRun))
}

// openPatience is how long a session has to be opened when its caller has given up. If it is, the command is stopped as any other.
const openPatience = 500 * time.Millisecond

// opening returns the context of a request that opens the session. It ends with another one, which must end, and when the caller has given up.
func (l *later) opening(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.until, func() {
		select {
		case <-l.ready:
		case <-ctx.Done():
		case <-time.After(openPatience):
			if !l.isOpen() {
				cancel(context.Cause(l.until))
			}
		}
	})
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

// givenUp returns the error of a request that opens the session, which says so if its caller has given up.
func (l *later) givenUp(err error) error {
	if l.until.Err() == nil || !errors.Is(err, context.Cause(l.until)) {
		return err
	}
	return &givenUpError{err}
}

// givenUpError is wire.ErrUnreachable, which a client takes for what it is, and does not say so.
type givenUpError struct{ error }

func (e *givenUpError) Unwrap() []error { return []error{e.error, wire.ErrUnreachable} }

// findAgain opens the session in which a command was asked for, if it is certain that it is the one: nobody else has the name of one that is
// temporary, or it knows the command. Nothing is made.
func (l *later) findAgain(r *http.Request) error {
	b, err := commandOf(r)
	if err != nil {
		return err
	}
	var command struct {
		ID string `json:"id"`
	}
	if err := jsonhttp.Unmarshal(b, &command); err != nil {
		return err
	}
	ctx, end := untraced(r.Context())
	defer end()
	ctx = l.opening(ctx)
	o, err := open(ctx, l.asks(), l.name, nil)
	if err != nil {
		return l.doubted(err)
	}
	if !l.how.Temporary {
		var state json.RawMessage
		to := l.h.asking(&addressed{l.to(), o.Record.SessionID()})
		if err := to.Call(ctx, jsonhttp.Request{Method: http.MethodGet, Path: below(l.name) + "/commands/" + command.ID, Again: true}, &state); err != nil {
			return l.doubted(err)
		}
	}
	l.opened(ctx, o)
	return nil
}

// opened notes which session it is.
func (l *later) opened(ctx context.Context, o keeper.Opened) {
	o.Record.Name = l.name // It is the beginning of a path, and printed.
	l.by = &addressed{l.to(), o.Record.SessionID()}
	close(l.ready)
	k := l.h.kept(l.by, o)
	if l.how.Temporary {
		l.h.mu.Lock()
		l.h.temporary = append(l.h.temporary, k)
		l.h.mu.Unlock()
	}
	if l.how.Opened != nil {
		ctx, end := untraced(ctx)
		defer end()
		l.how.Opened(ctx, k)
	}
}

// ended notes that a session which was to end with the connection has ended.
func (h *Host) ended(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.temporary = slices.DeleteFunc(h.temporary, func(k *keeper.Kept) bool { return k.Record.SessionID() == id })
}

// untraced returns a context that ends with another one, and has none of its values: what traces a request would take another one for it. Call
// end.
func untraced(ctx context.Context) (c context.Context, end func()) {
	c, cancel := context.WithCancelCause(context.Background())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return c, func() {
		stop()
		cancel(nil)
	}
}

// answered is the body of an answer of which some was read.
type answered struct {
	io.Reader
	answer *jsonhttp.Answer
	ended  func() // is called at its end; may be nil
}

func (b *answered) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.ended != nil { // Its own end, and not that of the connection.
		b.ended()
	}
	return n, err
}

func (b *answered) Close() error {
	b.answer.Close()
	return nil
}

// mostOpened bounds what an answer begins with.
const mostOpened = 16 << 20

// readOpened reads what the answer to a connect.Run begins with.
func readOpened(r *bufio.Reader) (o keeper.Opened, err error) {
	size, err := readNumber(r)
	if err != nil {
		return o, err
	}
	var b bytes.Buffer // It grows with what comes, not with what is announced.
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return o, io.ErrUnexpectedEOF
	}
	return o, json.Unmarshal(b.Bytes(), &o)
}

// readNumber reads a line that is a number.
func readNumber(r *bufio.Reader) (int, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(string(line), "\n"))
	if err != nil || n <= 0 || n > mostOpened {
		return 0, fmt.Errorf("a line of an answer is %.40q", line)
	}
	return n, nil
}
