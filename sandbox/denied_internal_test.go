package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatTheSandboxRefusedIsGuessed(t *testing.T) {
	usual, host := WorkspaceWrite("/w"), HostNetwork("/w")
	open := usual
	open.Net.Unix = UnixAllowed
	guarded := usual
	guarded.guards = []guard{whole("/w/sub/.npmrc")}
	const held = "what the sandbox protects or hides, and the directories that hold it, cannot be moved or removed"
	const none = "there is no network in the sandbox: ask for one that may reach the host, by Net.Allow=HOST"
	const refused = "the sandbox may not reach the host: ask for one that may, by Net.Allow=HOST"
	for _, row := range []struct {
		policy Policy
		code   int
		said   string
		means  string
	}{
		{usual, 1, "touch: cannot touch '/usr/x': Read-only file system\n", "it wrote where the sandbox is read-only; it can write to /w (but for what is protected, as .git), /tmp, $HOME"},
		{ReadOnly("/w").With(nil, []string{"/x"}), 1, "sh: 1: cannot create x: Read-only file system", "it wrote where the sandbox is read-only; it can write to /x, /tmp, $HOME"},
		{usual, 6, "curl: (6) Could not resolve host: example.com", none},
		{usual, 1, "npm error request to https://registry.example.org/x failed, reason: getaddrinfo EAI_AGAIN registry.example.org", none},
		{usual, 1, "ERROR: Could not find a version that satisfies the requirement six (from versions: none)", none},
		{usual, 1, "dial udp 10.0.0.1:53: connect: network is unreachable", none},
		{AllowDomains("/w", "example.com"), 56, "curl: (56) CONNECT tunnel failed, response 403", refused},
		{AllowDomains("/w", "example.com"), 1, "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 Forbidden'))\n(from versions: none)", refused},
		{AllowDomains("/w", "example.com"), 1, "npm error code E403", refused},
		{AllowDomains("/w", "example.com"), 1, `go: x: Get "https://proxy.example.org/x": Forbidden`, refused},
		{AllowDomains("/w", "example.com"), 1, "RequestError: Bad response: 403", refused},
		{host, 1, "npm error code E403", ""},
		{host, 1, "(from versions: none)", ""},
		{AllowDomains("/w", "example.com"), 1, "connect: Network is unreachable", "the sandbox has no network but a proxy, which programs find in http_proxy and https_proxy"},
		{host, 6, "curl: (6) Could not resolve host: example.com", ""},
		{usual, 1, "socket: Address family not supported by protocol", "Unix sockets are blocked in the sandbox"},
		{open, 1, "socket: Address family not supported by protocol", ""},
		{guarded, 1, "rm: cannot remove 'sub': Device or resource busy", held},
		{guarded, 1, "mv: cannot move 'sub' to 'x': Invalid cross-device link", held},
		{usual, 1, "umount: Device or resource busy", ""},
		{usual, 159, "", "it made a system call that the sandbox does not know"},
		{usual, 1, "make: *** [all] Error 1", ""},
	} {
		assert.Equal(t, row.means, row.policy.denied(row.code, nil, []byte(row.said)), row.said)
	}
}
