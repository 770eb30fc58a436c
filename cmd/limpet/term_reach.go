package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// asked is a terminal of another program, or what is written down of one that has ended.
type asked interface {
	Write(b []byte) (int, error)
	Send(inputs ...keys.Input) error
	Resize(size terminal.Size) error
	Close() error
	Output(from int64, most int) (terminal.Chunk, error)
	Text(from int64, most int) (terminal.Text, error)
	Screen() (terminal.Snapshot, error)
	Scrollback() ([]string, error)
	Wait(ctx context.Context, o terminal.WaitOptions) (terminal.Waited, error)
	Record(ctx context.Context, w io.Writer, o terminal.RecordOptions) (terminal.Recorded, error)
}

var (
	_ asked = (*terminal.Terminal)(nil)
	_ asked = (*remote.Terminal)(nil)
)

// viewer follows what a terminal prints.
type viewer interface {
	Next(ctx context.Context) (terminal.Chunk, error)
	Close() error
}

// reached is a terminal that was found.
type reached struct {
	asked
	info terminal.Info // as it was then
	r    *terminal.Registry
	live *remote.Terminal // nil if it has ended
	free func()
}

// reachPatience is how long the program that has a terminal may take to say that it is there.
const reachPatience = 5 * time.Second

// reach finds the terminal, where it runs or where it is written down.
func reach(ctx context.Context, r *terminal.Registry, id string) (*reached, error) {
	for again := false; ; again = true {
		t, err := r.Get(id)
		if err != nil {
			return nil, err
		}
		info := t.Info()
		if !info.Elsewhere {
			return &reached{asked: t, info: info, r: r, free: func() {}}, nil
		}
		client, err := dial(ctx, r.Dir(), info.Owner, reachPatience)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if !again && !errors.Is(err, context.DeadlineExceeded) { // It may be just about to end: then the record says how.
				time.Sleep(settling)
				continue
			}
			return nil, unreachable(info, err)
		}
		live := client.Terminal(id)
		if info, err = live.Info(); err != nil {
			_ = client.Close() // It cannot fail.
			if !again {
				continue
			}
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() {
			time.AfterFunc(settling, func() { _ = client.Close() }) // As above. What has the context ends by itself.
		})
		return &reached{asked: live, info: info, r: r, live: live, free: func() {
			stop()
			_ = client.Close() // As above.
		}}, nil
	}
}

// settling is how long a program may take to be gone that lets nobody reach it any more.
const settling = 100 * time.Millisecond

func dial(ctx context.Context, dir, owner string, patience time.Duration) (*remote.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return remote.Dial(ctx, dir, owner)
}

// unreachable says what to do about a program that cannot be asked.
func unreachable(info terminal.Info, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: it does not answer", remote.ErrUnreachable)
	}
	return fmt.Errorf("%q: %w (pid %d); if it hangs, kill -KILL %d ends it with its terminals, and if it is no limpet term, it has to serve them", info.ID, err, info.OwnerPID, info.OwnerPID)
}

// now is what is known by now.
func (t *reached) now() terminal.Info {
	if t.live != nil {
		if info, err := t.live.Info(); err == nil {
			return info
		}
	}
	if past, err := t.r.Get(t.info.ID); err == nil {
		if info := past.Info(); !info.Elsewhere {
			return info
		}
	}
	return t.info
}

// ended is now, of a program of which the end was seen: its record may be a moment late.
func (t *reached) ended() terminal.Info {
	const patience = 2 * time.Second
	info := t.now()
	for began := time.Now(); !info.State.Ended() && time.Since(began) < patience; info = t.now() {
		time.Sleep(settling / 10)
	}
	return info
}

// follow returns a viewer.
func (t *reached) follow(offset int64) (viewer, error) {
	if t.live != nil {
		return t.live.Attach(offset)
	}
	past, err := t.r.Get(t.info.ID)
	if err != nil {
		return nil, err
	}
	return past.Attach(offset)
}

// with does something with the terminal that is meant. If the program that has it goes
// meanwhile, it is done with what that has left: nothing is typed twice, as nobody is
// there to read it.
func (f *termFlags) with(ctx context.Context, cmd *cobra.Command, said string, do func(*reached) error) error {
	return f.look(ctx, func(r *terminal.Registry) error {
		info, err := f.termOf(cmd, r, said)
		if err != nil {
			return err
		}
		for again := false; ; again = true {
			t, err := reach(ctx, r, info.ID)
			if err != nil {
				return err
			}
			err = do(t)
			t.free()
			if again || t.live == nil || isA[*lostError](err) || !errors.Is(err, remote.ErrGone) && !errors.Is(err, terminal.ErrClosed) || ctx.Err() != nil {
				return err
			}
		}
	})
}
