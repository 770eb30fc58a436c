package sandbox

import (
	"slices"

	"github.com/limpet-sh/limpet/internal/egress"
)

// proxyAddress is where the proxy answers in a sandbox with an allowlist.
const proxyAddress = "127.0.0.1:3128"

// The helper is this program's executable in the sandbox: see inside_linux.go.
const (
	helperPath    = "/run/limpet-helper"
	helperListen  = "__limpet_sandbox_listen__"  // FD PROGRAM [ARGUMENT...]
	helperConnect = "__limpet_sandbox_connect__" // HOST PORT
)

// proxied tells programs of the proxy. ALL_PROXY is not among it: some give up
// over a kind of proxy that they do not know.
var proxied = []string{
	"http_proxy=http://" + proxyAddress, "https_proxy=http://" + proxyAddress,
	"HTTP_PROXY=http://" + proxyAddress, "HTTPS_PROXY=http://" + proxyAddress,
	"no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1",
	"YARN_HTTP_PROXY=http://" + proxyAddress, "YARN_HTTPS_PROXY=http://" + proxyAddress, // Yarn looks at no others, from version 2 on.
	"GIT_SSH_COMMAND=ssh -o ProxyCommand='" + helperPath + " " + helperConnect + " %h %p'",
}

// retry is a variable that says how often a program tries again what did not work. Without
// a network nothing will, and a host that the proxy refuses it refuses for good: the
// program shall say so at once. What is on the sandbox's own loopback works all the same,
// which it would not if programs were told to be offline.
type retry struct {
	name    string
	noNet   string
	proxied string // empty: not set. Hosts that are allowed may fail for once.
	why     string
}

var retries = []retry{
	{"npm_config_fetch_retries", "0", "", "npm and pnpm wait 10 s and then 60 s; for them a refusal by the proxy is final"},
	{"pnpm_config_fetch_retries", "0", "", "pnpm from 11 on, as above"},
	{"PIP_RETRIES", "1", "1", "pip tries 5 times, for 8 s; with none it does not say why it failed"},
	{"UV_HTTP_RETRIES", "0", "1", "uv tries 3 times, and waits longer each time"},
	{"YARN_HTTP_RETRY", "0", "1", "yarn from 2 on tries 3 times, for 7 s"},
	{"CARGO_NET_RETRY", "0", "1", "cargo tries 3 times, for some seconds"},
	{"BUNDLE_RETRY", "0", "1", "bundler tries 3 times"},
}

// impatient are the variables of retries for a policy.
func (n Net) impatient() (env []string) {
	for _, r := range retries {
		switch {
		case n.Mode == NoNet:
			env = append(env, r.name+"="+r.noNet)
		case n.Mode == DomainsNet && r.proxied != "":
			env = append(env, r.name+"="+r.proxied)
		}
	}
	return env
}

func (n Net) rules() egress.Rules {
	return egress.Rules{Allow: n.Allow, Deny: n.Deny, Ports: n.Ports, Private: n.Private, SkipSNI: n.SkipSNI}
}

// network checks the allowlist. One that has no effect is refused, since
// somebody believes that it has.
func (r *resolver) network() error {
	n := &r.p.Net
	n.Allow, n.Deny, n.Ports = slices.Clone(n.Allow), slices.Clone(n.Deny), slices.Clone(n.Ports)
	listed := len(n.Allow) > 0 || len(n.Deny) > 0 || n.Ports != nil || n.Private || n.SkipSNI
	switch {
	case n.Mode != DomainsNet && listed:
		return r.invalid("Net has a list of hosts, and Net.Mode is not DomainsNet")
	case n.Mode != DomainsNet:
		return nil
	case len(n.Allow) == 0:
		return r.invalid("Net.Allow is empty; list hosts, or set Net.Mode to NoNet")
	}
	if err := n.rules().Validate(); err != nil {
		return r.invalid("%v", err)
	}
	return nil
}

// inherit fills in what a child does not say of the parent's allowlist, and keeps
// what the parent denies.
func (n Net) inherit(parent Net) Net {
	if n.Mode != DomainsNet || parent.Mode != DomainsNet {
		return n
	}
	if n.Ports == nil {
		n.Ports = parent.Ports
	}
	n.Deny = slices.Clip(n.Deny)
	for _, host := range parent.Deny {
		if !slices.Contains(n.Deny, host) {
			n.Deny = append(n.Deny, host)
		}
	}
	return n
}

// fits returns an error if the allowlist has what the parent's has not.
func (n Net) fits(parent Net) error {
	if n.Mode != DomainsNet || parent.Mode != DomainsNet {
		return nil
	}
	if err := n.rules().Narrower(parent.rules()); err != nil {
		return widens("reach more: %v", err)
	}
	return nil
}
