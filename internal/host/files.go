package host

import (
	"errors"
	"fmt"
	"slices"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
)

// ErrNoFiles means that the limpet over there is too old to copy files.
var ErrNoFiles = errors.New("no files can be copied")

// Files reads and writes the files of the machine. It can be used until Disconnect.
func (h *Host) Files() (*transfer.Remote, error) {
	if err := h.can(connect.CanFiles, "copy files of", ErrNoFiles); err != nil {
		return nil, err
	}
	return &transfer.Remote{Asks: h.asks, Lost: LostFiles}, nil
}

// can returns an error if the limpet over there does not say that it can do something.
func (h *Host) can(what, op string, not error) error {
	hello := h.Hello()
	if slices.Contains(hello.Can, what) {
		return nil
	}
	return &Error{
		Op: op, Target: h.target, Err: fmt.Errorf("%w: limpet %s is there, which is too old", not, plain([]byte(hello.Version))),
		Remedy: "bring it up to date, or take it out of the PATH there, so that this one is copied there; limpet hosts close ends a connection that an older one has made",
	}
}

// LostFiles reports whether an error of Files is that of the connection, which may be another one by now.
func LostFiles(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrGone) || errors.Is(err, ErrLost)
}
