package sandbox

import (
	"fmt"
	"os"

	"github.com/limpet-sh/limpet/transport"
)

// Credential is a user and a group. A process that runs so has no other groups.
type Credential = transport.Credential

// ourselves is who this program runs as.
func ourselves() Credential {
	return Credential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

// user is who runs in the sandbox.
func (p Policy) user() Credential {
	if p.RunAs == nil {
		return ourselves()
	}
	return *p.RunAs
}

func userText(c Credential) string { return fmt.Sprintf("%d:%d", c.UID, c.GID) }

// runAs refuses who cannot be run as.
func (r *resolver) runAs() error {
	if r.p.RunAs == nil {
		return nil
	}
	who := *r.p.RunAs
	r.p.RunAs = &who // A copy: it shares nothing with the caller's.
	return mayRunAs(ourselves(), who)
}

func mayRunAs(us, who Credential) error {
	if us.UID == 0 || us == who {
		return nil
	}
	return &Error{Code: ErrRunAs, Detail: fmt.Sprintf("cannot run as %s: this program runs as %s", userText(who), userText(us)),
		Hint: "leave RunAs out, or run the program as root"}
}

// usable refuses files that another user cannot use: those by which a
// persistent shell is spoken to are limpet's, mode 0600, in a directory that
// only its own user can enter. Commands that run one-shot have their output
// by descriptors.
func (p Policy) usable(spec transport.Spec) error {
	if spec.SessionDir == "" || p.user() == ourselves() {
		return nil
	}
	return &Error{Code: ErrRunAs, Detail: fmt.Sprintf("user %s cannot use the session directory %s", userText(p.user()), spec.SessionDir),
		Hint: "RunAs is for one-shot commands with scripts of less than 120 KB: leave it out for others, or run the whole program as that user"}
}
