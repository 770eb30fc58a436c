package sandbox

import (
	"fmt"
	"os"
	"syscall"

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

// usable refuses a session directory that was not made for the user of the sandbox.
func (p Policy) usable(spec transport.Spec) error {
	if spec.SessionDir == "" || p.user() == ourselves() {
		return nil
	}
	info, err := os.Lstat(spec.SessionDir)
	if err != nil {
		return &Error{Code: ErrMount, Detail: "the session directory: " + err.Error()}
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != p.user().UID {
		return &Error{
			Code: ErrRunAs, Detail: fmt.Sprintf("the session directory %s belongs to user %d, not to %s", spec.SessionDir, owner, userText(p.user())),
			Hint: "give it to transport.UserOf, which a transport around this one must pass on",
		}
	}
	return nil
}
