package host

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/wire"
)

const klog = `E1127 10:04:57.%d   10216 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list: Get \"https://c:1/api?timeout=32s\": dial tcp: lookup c: no such host"` + "\n"

// What programs log is left out where they say the same in a sentence, and is shortened where they do not.
func TestWhatProgramsLogIsShortened(t *testing.T) {
	many := fmt.Sprintf(strings.Repeat(klog, 4), 499055, 500503, 501922, 503279)
	for _, row := range []struct{ printed, said, remedy string }{
		{many + "Unable to connect to the server: dial tcp: lookup c: no such host\n", "Unable to connect to the server: dial tcp: lookup c: no such host", "is the cluster's address right"},
		{many + "The connection to the server c:1 was refused - did you specify the right host or port?\n", "The connection to the server c:1 was refused - did you specify the right host or port?", "is KUBECONFIG right?"},
		{
			many, `couldn't get current server API group list: Get "https://c:1/api?timeout=32s": dial tcp: lookup c: no such host`, "",
		},
		{
			many + "E1127 10:04:58.1   1 exec.go:5] plugin \x1b[31mfailed\n",
			`couldn't get current server API group list: Get "https://c:1/api?timeout=32s": dial tcp: lookup c: no such host; plugin [31mfailed`, "",
		},
		{many + "error: You must be logged in to the server (the server has asked for the client to provide credentials)", "error: You must be logged in to the server (the server has asked for the client to provide credentials)", "kubectl get pods"},
		{
			`time="2026-11-27T10:00:00Z" level=warning msg="The cgroupv2 manager is set to systemd"` + "\n" + `Error: no container with name or ID "web" found: no such container`,
			`Error: no container with name or ID "web" found: no such container`, "podman ps --all",
		},
		{`time="2026-11-27T10:00:00Z" level=error msg="no space left on device"`, "no space left on device", "make room there"},
		{
			"Error: crun: executable file `sh` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found",
			"Error: crun: executable file `sh` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found", "the container has no sh",
		},
		{"Error response from daemon: No such container: web", "Error response from daemon: No such container: web", "docker ps --all"},
		{"ssh: connect to host a port 1: Connection refused", "ssh: connect to host a port 1: Connection refused", "does sshd run there"},
		{
			`Defaulted container "a" out of: a, b` + "\n" + many, `Defaulted container "a" out of: a, b; couldn't get current server API group list: Get "https://c:1/api?timeout=32s": dial tcp: lookup c: no such host`, "",
		},
		{`E1127 is the name of a machine`, "E1127 is the name of a machine", ""},
		{`E1127 10:04:57.1   1 x.go:1] "Broken" err="\q"`, `"Broken" err="\q"`, ""},
	} {
		var n noise
		_, err := n.Write([]byte(row.printed))
		require.NoError(t, err)
		assert.Equal(t, row.said, n.String())
		if remedy := remedyOf(errors.New("x"), n.String()); row.remedy == "" {
			assert.Empty(t, remedy, row.said)
		} else {
			assert.Contains(t, remedy, row.remedy)
		}
	}
}

// Of much that is logged only the end is kept, in whole lines.
func TestTheEndOfWhatIsLoggedIsWholeLines(t *testing.T) {
	var n noise
	for i := range 100 {
		_, err := fmt.Fprintf(&n, klog, i)
		require.NoError(t, err)
	}
	assert.Equal(t, `couldn't get current server API group list: Get "https://c:1/api?timeout=32s": dial tcp: lookup c: no such host`, n.String())
	_, err := n.Write([]byte(strings.Repeat("x", 10000)))
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("x", 2000), n.String())
}

// What a command said counts before how it has ended.
func TestAVersionAndAnEndHaveARemedy(t *testing.T) {
	for _, row := range []struct {
		err          error
		said, remedy string
	}{
		{&versionError{"0.1", wire.Version - 1, wire.Version - 1}, "", "update the limpet over there"},
		{&versionError{"9", wire.Version + 1, wire.Version + 2}, "", "update this limpet"},
		{&endedError{name: "ssh", code: 1}, "", "the account over there, a startup file or a ForceCommand ends the login"},
		{&endedError{name: "ssh", code: 255}, "kex_exchange_identification: Connection closed by remote host", "ssh -v HOST true says more"},
		{&endedError{name: "ssh", code: 255}, "ssh: connect to host a port 1: Connection refused", "does sshd run there"},
		{&endedError{name: "ssh", code: -1, signal: syscall.SIGKILL}, "", "try it by hand"},
		{&endedError{name: "kubectl", code: 1}, "", "try it by hand: it is to reach a POSIX sh"},
	} {
		assert.Contains(t, remedyOf(fmt.Errorf("%w: %w", ErrUnreached, row.err), row.said), row.remedy, "%v; %s", row.err, row.said)
	}
	assert.Empty(t, remedyOf(&endedError{name: "ssh", code: 1, within: true}, "limpet: no directory can be had"), "a sh was reached, and did answer")
	assert.False(t, heals(&Error{Err: &versionError{"9", wire.Version + 1, wire.Version + 1}}), "nobody updates it meanwhile")
}
