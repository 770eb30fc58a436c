package keeper

import (
	"context"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// Place is where sessions are kept: the [Registry] of a directory of this machine, or that of another one.
type Place interface {
	// Session returns the session of that name, and makes it if there is none, or if spec is nil, fails.
	Session(ctx context.Context, name string, spec *Spec) (*Kept, error)

	// List returns the sessions, the oldest first, and, if all are asked for, those that have ended and are remembered.
	List(ctx context.Context, all bool) ([]Listed, error)

	// Close ends a session, and waits until its keeper is gone. Kill ends one whose keeper does not answer.
	Close(ctx context.Context, k *Kept) error
	Kill(ctx context.Context, name string) error

	// Upgrade has a session kept by a new keeper, of the limpet of there whose version is UpgradesTo, and returns what was
	// lost. It waits for the command that runs; ctx bounds that, and the start of the new one. After an error the session is
	// as it was, unless its keeper was killed, or the connection to another machine was lost: then it may be either.
	Upgrade(ctx context.Context, k *Kept, how Upgrade) (lost []string, err error)
	UpgradesTo() string

	// CallerEnv is what a caller brings to a session of there, for command.Request.UpdateEnv.
	CallerEnv() []string
}

var _ Place = (*Registry)(nil)

// Opened is what is known of a session when it was opened.
type Opened struct {
	Record Record `json:"record"`
	Made   bool   `json:"made,omitempty"`
	Was    *End   `json:"was,omitempty"`

	Info *session.Info `json:"info,omitempty"` // of then; nil if that is not known
}

// Elsewhere returns a session of another place, whose keeper a client reaches. Disconnect disconnects the client.
func Elsewhere(place Place, client *wire.Client, o Opened) *Kept {
	return &Kept{Session: client.Session(o.Record.Name), Record: o.Record, Made: o.Made, Was: o.Was, then: o.Info, client: client, place: place}
}

// Opened is what is known of it since it was opened.
func (k *Kept) Opened() Opened { return Opened{k.Record, k.Made, k.Was, k.then} }

// InfoThen returns the Info of when the session was opened. It asks the session only if that did not come with the answer, as from the
// program of another machine it does, to which the way may be long.
func (k *Kept) InfoThen(ctx context.Context) (session.Info, error) {
	if k.then != nil {
		return *k.then, nil
	}
	return k.Info(ctx)
}

// Forward sends a request of another program on to the keeper: see [wire.Client.Forward].
func (k *Kept) Forward(ctx context.Context, method, path string, body []byte) (*jsonhttp.Answer, error) {
	return k.client.Forward(ctx, method, path, body)
}

// Follow leads to the keeper that has the session now, if that is another one, and reports whether there is one.
func (k *Kept) Follow(ctx context.Context) bool { return k.follow(ctx) }
