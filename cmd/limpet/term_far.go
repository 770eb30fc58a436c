package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// farTerms are the terminals of a session on another machine. Its keeper is asked for them, or, if the session has ended, the limpet
// there, which reads their records. Calls wait while a lost connection is dialled again, until ctx ends.
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

// farTermsOf returns the terminals of a session. The error is session.ErrNotFound if there is no such session, and no record of its
// terminals.
func farTermsOf(ctx context.Context, h *host.Host, on, name string) (*farTerms, error) {
	p := &farTerms{ctx: ctx, host: h, on: on, session: name}
	return p, p.open()
}

// open finds the keeper of the session, or the records. The caller holds mu, or has the only reference.
func (p *farTerms) open() error {
	kept, err := p.host.Session(p.ctx, p.session, nil)
	if err == nil {
		if _, err = kept.Info(p.ctx); err != nil { // It follows a session that has moved to another keeper.
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

// ask calls do with the client. If the keeper is gone, it finds the next one, or the records, and calls do once more.
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

// worded returns the cause of ctx if that has ended, and adds the remedy if a limpet is too old.
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
	// An ID is printed as it is, and names a file of this machine.
	list = slices.DeleteFunc(list, func(info terminal.Info) bool { return !terminal.ValidID(info.ID) })
	for i, info := range list {
		list[i] = plainly(info, info.ID)
	}
	return list, err
}

// plainly removes from an Info of another machine the escape sequences in fields that are printed as they are. The other fields go through
// printable.
func plainly(info terminal.Info, id string) terminal.Info {
	info.ID, info.State = id, terminal.State(printable(string(info.State)))
	return info
}

// freshened changes nothing: the keeper's list has the latest Info of each.
func (p *farTerms) freshened(_ context.Context, list []terminal.Info) []terminal.Info { return list }

func (p *farTerms) forget(ctx context.Context, id string) error {
	return p.ask(func(c *remote.Client) error { return c.Forget(ctx, id) })
}

func (p *farTerms) reach(_ context.Context, id string) (*reached, error) {
	t := &reached{resumes: true, free: func() {}}
	err := p.ask(func(c *remote.Client) (err error) {
		far := farTerm{termOf: termOf{c.Terminal(id)}}
		far.info, err = far.current()
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
	info terminal.Info // when it was found
}

func (t farTerm) current() (terminal.Info, error) {
	info, err := t.Info()
	return plainly(info, t.ID()), err
}

func (t farTerm) Scrollback() ([]string, error) {
	lines, err := t.termOf.Scrollback()
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return lines, err
}

// Wait keeps to the timeout on this machine, too: on the other one it begins anew when a lost connection has it asked again.
func (t farTerm) Wait(ctx context.Context, o terminal.WaitOptions) (terminal.Waited, error) {
	began, limited := time.Now(), ctx
	if o.Timeout > 0 {
		const grace = 3 * time.Second // The answer may be on its way.
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.Timeout+grace)
		defer cancel()
	}
	got, err := t.termOf.Wait(limited, o)
	got.Info, got.Reason = plainly(got.Info, t.ID()), terminal.WaitReason(printable(string(got.Reason)))
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return terminal.Waited{Reason: terminal.WaitTimeout, Info: t.info, Took: time.Since(began), Timeout: o.Timeout}, nil
	}
	return got, err
}
