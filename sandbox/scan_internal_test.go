package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGlobsAreForSecrets(t *testing.T) {
	for _, row := range []struct {
		globs []string
		name  string
		want  bool
	}{
		{DefaultScanMasks, ".env", true},
		{DefaultScanMasks, ".env.production", true},
		{DefaultScanMasks, ".env.example.local", true},
		{DefaultScanMasks, ".envrc", false},
		{DefaultScanMasks, "x.env", false},
		{DefaultScanMasks, ".env.example", false},
		{DefaultScanMasks, ".env.sample", false},
		{DefaultScanMasks, ".env.template", false},
		{DefaultScanMasks, ".env.dist", false},
		{DefaultScanMasks, "server.pem", true},
		{DefaultScanMasks, "id_rsa", true},
		{DefaultScanMasks, "id_rsa_work", true},
		{DefaultScanMasks, "id_rsa.pub", false},
		{[]string{"*"}, "a.example", false},
		{[]string{"*.example"}, "a.example", true},
		{[]string{".env.example"}, ".env.example", true},
		{[]string{"*.sample"}, "a.example", false},
		{[]string{}, ".env", false},
	} {
		assert.Equal(t, row.want, scan{globs: row.globs}.match("/w/"+row.name, row.name), "%v %s", row.globs, row.name)
	}
}

func TestScanFindsToADepthOfThree(t *testing.T) {
	top := tree(t, "home/w/.env", "home/w/a/.env", "home/w/a/b/.env", "home/w/a/b/c/.env", "home/w/keys.pem/in/x.pem", "home/w/other/.env", "home/w/prod", "home/w/dir/")
	w := filepath.Join(top, "home/w")
	for link, to := range map[string]string{
		"a/.env.in": "../prod", ".env.out": "../other", ".env.up": "..", ".env.self": ".", ".env.none": "nothing", "into": "other", "a/.env.dir": "../dir",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(w, link)))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(w, "fifo.pem"), 0o600))
	p := WorkspaceWrite(w)
	p.FS.ExtraRO = []Bind{{Src: filepath.Join(w, "other/.env"), Dst: "/shown"}}
	r, err := p.resolve()
	require.NoError(t, err)
	var got []string
	for _, e := range r.masks {
		mark := ""
		if e.dir {
			mark = "/"
		}
		got = append(got, strings.TrimPrefix(e.path, w+"/")+mark)
	}
	assert.Equal(t, []string{".env", "a/.env", "a/b/.env", "dir/", "fifo.pem", "keys.pem/", "prod"}, got)

	p.FS.ScanMasks = []string{}
	r, err = p.resolve()
	require.NoError(t, err)
	assert.Empty(t, r.masks)
	assert.NotNil(t, r.FS.ScanMasks, "it stays an empty list")
}

func TestScanIsBounded(t *testing.T) {
	top := tree(t)
	w := filepath.Join(top, "home/w")
	for i := range scanMasks {
		require.NoError(t, os.Symlink("../data/file", filepath.Join(w, fmt.Sprintf("%d.pem", i))))
		require.NoError(t, os.WriteFile(filepath.Join(w, fmt.Sprintf("%d.env", i)), nil, 0o600))
	}
	p := WorkspaceWrite(w)
	p.FS.ScanMasks = []string{"*.env", "*.pem"}
	r, err := p.resolve()
	require.NoError(t, err, "links that lead out count nothing")
	assert.Len(t, r.masks, scanMasks)
	require.NoError(t, os.WriteFile(filepath.Join(w, "more.env"), nil, 0o600))
	_, err = p.resolve()
	require.ErrorIs(t, err, ErrMount)
	assert.ErrorContains(t, err, "FS.ScanMasks: more than 500 files match, such as")
	assert.ErrorContains(t, err, "hide the directories that hold them by FS.Mask")

	l := looker{scan: scan{root: w, globs: []string{"none"}}, left: 2*scanMasks + 1}
	require.NoError(t, l.look())
	l.left = 2 * scanMasks
	err = l.look()
	require.ErrorIs(t, err, ErrMount)
	assert.ErrorContains(t, err, "files to look at in "+w)
}

