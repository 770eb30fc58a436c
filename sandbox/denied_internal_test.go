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
	for _, row := range []struct {
		policy Policy
		code   int
		said   string
		means  string
	}{
		{usual, 1, "touch: cannot touch '/usr/x': Read-only file system\n", "it wrote where the sandbox is read-only; it can write to /w (but for what is protected, as .git), /tmp, $HOME"},
		{ReadOnly("/w").With(nil, []string{"/x"}), 1, "sh: 1: cannot create x: Read-only file system", "it wrote where the sandbox is read-only; it can write to /x, /tmp, $HOME"},
		{usual, 6, "curl: (6) Could not resolve host: example.com", "there is no network in the sandbox"},
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
