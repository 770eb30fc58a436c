package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// withStdin runs a script under the policy, or without a sandbox if that is nil, with
// the file as its stdin.
func withStdin(t *testing.T, workspace string, policy *sandbox.Policy, in *os.File, script string) (command.Result, error) {
	t.Helper()
	opts := &oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir()}
	if policy != nil {
		where, err := sandbox.New(*policy)
		require.NoError(t, err)
		opts.Transport = where
	}
	r := oneshot.New(opts)
	defer func() { require.NoError(t, r.Close()) }()
	return r.Do(testenv.Context(t), command.Request{Script: script, Stdin: in})
}

// A descriptor leads past the mounts of the sandbox to the file that it is of.
func TestAFileThatIsStdinCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "file")
	const script = `cat; chmod 600 /proc/self/fd/0; echo bites >/proc/self/fd/0`
	for _, where := range []*sandbox.Policy{nil, policy} {
		require.NoError(t, os.WriteFile(outside, []byte("input\n"), 0o644))
		require.NoError(t, os.Chmod(outside, 0o644))
		in, err := os.Open(outside)
		require.NoError(t, err)
		res, err := withStdin(t, workspace, where, in, script)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, "input\n", res.Stdout.String())
		b, err := os.ReadFile(outside)
		require.NoError(t, err)
		info, err := os.Stat(outside)
		require.NoError(t, err)
		if where == nil {
			require.Equal(t, "bites\n", string(b), "the control does not bite")
			continue
		}
		assert.Equal(t, "input\n", string(b))
		assert.EqualValues(t, 0o644, info.Mode().Perm())
	}
}

// More than a pipe holds is copied while the process reads, and a process that does not
// read it holds nobody up.
func TestALongFileIsStdin(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(outside, make([]byte, 1<<20), 0o600))
	for script, want := range map[string]string{"wc -c": "1048576\n", "head -c 1 | wc -c": "1\n", "echo unread": "unread\n"} {
		in, err := os.Open(outside)
		require.NoError(t, err)
		res, err := withStdin(t, workspace, policy, in, script)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, want, res.Stdout.String())
	}
}

func TestADirectoryIsNoStdin(t *testing.T) {
	workspace, policy := usual(t)
	in, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	_, err = withStdin(t, workspace, policy, in, "ls /proc/self/fd/0/..")
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "stdin "+in.Name()+" cannot be handed over: is a directory")
}

// Bwrap's own descriptors stand behind those of the process, however many it has of them.
func TestAShellInASandboxReadsItsStdin(t *testing.T) {
	need(t)
	for name, policy := range map[string]func(string) sandbox.Policy{
		"workspace-write": sandbox.WorkspaceWrite,
		"allow-domains":   func(w string) sandbox.Policy { return sandbox.AllowDomains(w, "example.com") },
	} {
		t.Run(name, func(t *testing.T) {
			workspace := t.TempDir()
			where, err := sandbox.New(policy(workspace))
			require.NoError(t, err)
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close() // Read only.
			_, err = w.WriteString("one\ntwo\n")
			require.NoError(t, err)
			require.NoError(t, w.Close())
			sh, err := shell.Start(testenv.Context(t), &shell.Options{
				Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Stdin: r,
			})
			require.NoError(t, err)
			defer func() { assert.NoError(t, sh.Close()) }()
			assert.Equal(t, "one", says(t, sh, "read -r x; echo $x"))
			assert.Equal(t, "two", says(t, sh, "cat"))
		})
	}
}

// The shell's own stdin stands above bash's descriptors.
func TestAFileThatIsTheStdinOfAShellCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(outside, []byte("one\ntwo\n"), 0o644))
	in, err := os.Open(outside)
	require.NoError(t, err)
	defer in.Close() // Read only.
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Stdin: in})
	require.NoError(t, err)
	defer func() { assert.NoError(t, sh.Close()) }()
	const script = `read -r x; echo $x; for fd in /proc/self/fd/* /proc/$$/fd/*; do [[ $(readlink $fd) != */file ]] || echo $fd leads there; done
chmod 600 /proc/self/fd/0; echo bites >/proc/self/fd/0`
	assert.Equal(t, "one", says(t, sh, "{ "+script+"; } 2>/dev/null"))
	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(b))
}
