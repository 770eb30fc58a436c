package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// Terminal is one of another program. Its methods are those of a [terminal.Terminal], and
// safe for concurrent use. Besides their errors there are ErrGone, if the program goes
// meanwhile, and ErrUnreachable, if it does not answer for half a minute. What was typed
// then is not known.
type Terminal struct {
	c  *Client
	id string
}

// ID is the name of the terminal.
func (t *Terminal) ID() string { return t.id }

func (t *Terminal) call(op, method, path string, content, value any) error {
	return t.c.call(context.Background(), op, t.id, method, t.path(path), content, value)
}

func (t *Terminal) path(more string) string { return "/terminals/" + url.PathEscape(t.id) + more }

// Info returns what is known of the terminal now.
func (t *Terminal) Info() (terminal.Info, error) { return t.info(context.Background()) }

func (t *Terminal) info(ctx context.Context) (info terminal.Info, err error) {
	err = t.c.call(ctx, "ask about", t.id, http.MethodGet, t.path(""), nil, &info)
	return info, err
}

// Write types b, at most 8 MiB of it.
func (t *Terminal) Write(b []byte) (int, error) {
	if len(b) > mostTyped {
		return 0, fault("write", t.id, errTooMuch)
	}
	var done written
	err := t.call("write", http.MethodPost, "/write", b, &done)
	if p, ok := errors.AsType[*partial](err); ok {
		return p.written, p.error
	}
	return done.Written, err
}

var errTooMuch = fmt.Errorf("there can be no more than %d bytes at once; cut it up", mostTyped)

// Send types keys, text and pastes, as the program wants to have them.
func (t *Terminal) Send(inputs ...keys.Input) error {
	if inputs == nil {
		inputs = []keys.Input{} // Not null.
	}
	return t.call("send", http.MethodPost, "/send", inputs, &struct{}{})
}

// Resize gives the terminal another size.
func (t *Terminal) Resize(size terminal.Size) error {
	return t.call("resize", http.MethodPost, "/resize", size, &struct{}{})
}

// Signal signals the program in the foreground.
func (t *Terminal) Signal(sig syscall.Signal) error {
	return t.call("signal", http.MethodPost, "/signal", signalled{int(sig)}, &struct{}{})
}

// Close ends the program, and waits until all is over. The terminal can be looked at
// afterwards.
func (t *Terminal) Close() error {
	return t.c.within(context.Background(), max(closePatience, t.c.way.Patience), "close", t.id, http.MethodPost, t.path("/close"), nil, &struct{}{})
}

// Output returns what is kept of the output from an offset on, at most so many bytes and
// 16 MiB.
func (t *Terminal) Output(from int64, most int) (terminal.Chunk, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), t.c.patience(), errSlow)
	defer cancel()
	var c terminal.Chunk
	err := t.c.again(ctx, true, func() error {
		resp, err := t.c.open(ctx, "output", t.id, t.path(part("/output", from, most)))
		if err != nil {
			return err
		}
		defer resp.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, mostOutput))
		if err != nil {
			return resp.broken(err)
		}
		c = terminal.Chunk{Offset: resp.Number(headOffset), Missed: resp.Number(headMissed), Data: data}
		return nil
	})
	return c, err
}

func part(path string, from int64, most int) string {
	return path + "?from=" + strconv.FormatInt(from, 10) + "&most=" + strconv.Itoa(most)
}

// Text is Output as text.
func (t *Terminal) Text(from int64, most int) (terminal.Text, error) {
	var text terminal.Text
	err := t.call("text", http.MethodGet, part("/text", from, most), nil, &text)
	return text, err
}

// Screen returns what is on the screen now, or was at the end of the program.
func (t *Terminal) Screen() (terminal.Snapshot, error) {
	var s terminal.Snapshot
	err := t.call("screen", http.MethodGet, "/screen", nil, &s)
	return s, err
}

// Scrollback returns the lines that have left the screen at its top.
func (t *Terminal) Scrollback() ([]string, error) {
	var lines []string
	err := t.call("scrollback", http.MethodGet, "/scrollback", nil, &lines)
	return lines, err
}

// Wait waits until the program has ended, or what else the options say has come, or for
// the timeout, which the other program may bound. When ctx ends, so does the wait there.
func (t *Terminal) Wait(ctx context.Context, o terminal.WaitOptions) (terminal.Waited, error) {
	var got terminal.Waited
	err := t.c.within(ctx, 0, "wait", t.id, http.MethodPost, t.path("/wait"), o, &got)
	if err != nil {
		got.Reason = terminal.WaitInterrupted
	}
	return got, err
}

// unwrapCause returns the cause of a context that was the caller's as it is, as Record of a
// terminal.Terminal does.
func unwrapCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// failed is the error behind a stream that was read to its end.
func (o *opened) failed() error {
	text := o.Trailer.Get(headError)
	if text == "" {
		return nil
	}
	said, err := UnmarshalError([]byte(text))
	if err != nil {
		return fault(o.op, o.id, err)
	}
	if _, ok := errors.AsType[*terminal.Error](said); !ok {
		said = fault(o.op, o.id, said)
	}
	return said
}
