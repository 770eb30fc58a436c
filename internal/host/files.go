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
	hello := h.Hello()
	if !slices.Contains(hello.Can, connect.CanFiles) {
		return nil, &Error{
			Op: "copy files of", Target: h.target, Err: fmt.Errorf("%w: limpet %s is there, which is too old", ErrNoFiles, plain([]byte(hello.Version))),
			Remedy: "bring it up to date, or take it out of the PATH there, so that this one is copied there; limpet hosts close ends a connection that an older one has made",
		}
	}
	return &transfer.Remote{Asks: h.asks, Lost: LostFiles}, nil
}

// LostFiles reports whether an error of Files is that of the connection, which may be another one by now.
func LostFiles(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrGone) || errors.Is(err, ErrLost)
}
