package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/sandbox"
)

func TestOnlyAPolicyThatSharesNothingContains(t *testing.T) {
	assert.True(t, sandbox.ReadOnly("/src").Contains())
	for name, p := range map[string]sandbox.Policy{
		"workspace-write": sandbox.WorkspaceWrite("/src"), "allow-domains": sandbox.AllowDomains("/src", "example.com"), "none": sandbox.Unconfined("a test"),
	} {
		assert.False(t, p.Contains(), name)
	}
	for name, widen := range map[string]func(*sandbox.Policy){
		"a directory that is written": func(p *sandbox.Policy) { p.FS.ExtraRW = []sandbox.Bind{{Src: "/x"}} },
		"a home that is shared":       func(p *sandbox.Policy) { p.FS.Home = sandbox.SharedHome },
		"a tmp that is shared":        func(p *sandbox.Policy) { p.FS.Tmp = sandbox.SharedTmp },
		"the network":                 func(p *sandbox.Policy) { p.Net.Mode = sandbox.HostNet },
		"some hosts":                  func(p *sandbox.Policy) { p.Net.Mode = sandbox.DomainsNet },
		"sockets":                     func(p *sandbox.Policy) { p.Net.Unix = sandbox.UnixAllowed },
	} {
		p := sandbox.ReadOnly("/src")
		widen(&p)
		assert.False(t, p.Contains(), name)
	}
	p := sandbox.ReadOnly("/src")
	p.FS.Access = sandbox.Overlay
	assert.True(t, p.Contains(), "what is written is thrown away")
}
