package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
)

// looker is a [session.Handle] whose state can be looked at.
type looker interface {
	Look(ctx context.Context) (session.Looked, error)
	DoAt(ctx context.Context, mark string, req command.Request) (command.Result, error)
}

var errNoLook = errors.New("nothing ran: the session cannot be looked at here")

// looked is the answer to look.
type looked struct {
	session.Looked
	Mounts string `json:"mounts"` // the mount namespace in which the session's programs are looked for
}

// mounts is the mount namespace of this program; empty if that is not known.
func mounts() string {
	ns, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return ""
	}
	return ns
}

func (h *Handler) getLook(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	l, ok := s.(looker)
	if !ok {
		return nil, errNoLook
	}
	what, err := l.Look(r.Context())
	if err != nil {
		return nil, err
	}
	var there session.Looked
	text, err := json.Marshal(what)
	if err == nil {
		err = json.Unmarshal(text, &there)
	}
	if err != nil || !reflect.DeepEqual(what, there) { // Of bytes that are no UTF-8, JSON would make another PATH.
		return nil, errNoLook
	}
	return looked{what, mounts()}, nil
}

// doAt runs a request in the state of a mark; in whatever state if that is empty.
func doAt(ctx context.Context, s session.Handle, mark string, req command.Request) (command.Result, error) {
	if mark == "" {
		return s.Do(ctx, req)
	}
	l, ok := s.(looker)
	if !ok {
		return command.Result{ExitCode: command.CodeUnknown}, errNoLook
	}
	return l.DoAt(ctx, mark, req)
}

// Look returns what the session's shell has now: see [session.Session.Look]. It fails if the other program is an older one, or
// sees other files: what is known of programs here does not count there.
func (s *Session) Look(ctx context.Context) (session.Looked, error) {
	var what looked
	if err := s.call(ctx, "look at", http.MethodGet, "/look", nil, &what); err != nil {
		return session.Looked{}, err
	}
	if what.Mark == "" || what.Mounts == "" || what.Mounts != mounts() {
		return session.Looked{}, s.fail("look at", errNoLook)
	}
	return what.Looked, nil
}