func TestScanPassesOverADirectoryThatIsDeletedMeanwhile(t *testing.T) {
	w := filepath.Join(tree(t, "home/w/gone/"), "home/w")
	dir, err := os.Open(filepath.Join(w, "gone"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(w, "gone")))
	l := looker{scan: scan{root: w}, left: scanEntries}
	assert.NoError(t, l.list(dir, filepath.Join(w, "gone"), 2, true))
}

// guardsOf are the paths that a policy has found by their names.
func guardsOf(t *testing.T, p Policy) (paths []string) {
	t.Helper()
	r, err := p.resolve()
	require.NoError(t, err)
	for _, g := range r.guards {
		if g.scanned {
			paths = append(paths, strings.TrimPrefix(g.root, r.FS.Workspace+"/"))
		}
	}
	return paths
}

func TestNamesAreProtectedToADepthOfThree(t *testing.T) {
	top := tree(t, "home/w/.npmrc", "home/w/a/.npmrc", "home/w/a/b/.npmrc", "home/w/a/b/c/.npmrc", "home/w/.vscode/.npmrc", "home/w/a/.vscode/",
		"home/w/node_modules/x/.npmrc", "home/w/a/vendor/.npmrc", "home/w/.git/.gitmodules", "home/w/rc", "home/w/asked/.npmrc")
	w := filepath.Join(top, "home/w")
	for link, to := range map[string]string{
		"a/.bashrc": "../rc", "a/.zshrc": "/etc/zshrc", ".profile": "nothing", ".cursor": ".",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(w, link)))
	}
	p := WorkspaceWrite(w)
	p.FS.ExtraRW = []Bind{{Src: filepath.Join(w, "asked/.npmrc")}}
	assert.Equal(t, []string{".npmrc", "a/.npmrc", "a/.vscode", "a/b/.npmrc", "rc"}, guardsOf(t, p), ".vscode is one of FS.Protect")
	r, err := p.resolve()
	require.NoError(t, err)
	assert.ElementsMatch(t, []spot{{w, ".cursor"}, {w, ".profile"}, {w, "a/.bashrc"}, {w, "a/.zshrc"}}, r.wire.named)
	assert.Contains(t, r.wire.missing, spot{w, ".gdbinit"})
	assert.NotContains(t, r.wire.missing, spot{w, ".npmrc"})

	p.FS.ScanMasks = []string{}
	assert.Len(t, guardsOf(t, p), 5, "one search does without the other")
	p.FS.ScanProtect = []string{}
	assert.Empty(t, guardsOf(t, p))
	r, err = p.resolve()
	require.NoError(t, err)
	assert.NotNil(t, r.FS.ScanProtect, "it stays an empty list")
	assert.NotContains(t, r.wire.missing, spot{w, ".gdbinit"})
	for _, name := range []string{"", "..", "a/b", "\x00"} {
		p.FS.ScanProtect = []string{name}
		_, err = p.resolve()
		assert.ErrorContains(t, err, "is not a name", name)
	}
}

