package approve

import (
	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/sandbox"
)

// Confined is what a policy prevents, for approval.Options. It does not say which files are lost: what was approved before, as a git clone, may have
// made a link in the sandbox's own /tmp or home that leads to the workspace.
func Confined(policy sandbox.Policy) (c approval.Confined) {
	c.Network, c.Processes, c.Privileges = policy.Prevents()
	return c
}
