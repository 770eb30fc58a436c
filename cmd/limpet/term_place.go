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
	// list returns the terminals that have a record, the oldest first.
	list(ctx context.Context) ([]terminal.Info, error)

	// freshened returns a list of list() with the latest Info of each terminal whose program answers.
	freshened(ctx context.Context, list []terminal.Info) []terminal.Info

	// reach finds a terminal: with the program that has it, or, if it has ended, in its record. The caller must free it.
	reach(ctx context.Context, id string) (*reached, error)

	// forget removes the record of a terminal whose program has ended.
	forget(ctx context.Context, id string) error

	// close lets go of the place.
	close() error

	// String names the place, for messages.
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

	current() (terminal.Info, error)
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
	info     terminal.Info         // when it was found
	live     bool                  // a program has it; else it has ended
	resumes  bool                  // its calls wait while a lost connection is dialled again
	recorded func() (asked, error) // returns its record
	free     func()
}

// settling is how long a program may take to be gone that lets nobody reach it any more.
const settling = 100 * time.Millisecond

// now returns the latest Info: from the program that has the terminal if it answers, else from the record.
func (t *reached) now() terminal.Info {
	if t.live {
		if info, err := t.current(); err == nil {
			return info
		}
	}
	if past, err := t.recorded(); err == nil {
		if info, err := past.current(); err == nil && !info.Elsewhere {
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

// endsByClose closes a client when ctx ends: that ends calls which take no context. Those that have ctx return its cause before that.
func endsByClose(ctx context.Context, client *remote.Client) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.AfterFunc(settling, func() { _ = client.Close() }) // It cannot fail.
	})
}
