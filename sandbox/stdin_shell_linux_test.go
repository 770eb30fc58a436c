package sandbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

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
