package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	const options = "-o IgnoreUnknown=SessionType,RemoteCommand -o ControlMaster=no -o ClearAllForwardings=yes -o RemoteCommand=none -o SessionType=default -o PermitLocalCommand=no"
	for said, want := range map[string]string{
		"ssh://host":               "ssh -o BatchMode=yes -T " + options + " -- host|exec sh",
		"ssh://me@host:2222/":      "ssh -o BatchMode=yes -T " + options + " -p 2222 -l me -- host|exec sh",
		"ssh://[::1]:22":           "ssh -o BatchMode=yes -T " + options + " -p 22 -- ::1|exec sh",
		"docker://web_1":           "docker exec -i web_1 sh",
		"podman://u@box":           "podman exec -i -u u box sh",
		"kube://ns/pod":            "kubectl exec -i -n ns pod -- sh",
		"kube://ns/pod/c":          "kubectl exec -i -n ns pod -c c -- sh",
		"kube://ctx/ns/pod/c":      "kubectl exec -i --context ctx -n ns pod -c c -- sh",
		"kube://a%2Fb%40c/ns/pod/": "kubectl exec -i --context a/b@c -n ns pod -- sh",
		`exec:a 'b c' "d\$ \e"\ f`: `a|b c|d$ \e f`,
		"exec:sh -c 'echo $x; y'":  "sh -c|echo $x; y",
	} {
		target, err := ParseTarget(said)
		require.NoError(t, err, said)
		argv, own := target.command(false)
		assert.True(t, own)
		var words []string
		for i, part := range strings.Split(want, "|") {
			if i == 0 && !strings.HasPrefix(said, "exec:a") {
				words = append(words, strings.Fields(part)...)
			} else {
				words = append(words, part)
			}
		}
		assert.Equal(t, words, argv, said)
	}
	for _, said := range []string{
		"", "here", "ssh:", "ssh:host", "ssh://", "ssh:///x", "ssh://-oProxyCommand=x", "ssh://-l@host", "ssh://u:secret@host", "ssh://host/dir", "ssh://host?x", "ssh://host:port", "ssh://host:0", "ssh://host:65536", "docker://c:1", "docker://", "http://host",
		"kube:", "kube:ns/pod", "kube://", "kube://pod", "kube:///pod", "kube://ns/", "kube://ns//c", "kube://a/b/c/d/e", "kube://ns/-pod", "kube://ns/%2Dpod", "kube://ns/pod?x", "kube://ns/p%zz", "kube://u:secret@ns/pod",
		"exec:", "exec:  ", "exec:a; b", "exec:a | b", "exec:a >f", "exec:x=1 a", "exec:a $b", "exec:a $(b)", "exec:a `b`", `exec:a "$b"`, "exec:a $'b'", "exec:a &", "exec:! a", "exec:a 'b", "exec:a b{1,2}c <(x)",
		"unix:", "unix:/run/s", "unix:s", "unix://s", "unix://run/s", "unix://u@/s", "unix:///", "unix:///run/", "unix:///s?x", "unix:///s?", "unix:///s#x", "unix:///s%00", "unix:///s%zz",
	} {
		_, err := ParseTarget(said)
		assert.ErrorIs(t, err, ErrTarget, said)
		assert.NotContains(t, err.Error(), "secret@", "what is shown")
	}
}

func TestTargetsThatAreSockets(t *testing.T) {
	for said, want := range map[string]string{
		"unix:///run/limpet.sock": "/run/limpet.sock", "unix:///s": "/s", "unix:////a//b/../s": "/a/s", "unix:///a%20b%3F%23%25": "/a b?#%", "unix:///a b": "/a b",
	} {
		target, err := ParseTarget(said)
		require.NoError(t, err, said)
		assert.Equal(t, want, target.socket)
		assert.Empty(t, target.argv)
		_, again := target.without(errMute)
		assert.False(t, again)
	}
}

// At a terminal ssh may ask, and its keys are not for ssh.
func TestAPersonCanBeAsked(t *testing.T) {
	target, err := ParseTarget("ssh://host")
	require.NoError(t, err)
	argv, own := target.command(true)
	assert.False(t, own)
	assert.Equal(t, []string{"sh", "-c", `trap "" INT QUIT TSTP; exec "$@"`, "sh", "ssh", "-T"}, argv[:6])
	assert.NotContains(t, argv, "BatchMode=yes")
	target, err = ParseTarget("exec:sh")
	require.NoError(t, err)
	argv, own = target.command(true)
	assert.True(t, own)
	assert.Equal(t, []string{"sh"}, argv)
}

func TestWhoMayChangeADirectory(t *testing.T) {
	own, root, tmp := "drwx------ 2 1000 1000 4096 Nov 27 03:06 /x/y", "drwxr-xr-x 1 0 0 4096 Nov 27 03:06 /", "drwxrwxrwt 1 0 0 4096 Nov 27 03:06 /x"
	volume, theirs := "drwxrwsrwx 2 0 1000 4096 Nov 27 03:06 /x", "drwxrwxrwx 2 1000 1000 4096 Nov 27 03:06 /x"
	for _, row := range []struct {
		parts     []string
		alone, in bool
	}{
		{[]string{own, root}, true, true},
		{[]string{own, tmp, root}, true, true},
		{[]string{own, volume, root}, false, true},
		{[]string{volume, root}, false, false},
		{[]string{own, theirs, root}, false, false},
		{[]string{own, "drwxr-xr-x 2 1001 1001 4096 Nov 27 03:06 /x", root}, false, false},
		{nil, false, false},
		{[]string{"ls: not allowed"}, false, false},
	} {
		assert.Equal(t, row.alone, checkParts(row.parts, "1000", false) == nil, row.parts)
		assert.Equal(t, row.in, checkParts(row.parts, "1000", true) == nil, row.parts)
	}
}

// Who has chosen another cluster or engine does not get a connection to the one before.
func TestAConnectionIsThatOfOneClusterAndEngine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none")+":"+filepath.Join(dir, "kube"))
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "containers"), 0o700))
	keyOf := func(said string) string {
		target, err := ParseTarget(said)
		require.NoError(t, err)
		return target.key()
	}
	for _, target := range []string{"kube://ns/pod", "docker://web", "podman://web", "exec:kubectl exec -i pod -- sh", "ssh://host"} {
		for _, file := range []string{"kube", "config.json", "containers/containers.conf", "containers/podman-connections.json"} {
			before := keyOf(target)
			assert.Equal(t, before, keyOf(target))
			f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			require.NoError(t, err)
			_, err = f.WriteString("current-context: other\n")
			require.NoError(t, err)
			require.NoError(t, f.Close())
			assert.Equal(t, target == "ssh://host", before == keyOf(target), "%s, %s", target, file)
		}
	}
}
