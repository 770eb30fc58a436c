package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/sandbox"
)

// A sandbox that could write a state directory would say which processes are signalled.
func TestAStateDirectoryThatIsShownIsRefused(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	put(t, top, "", "ws/state/", "ws/sub/", "data/", "beside/", "ws/.git/", "holds/ws/")
	link := func(to, at string) { require.NoError(t, os.Symlink(to, filepath.Join(top, at))) }
	link("ws/state", "to-state")
	link("../beside", "ws/away")
	link("ws/away", "there-and-back")
	ws := sandbox.WorkspaceWrite(filepath.Join(top, "ws"))
	all := ws
	all.FS.Root, all.FS.Mask = sandbox.All, []string{"/var/lib/masked"}
	for _, row := range []struct {
		name   string
		policy sandbox.Policy
		dir    string
		why    string // empty: it is fine
	}{
		{"in the workspace", ws, "ws/state", "FS.Workspace shows it"},
		{"the workspace", ws, "ws", "FS.Workspace shows it"},
		{"it is not there yet", ws, "ws/none/state", "FS.Workspace shows it"},
		{"behind a symlink", ws, "to-state/jobs", "FS.Workspace shows it"},
		{"behind a symlink in the workspace", ws, "ws/away/jobs", "FS.Workspace shows " + top + "/ws/away, by which it is named"},
		{"behind a symlink to one in the workspace", ws, "there-and-back", "FS.Workspace shows " + top + "/ws/away, by which it is named"},
		{"read-only", sandbox.ReadOnly(filepath.Join(top, "ws")), "ws/state", "FS.Workspace shows it"},
		{"protected", ws, "ws/.git/state", "shows it"},
		{"in what is writable besides", ws.With(nil, []string{filepath.Join(top, "data")}), "data/state", "FS.ExtraRW shows it"},
		{"in what is shown besides", ws.With([]string{filepath.Join(top, "data")}, nil), "data/state", "FS.ExtraRO shows it"},
		{"it holds the workspace", sandbox.WorkspaceWrite(filepath.Join(top, "holds/ws")), "holds", "FS.Workspace shows " + top + "/holds/ws, which is in it"},
		{"all is shown", all, "/var/lib/none/state", "FS.Root shows it"},
		{"of the system", ws, "/usr/lib/state", "FS.Root shows it"},
		{"beside", ws, "beside", ""},
		{"beside, and missing", ws, "beside/none", ""},
		{"hidden", all, "/var/lib/masked/state", ""},
		{"in a private /tmp", ws, "/tmp/state", ""},
		{"no sandbox", sandbox.Unconfined("to see"), "ws", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			where, err := sandbox.New(row.policy)
			require.NoError(t, err)
			dir := row.dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(top, dir)
			}
			err = where.Shield(dir)
			if row.why == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, sandbox.ErrProtect)
			assert.ErrorContains(t, err, row.why)
			assert.ErrorContains(t, err, "; set StateDir to a directory that the sandbox does not show")
		})
	}
}
