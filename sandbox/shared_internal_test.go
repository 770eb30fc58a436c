package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In texts, TOP is the directory that the home directory is in, $W the workspace.
func TestWhatIsSharedIsRefusedWhereItIsNotSafe(t *testing.T) {
	home := func(dir string) func(*Policy) {
		return func(p *Policy) { p.FS.Home, p.FS.HomeDir = SharedHome, expand(dir, p.FS.Workspace) }
	}
	tmp := func(dir string) func(*Policy) {
		return func(p *Policy) { p.FS.Tmp, p.FS.TmpDir = SharedTmp, expand(dir, p.FS.Workspace) }
	}
	rw := func(dir string) func(*Policy) {
		return func(p *Policy) { p.FS.ExtraRW = []Bind{{Src: expand(dir, p.FS.Workspace), Dst: "/x"}} }
	}
	for _, row := range []struct {
		name, text string
		changes    []func(*Policy)
	}{
		{"fine", "", []func(*Policy){home("TOP/a"), tmp("TOP/b")}},
		{"in the home", "", []func(*Policy){home("TOP/home/other")}},
		{"by a link on the way", "", []func(*Policy){home("TOP/tohome/other")}},
		{"none", `FS.HomeDir: "" is not a path; name a directory for it`, []func(*Policy){home("")}},
		{"NUL", `FS.TmpDir: "/tmp\x00x" is not a path`, []func(*Policy){tmp("/tmp\x00x")}},
		{"not asked for", "FS.TmpDir: TOP/a is not asked for; set FS.Tmp=SharedTmp", []func(*Policy){func(p *Policy) { p.FS.TmpDir = expand("TOP/a", p.FS.Workspace) }}},
		{"home not asked for", "FS.HomeDir: TOP/a is not asked for; set FS.Home=SharedHome", []func(*Policy){home("TOP/a"), func(p *Policy) { p.FS.Home = ReadOnlyHome }}},
		{"missing", "FS.HomeDir: TOP/none does not exist; create it", []func(*Policy){home("TOP/none")}},
		{"a file", "FS.TmpDir: TOP/data/file is not a directory", []func(*Policy){tmp("TOP/data/file")}},
		{"a link", "FS.TmpDir: TOP/tohome is a symlink; name where it leads", []func(*Policy){tmp("TOP/tohome")}},
		{"a link that is dressed up", "FS.TmpDir: TOP/tohome is a symlink", []func(*Policy){tmp("TOP/tohome/")}},
		{"the home", "FS.HomeDir: TOP/home is $HOME: secrets would be writable; choose a sub directory", []func(*Policy){home("TOP/home")}},
		{"above the home", "FS.HomeDir: TOP holds $HOME", []func(*Policy){home("TOP")}},
		{"the system", "FS.TmpDir: /usr is a directory of the system", []func(*Policy){tmp("/usr")}},
		{"the host's /tmp", "FS.TmpDir: /tmp ", []func(*Policy){tmp("/tmp")}},
		{"the workspace", "FS.TmpDir: $W is in the workspace, or holds it; choose a directory beside it", []func(*Policy){tmp("$W")}},
		{"in the workspace", "$W/sub is in the workspace", []func(*Policy){tmp("$W/sub")}},
		{"behind a link of the workspace", "a symlink that a sandbox could have made; name where it leads", []func(*Policy){tmp("$W/link/a")}},
		{"one for both", "FS.TmpDir: TOP/a is in TOP/a, or holds it; choose directories beside each other", []func(*Policy){home("TOP/a"), tmp("TOP/a")}},
		{"one in the other", "FS.TmpDir: TOP/data/sub is in TOP/data", []func(*Policy){home("TOP/data"), tmp("TOP/data/sub")}},
		{"in what is writable", "FS.HomeDir: TOP/data/sub is in TOP/data of FS.ExtraRW, or holds it", []func(*Policy){home("TOP/data/sub"), rw("TOP/data")}},
		{"holds what is writable", "FS.TmpDir: TOP/data is in TOP/data/sub of FS.ExtraRW, or holds it", []func(*Policy){tmp("TOP/data"), rw("TOP/data/sub")}},
		{"masked", "FS.Mask[0]: TOP/data would hide TOP/data/sub, which FS.HomeDir shows; take one of them out", []func(*Policy){home("TOP/data/sub"), func(p *Policy) { p.FS.Mask = []string{expand("TOP/data", p.FS.Workspace)} }}},
		{"the repository of the worktree", "FS.HomeDir: TOP/data/sub: TOP/data/sub would be writable by it", []func(*Policy){home("TOP/data/sub"), func(p *Policy) {
			_ = os.WriteFile(filepath.Join(p.FS.Workspace, ".git"), []byte("gitdir: ../../data/sub\n"), 0o600) // Else the row fails.
		}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			top := tree(t, "a/", "b/", "home/w/sub/")
			require.NoError(t, os.Symlink("home", filepath.Join(top, "tohome")))
			require.NoError(t, os.Symlink("../..", filepath.Join(top, "home/w/link")))
			w := filepath.Join(top, "home/w")
			p := WorkspaceWrite(w)
			for _, change := range row.changes {
				change(&p)
			}
			r, err := p.resolve()
			if row.text == "" {
				require.NoError(t, err)
				again, err := r.resolve()
				require.NoError(t, err)
				assert.Equal(t, r, again)
				return
			}
			require.ErrorIs(t, err, ErrMount)
			assert.ErrorContains(t, err, expand(row.text, w))
		})
	}
}

func TestWhatIsSharedBelongsToTheUserOfTheSandbox(t *testing.T) {
	top := tree(t, "a/", "b/")
	if err := os.Chown(filepath.Join(top, "b"), 12345, 12345); err != nil {
		t.Skipf("only root can give a file to another user, and only to one that its namespace has: %v", err)
	}
	p := WorkspaceWrite(filepath.Join(top, "home/w"))
	p.FS.Tmp, p.FS.TmpDir = SharedTmp, filepath.Join(top, "a")
	p.RunAs = &Credential{UID: 12345, GID: 12345}
	_, err := p.resolve()
	require.ErrorIs(t, err, ErrMount)
	assert.ErrorContains(t, err, "does not belong to user 12345, who runs in the sandbox; choose a directory of its own")
	require.NoError(t, os.Chown(p.FS.TmpDir, 12345, 12345))
	_, err = p.resolve()
	require.NoError(t, err)
	p.RunAs = nil
	_, err = p.resolve()
	require.ErrorIs(t, err, ErrMount)
}

func TestOnlyRootRunsAsSomebodyElse(t *testing.T) {
	root, u, v := Credential{}, Credential{UID: 5, GID: 6}, Credential{UID: 5, GID: 7}
	for _, row := range []struct {
		us, who Credential
		ok      bool
	}{{root, root, true}, {root, u, true}, {u, u, true}, {u, v, false}, {u, root, false}} {
		err := mayRunAs(row.us, row.who)
		if row.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrRunAs)
		assert.ErrorContains(t, err, "this program runs as 5:6; leave RunAs out, or run the program as root")
	}
	p := Unconfined("why not")
	p.RunAs = &u
	_, err := p.resolve()
	require.ErrorIs(t, err, ErrNoPolicy)
}
