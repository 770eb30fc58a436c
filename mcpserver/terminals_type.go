package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// sendIn is what terminal_send_keys is asked.
type sendIn struct {
	Terminal string   `json:"terminal" jsonschema:"Its id."`
	Keys     []string `json:"keys,omitempty" jsonschema:"What to type, as tmux send-keys has it: one that names a key is that key (Enter, Tab, Escape, Up, PageDown, F5, BSpace, C-c, M-x, C-Left), any other is text. Nothing is typed between them, and no Enter behind them."`
	Text     string   `json:"text,omitempty" jsonschema:"Instead: text that is typed as it is, also where it names a key. A newline in it is one; the Enter key sends \\r."`
	Paste    string   `json:"paste,omitempty" jsonschema:"Instead: text that is pasted: for several lines, which an editor or a shell then takes as they are. Control characters in it become blanks."`
	Settle   *float64 `json:"settle_seconds,omitempty" jsonschema:"Return when the program has printed something and then nothing for 0.15 s, and after so many seconds in any case. 0: at once. Default: 1." min:"0" max:"60"`

	inputs []keys.Input // what is to be typed
}

// checkSend finds out what is to be typed, and says what cannot be meant.
func (*Server) checkSend(in *sendIn) (wrong problems) {
	wrong.when(count(len(in.Keys) > 0, in.Text != "", in.Paste != "") != 1, "keys text paste",
		`one of "keys", "text" and "paste" is needed, and only one: as in keys: ["ls -l", "Enter"]`)
	switch {
	case in.Text != "":
		in.inputs = []keys.Input{keys.Text(in.Text)}
	case in.Paste != "":
		in.inputs = []keys.Input{keys.Paste(in.Paste)}
	default:
		var err error
		if in.inputs, err = keys.Parse(in.Keys...); err != nil {
			wrong.add("keys", `"keys": %s, or by "text"`, strings.TrimPrefix(err.Error(), "keys: "))
		}
	}
	return wrong
}

// typed is what is to be typed, for people.
func (in sendIn) typed() string { return cmp.Or(in.Text, in.Paste, strings.Join(in.Keys, " ")) }

// sendKeys types, and looks at what comes of it.
func sendKeys(ctx context.Context, c *call, typing *turns, in sendIn) (screenOut, error) {
	none := func(err error) (screenOut, error) { return screenOut{}, err }
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return none(err)
	}
	stop := c.progress(ctx, func() string { return t.Info().LastLine })
	defer stop()
	done, err := typing.take(ctx, in.Terminal)
	if err != nil {
		return none(err)
	}
	if err := c.approveInput(ctx, t.Info().Session, in.Terminal, in.typed()); err != nil {
		done()
		return none(err)
	}
	from, n, err := typeAll(ctx, t, in.inputs)
	done()
	if err != nil {
		if err = c.unreached(err); n > 0 {
			err = fmt.Errorf("%d of %d keys were typed: %w", n, len(in.inputs), err)
		}
		return none(err)
	}
	settle(ctx, t, from, patience(in.Settle))
	return c.screen(ctx, t)
}

// keyGap is between two keys. Programs take what comes at once for a paste: tmux within a
// millisecond (assume-paste-time), and those that see text and Enter in one read do not
// take that for the key.
const keyGap = 5 * time.Millisecond

// alonePatience bounds the wait behind a key that wants to be alone.
const alonePatience = time.Second

// typeAll types one after the other, and returns how many, and how much the program had
// printed before the last.
func typeAll(ctx context.Context, t *terminal.Terminal, inputs []keys.Input) (from int64, n int, err error) {
	for n < len(inputs) {
		from = t.Info().Bytes
		if err := t.Send(inputs[n]); err != nil {
			return from, n, err
		}
		if n++; n == len(inputs) {
			break
		}
		if alone(inputs[n-1]) && !alone(inputs[n]) {
			settle(ctx, t, from, alonePatience)
		} else {
			pause(ctx, keyGap)
		}
		if ctx.Err() != nil {
			return from, n, context.Cause(ctx)
		}
	}
	return from, n, nil
}

// alone reports whether what comes right behind a key means something else, or is lost.
// Where a key sends a signal the terminal drops what it has (termios(3), ISIG and NOFLSH),
// and bash does so when it gets that. Behind Escape a key is taken for one with Alt.
func alone(in keys.Input) bool {
	switch string(in.Encode(keys.Modes{})) {
	case "\x03", "\x1a", "\x1c", "\x1b":
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// turns lets one call at a time type on a terminal, so that what several type is not mixed.
// The zero value is ready.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	token chan struct{} // has one while somebody types
	calls int           // that type, or want to
}

// take waits for the turn. Call done when it is over.
func (t *turns) take(ctx context.Context, id string) (done func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = make(map[string]*turn)
	}
	one := t.of[id]
	if one == nil {
		one = &turn{token: make(chan struct{}, 1)}
		t.of[id] = one
	}
	one.calls++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.calls--; one.calls == 0 {
			delete(t.of, id)
		}
	}
	select {
	case one.token <- struct{}{}:
		return func() { <-one.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("nothing was typed: %w", context.Cause(ctx))
	}
}
