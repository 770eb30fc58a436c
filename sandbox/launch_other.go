//go:build !linux

package sandbox

import (
	"context"

	"github.com/limpet-sh/limpet/transport"
)

func (*Transport) launch(context.Context, Policy, transport.Spec) (transport.Conn, error) {
	return nil, &Error{Code: ErrUnsupported, Detail: "there is no bubblewrap on this system", Hint: "use Linux, or ask for Unconfined explicitly"}
}
