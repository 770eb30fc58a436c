package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// dirTerms are the terminals of a directory. Each program that has some is reached by its socket there.
type dirTerms struct {
	*terminal.Registry // nil if there is no such directory: it has no terminals
	dir                string
}

var _ termPlace = dirTerms{}

// recordOf is the record of a terminal.
type recordOf struct{ *terminal.Terminal }

func (t recordOf) current() (terminal.Info, error)     { return t.Info(), nil }
func (t recordOf) follow(offset int64) (viewer, error) { return t.Attach(offset) }

// termOf is a terminal of another program.
type termOf struct{ *remote.Terminal }

func (t termOf) current() (terminal.Info, error)     { return t.Info() }
func (t termOf) follow(offset int64) (viewer, error) { return t.Attach(offset) }

func (p dirTerms) list(context.Context) ([]terminal.Info, error) {
	if p.Registry == nil {
		return nil, nil
	}
	return p.List()
}

func (p dirTerms) forget(_ context.Context, id string) error { return p.Forget(id) }

func (p dirTerms) close() error {
	if p.Registry == nil {
		return nil
	}
	return p.Close()
}

func (p dirTerms) String() string {
	if p.Registry != nil {
		return p.Dir()
	}
	dir, _ := terminal.DefaultDir() // Where there is none, look has said so.
	return cmp.Or(p.dir, dir)
}

// reachPatience is how long the program that has a terminal may take to say that it is there.
const reachPatience = 5 * time.Second

func (p dirTerms) reach(ctx context.Context, id string) (*reached, error) {
	recorded := func() (asked, error) {
		t, err := p.Get(id)
		if err != nil {
			return nil, err
		}
		return recordOf{t}, nil
	}
	for again := false; ; again = true {
		t, err := p.Get(id)
		if err != nil {
			return nil, err
		}
		info := t.Info()
		if !info.Elsewhere {
			return &reached{asked: recordOf{t}, info: info, recorded: recorded, free: func() {}}, nil
		}
		client, err := p.dial(ctx, info.Owner, reachPatience)
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
		live := termOf{client.Terminal(id)}
		if info, err = live.Info(); err != nil {
			_ = client.Close() // It cannot fail.
			if !again {
				continue
			}
			return nil, err
		}
		stop := endsByClose(ctx, client)
		return &reached{asked: live, info: info, live: true, recorded: recorded, free: func() {
			stop()
			_ = client.Close() // As above.
		}}, nil
	}
}

func (p dirTerms) dial(ctx context.Context, owner string, patience time.Duration) (*remote.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return remote.Dial(ctx, p.Dir(), owner)
}

// unreachable says what to do about a program that cannot be asked.
func unreachable(info terminal.Info, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: it does not answer", remote.ErrUnreachable)
	}
	return fmt.Errorf("%q: %w (pid %d); if it hangs, kill -KILL %d ends it with its terminals, and if it is no limpet term, it has to serve them", info.ID, err, info.OwnerPID, info.OwnerPID)
}

// freshPatience is how long the programs that have terminals may take to tell how those are.
const freshPatience = time.Second

func (p dirTerms) freshened(ctx context.Context, list []terminal.Info) []terminal.Info {
	const most = 16 // That are asked at once.
	var (
		mu    sync.Mutex
		fresh = make(map[string]terminal.Info)
		asked = make(map[string]bool)
		all   sync.WaitGroup
		room  = make(chan struct{}, most)
	)
	ctx, cancel := context.WithTimeout(ctx, freshPatience)
	defer cancel()
	for _, info := range list {
		if !info.Elsewhere || asked[info.Owner] {
			continue
		}
		asked[info.Owner] = true
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			client, err := p.dial(ctx, info.Owner, freshPatience)
			if err != nil {
				return // There is what it has written down.
			}
			defer client.Close() // It cannot fail.
			told, err := client.List(ctx)
			if err != nil {
				return // As above.
			}
			mu.Lock()
			defer mu.Unlock()
			for _, info := range told {
				fresh[info.ID] = info
			}
		})
	}
	all.Wait()
	for i, info := range list {
		if now, ok := fresh[info.ID]; ok {
			list[i] = now
		}
	}
	return list
}