func TestProtectedNamesAreBounded(t *testing.T) {
	w := filepath.Join(tree(t), "home/w")
	for i := range scanGuards + 1 {
		require.NoError(t, os.MkdirAll(filepath.Join(w, "in", fmt.Sprint(i)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(w, "in", fmt.Sprint(i), ".npmrc"), nil, 0o600))
	}
	_, err := WorkspaceWrite(w).resolve()
	require.ErrorIs(t, err, ErrMount)
	assert.ErrorContains(t, err, fmt.Sprintf("FS.ScanProtect: more than %d files have a protected name and could be written, such as", scanGuards))

	// There is nothing to protect where nothing can be written.
	for _, p := range []Policy{
		ReadOnly(w), Scratch(w), WorkspaceWrite(w).With([]string{w + "/in"}, nil), WorkspaceWrite(w).With([]string{w + "/in/1"}, nil),
	} {
		_, err := p.resolve()
		assert.NoError(t, err, p.Name)
	}
	p := ReadOnly(w).With(nil, []string{w + "/in/1"})
	assert.Equal(t, []string{"in/1/.npmrc"}, guardsOf(t, p))
	_, err = ReadOnly(w).With(nil, []string{w + "/in"}).resolve()
	assert.ErrorIs(t, err, ErrMount)
}

func TestEveryProtectedNameHasItsReasonOnce(t *testing.T) {
	known := make(map[string]bool)
	for _, p := range protectedNames {
		assert.NotEmpty(t, p.why, p.name)
		assert.False(t, known[p.name], p.name)
		known[p.name] = true
	}
}

// A child that asks for no names, or for other ones, has its parent's as well.
func TestNarrowKeepsTheParentsNames(t *testing.T) {
	w := filepath.Join(tree(t, "home/w/.npmrc", "home/w/sub/.npmrc", "home/w/sub/in/conf"), "home/w")
	q := WorkspaceWrite(w+"/sub").With(nil, []string{w + "/sub/.npmrc"})
	q.FS.ScanProtect = []string{"conf"}
	r, err := WorkspaceWrite(w).Narrow(q)
	require.NoError(t, err)
	r, err = r.resolve()
	require.NoError(t, err)
	v := mountsOf(r, host{}, place{}).view
	for path, want := range map[string]reach{"/sub": writable, "/sub/.npmrc": readable, "/sub/in/conf": readable, "/.npmrc": hidden} {
		got, _ := v.reach(w + path)
		assert.Equal(t, want, got, path)
	}
}

// What cannot be looked into now could be by the sandbox, which owns it.
func TestScanRefusesWhatItCannotRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	top := tree(t, "home/w/closed/")
	require.NoError(t, os.Chmod(filepath.Join(top, "home/w/closed"), 0))
	_, err := WorkspaceWrite(filepath.Join(top, "home/w")).resolve()
	require.ErrorIs(t, err, ErrMount)
	assert.ErrorContains(t, err, "make it readable")
}

// A child sees nothing that its parent's search hides, wherever it is shown.
func TestNarrowKeepsTheParentsSearch(t *testing.T) {
	top := tree(t, "home/w/sub/.env", "home/w/sub/own.key", "home/w/other/.env", "home/w/other/ca.pem", "home/w/keys.pem/in/", "home/w/x/y/z/.env")
	w := filepath.Join(top, "home/w")
	p := WorkspaceWrite(w)
	p.FS.ExtraRO = []Bind{{Src: w + "/other/ca.pem", Dst: "/ca"}}
	masked := func(p Policy) (paths []string) {
		r, err := p.resolve()
		require.NoError(t, err)
		for _, s := range mountsOf(r, host{}, place{}).view {
			if s.field == "FS.Mask" {
				paths = append(paths, strings.TrimPrefix(s.at, w))
			}
		}
		return paths
	}
	assert.Equal(t, []string{"/keys.pem", "/other/.env", "/sub/.env"}, masked(p), "what is shown by name is not hidden")

	q := WorkspaceWrite(w + "/sub")
	q.FS.ScanMasks = []string{"*.key"}
	q.FS.ExtraRO = []Bind{{Src: w + "/other", Dst: "/other"}, {Src: w + "/x/y", Dst: w + "/x/y"}}
	r, err := p.Narrow(q)
	require.NoError(t, err)
	assert.Equal(t, []string{"/other/.env", "/sub/.env", "/sub/own.key"}, masked(r))
	again, err := p.Narrow(r)
	require.NoError(t, err)
	assert.Equal(t, r, again)

	dropped := r
	dropped.FS.ScanMasks = []string{}
	s, err := r.Narrow(dropped)
	require.NoError(t, err)
	assert.Equal(t, []string{"/other/.env", "/sub/.env", "/sub/own.key"}, masked(s), "a child cannot drop what its parent looks for")

	same := WorkspaceWrite(w)
	r, err = p.Narrow(same)
	require.NoError(t, err)
	assert.Contains(t, masked(r), "/other/ca.pem", "what it does not show is hidden as ever")

	for name, q := range map[string]Policy{
		"workspace": WorkspaceWrite(w + "/keys.pem/in"),
		"bind":      WorkspaceWrite(w+"/sub").With([]string{w + "/other/.env"}, nil),
	} {
		_, err := p.Narrow(q)
		require.ErrorIs(t, err, ErrWiden, name)
		assert.ErrorContains(t, err, "(parent: hidden by FS.ScanMasks)", name)
	}
}
