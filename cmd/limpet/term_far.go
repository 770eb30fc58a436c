package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// farTerms are the terminals of a session on another machine: by its keeper, or, if the session has ended, from what is written down
// there. While a connection that is lost is dialled again, calls wait; the context of the place ends them.
type farTerms struct {
	ctx     context.Context
	host    *host.Host
	on      string
	session string

	mu     sync.Mutex
	kept   *keeper.Kept // nil if the session has ended
	client *remote.Client
	stop   func() bool
}

var _ termPlace = (*farTerms)(nil)

// farTermsOf finds those of a session. The error is session.ErrNotFound if there is nothing of it.
func farTermsOf(ctx context.Context, h *host.Host, on, name string) (*farTerms, error) {
	p := &farTerms{ctx: ctx, host: h, on: on, session: name}
	return p, p.open()
}

// open finds what has the terminals now. The caller holds mu, or is alone.
func (p *farTerms) open() error {
	kept, err := p.host.Session(p.ctx, p.session, nil)
	if err == nil {
		if _, err = kept.Info(p.ctx); err != nil { // If the session has another keeper since, that is found.
			kept.Disconnect()
		}
	}
	switch {
	case err == nil:
		p.kept, p.client = kept, kept.Terminals()
	case errors.Is(err, session.ErrNotFound), errors.Is(err, wire.ErrGone):
		client := p.host.Terminals(p.session)
		if _, none := client.ListAll(p.ctx); none != nil {
			_ = client.Close() // It cannot fail.
			switch {
			case errors.Is(none, session.ErrNotFound):
				return err
			case errors.Is(none, remote.ErrOlder):
				return fmt.Errorf("%w; the limpet there, version %s, cannot tell of the terminals that it had: replace it, or take it out of the PATH", err, p.host.Hello().Version)
			}
			return none
		}
		p.kept, p.client = nil, client
	default:
		return err
	}
	p.stop = endsByClose(p.ctx, p.client)
	return nil
}

func (p *farTerms) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil
	}
	p.stop()
	if p.kept != nil {
		p.kept.Disconnect()
	}
	return p.client.Close()
}

// ask calls do with the client. If the keeper is gone by then it is asked once more, of what has the terminals now.
func (p *farTerms) ask(do func(*remote.Client) error) error {
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	err := do(client)
	if !errors.Is(err, remote.ErrGone) {
		return p.worded(err)
	}
	p.mu.Lock()
	if p.client == client {
		if p.kept != nil {
			p.kept.Disconnect()
		}
		p.stop()
		_ = client.Close() // It cannot fail.
		if err := p.open(); err != nil {
			p.mu.Unlock()
			return err
		}
	}
	client = p.client
	p.mu.Unlock()
	return p.worded(do(client))
}

// worded says why a call ended, if that is since the context did, and what to do about a limpet of another version.
func (p *farTerms) worded(err error) error {
	switch {
	case err == nil:
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx)
	case errors.Is(err, remote.ErrOlder):
		p.mu.Lock()
		defer p.mu.Unlock()
		by := "the limpet there"
		if p.kept != nil {
			by = fmt.Sprintf("the limpet that keeps session %q there, version %s,", p.session, p.kept.Record.Version)
		}
		return fmt.Errorf("%s cannot do this: limpet session upgrade %s, on that machine, replaces it (%w)", by, p.session, err)
	}
	return err
}

func (p *farTerms) String() string { return fmt.Sprintf("session %q on %s", p.session, p.on) }

func (p *farTerms) list(ctx context.Context) (list []terminal.Info, err error) {
	err = p.ask(func(c *remote.Client) error {
		list, err = c.ListAll(ctx)
		return err
	})
	return list, err
}

// freshened changes nothing: the keeper has told how they are.
func (p *farTerms) freshened(_ context.Context, list []terminal.Info) []terminal.Info { return list }

func (p *farTerms) forget(ctx context.Context, id string) error {
	return p.ask(func(c *remote.Client) error { return c.Forget(ctx, id) })
}

func (p *farTerms) reach(_ context.Context, id string) (*reached, error) {
	t := &reached{resumes: true, free: func() {}}
	err := p.ask(func(c *remote.Client) (err error) {
		far := farTerm{termOf: termOf{c.Terminal(id)}}
		far.info, err = far.Info()
		t.asked, t.info = far, far.info
		return err
	})
	if err != nil {
		return nil, err
	}
	t.live = !t.info.State.Ended()
	t.recorded = func() (asked, error) {
		now, err := p.reach(p.ctx, id)
		if err != nil {
			return nil, err
		}
		return now.asked, nil
	}
	return t, nil
}

// farTerm is a terminal on another machine.
type farTerm struct {
	termOf
	info terminal.Info // as it was when it was found
}

// Wait bounds the wait here, too: it may be asked for again, when a connection was lost.
func (t farTerm) Wait(ctx context.Context, o terminal.WaitOptions) (terminal.Waited, error) {
	if o.Timeout <= 0 {
		return t.termOf.Wait(ctx, o)
	}
	const grace = 3 * time.Second // The answer may be on its way.
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.Timeout+grace)
	defer cancel()
	got, err := t.termOf.Wait(limited, o)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return terminal.Waited{Reason: terminal.WaitTimeout, Info: t.info, Took: time.Since(began), Timeout: o.Timeout}, nil
	}
	return got, err
}
