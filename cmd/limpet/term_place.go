package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// termPlace is where terminals are: dirTerms, or farTerms. The commands need not know which.
type termPlace interface {
	// list returns what is written down of the terminals, the oldest first.
	list(ctx context.Context) ([]terminal.Info, error)

	// freshened is a list with what the programs that have terminals say of them now.
	freshened(ctx context.Context, list []terminal.Info) []terminal.Info

	// reach finds a terminal, where it runs or where it is written down. Free it.
	reach(ctx context.Context, id string) (*reached, error)

	// forget removes what is written down of a terminal whose program has ended.
	forget(ctx context.Context, id string) error

	// close lets go of the place.
	close() error

	// String is where that is, for messages.
	String() string
}

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

	look() (terminal.Info, error)
	follow(offset int64) (viewer, error)
}

// viewer follows what a terminal prints.
type viewer interface {
	Next(ctx context.Context) (terminal.Chunk, error)
	Close() error
}

// reached is a terminal that was found.
type reached struct {
	asked
	info     terminal.Info         // as it was then
	live     bool                  // a program has it; else it has ended
	resumes  bool                  // what is asked waits for a connection that is lost, and is asked again
	recorded func() (asked, error) // what is written down of it by now
	free     func()
}

// settling is how long a program may take to be gone that lets nobody reach it any more.
const settling = 100 * time.Millisecond

// now is what is known by now.
func (t *reached) now() terminal.Info {
	if t.live {
		if info, err := t.look(); err == nil {
			return info
		}
	}
	if past, err := t.recorded(); err == nil {
		if info, err := past.look(); err == nil && !info.Elsewhere {
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

// with does something with the terminal that is meant. If the program that has it goes
// meanwhile, it is done with what that has left: nothing is typed twice, as nobody is
// there to read it.
func (f *termFlags) with(ctx context.Context, cmd *cobra.Command, said string, do func(*reached) error) error {
	return f.look(ctx, func(p termPlace) error {
		info, err := f.termOf(ctx, cmd, p, said)
		if err != nil {
			return err
		}
		for again := false; ; again = true {
			t, err := p.reach(ctx, info.ID)
			if err != nil {
				return err
			}
			err = do(t)
			t.free()
			if again || !t.live || isA[*lostError](err) || !errors.Is(err, remote.ErrGone) && !errors.Is(err, terminal.ErrClosed) || ctx.Err() != nil {
				return err
			}
		}
	})
}

// endsByClose closes a client when a context ends, for calls that have none. What has it ends by itself before that.
func endsByClose(ctx context.Context, client *remote.Client) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.AfterFunc(settling, func() { _ = client.Close() }) // It cannot fail.
	})
}
