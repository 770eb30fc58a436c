package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/session"
)

// ErrWouldLose means that an upgrade would end something that is not carried over. Nothing was done.
var ErrWouldLose = errors.New("an upgrade would lose")

// Upgrade is what a program is asked for that is to hand its session to another executable.
type Upgrade struct {
	ID      string   `json:"id"`      // of the new keeper
	Version string   `json:"version"` // that it has to be of
	Path    string   `json:"path"`    // the executable
	Args    []string `json:"args"`

	// Device and Inode are those of the file at Path as its caller sees it, who may be in another
	// container.
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`

	// TurnTimeout bounds the wait for the command that runs: the error is then shell.ErrBusy. Zero
	// means that it waits as long as it takes.
	TurnTimeout time.Duration `json:"turn_timeout_ns,omitempty"`

	Force bool `json:"force,omitempty"` // also if something is lost
}

// Upgraded is what came of it.
type Upgraded struct {
	Lost []string `json:"lost,omitempty"` // as there was Force
}

// Upgrader is a [session.Handle] whose program can be upgraded.
type Upgrader interface {
	Upgrade(ctx context.Context, to Upgrade) (Upgraded, error)
}

// Pause keeps requests that wait for the session's shell from beginning, and waits until those are through
// that have begun. With a limit the error is shell.ErrBusy if that takes longer. The caller must call
// resume, once: with moved, all requests are answered by ErrMoved from then on, but for those about
// commands that ran here.
func (h *Handler) Pause(ctx context.Context, limit time.Duration) (resume func(moved bool), err error) {
	return h.gate.close(ctx, limit)
}

func (h *Handler) postUpgrade(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in Upgrade
	if err := jsonhttp.Decode(w, r, MostBody, &in); err != nil {
		return nil, err
	}
	u, ok := s.(Upgrader)
	if !ok {
		return nil, fmt.Errorf("session %q is not one that is kept: there is nothing to upgrade", s.Name())
	}
	return u.Upgrade(r.Context(), in)
}

// Upgrade hands the session to another executable. After ErrGone nobody knows what came of it.
func (s *Session) Upgrade(ctx context.Context, to Upgrade) (did Upgraded, err error) {
	err = s.c.callOnce(ctx, http.MethodPost, below(s.name)+"/upgrade", to, &did)
	return did, s.worded(ctx, "upgrade", err)
}
