package approve

import (
	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confined is what a policy prevents, for approval.Options.
func Confined(policy sandbox.Policy) (c approval.Confined) {
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	c.Refused = policy.Refuses
	return c
}
