package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGitGuards has a row for each shape of a repository. In wants, "=" is a guard
// of all of a directory, "+" one of what git trusts in it, and "*" one of that
// in a directory that can be written otherwise.
func TestGitGuards(t *testing.T) {
	for _, row := range []struct {
		name       string
		files      []string
		dot        string            // the .git file, if it is one
		links      map[string]string // symlinks
		ro, commit []string
	}{
		{name: "none", commit: []string{"=W/.git"}},
		{name: "a directory", files: []string{"home/w/.git/"}, commit: []string{"*W/.git"}},
		{name: "a worktree", files: []string{"main/.git/worktrees/wt/"}, dot: "gitdir: TOP/main/.git/worktrees/wt\n",
			links: map[string]string{"main/.git/worktrees/wt/commondir": "../..\n"},
			ro:    []string{"=main/.git", "=main/.git/worktrees/wt"}, commit: []string{"=W/.git", "*main/.git", "+main/.git/worktrees/wt"}},
		{name: "a submodule", files: []string{"home/.git/modules/w/"}, dot: "gitdir: ../.git/modules/w",
			ro: []string{"=home/.git/modules/w"}, commit: []string{"=W/.git", "*home/.git/modules/w"}},
		{name: "a directory beside", files: []string{"home/w/real/"}, dot: "gitdir: real\n",
			ro: []string{"=W/real"}, commit: []string{"=W/.git", "*W/real"}},
		{name: "one that is missing", dot: "gitdir: gone/there\r\n", ro: []string{"=W/gone/there"}, commit: []string{"=W/.git", "*W/gone/there"}},
		{name: "a common directory apart", files: []string{"common/", "own/"}, dot: "gitdir: TOP/own\n", links: map[string]string{"own/commondir": "../common"},
			ro: []string{"=common", "=own"}, commit: []string{"=W/.git", "*common", "*own"}},
		{name: "bare", files: []string{"home/w/HEAD", "home/w/objects/", "home/w/refs/"}, ro: []string{"+W"}, commit: []string{"+W", "=W/.git"}},
		{name: "the workspace itself", files: []string{"home/w/HEAD", "home/w/objects/", "home/w/refs/"}, dot: "gitdir: .", ro: []string{"+W"}, commit: []string{"+W", "=W/.git"}},
		{name: "no git file", dot: "something else", commit: []string{"=W/.git"}},
		{name: "empty", dot: "gitdir: ", commit: []string{"=W/.git"}},
		{name: "NUL", dot: "gitdir: /x\x00y", commit: []string{"=W/.git"}},
		{name: "everything", dot: "gitdir: /", commit: []string{"=W/.git"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			top := tree(t, row.files...)
			w := filepath.Join(top, "home/w")
			write := func(path, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(top, path), []byte(strings.ReplaceAll(text, "TOP", top)), 0o600))
			}
			if row.dot != "" {
				write("home/w/.git", row.dot)
			}
			for path, text := range row.links {
				write(path, text)
			}
			for mode, want := range map[GitMode][]string{GitReadOnly: row.ro, GitCommit: row.commit, GitWritable: nil} {
				p := WorkspaceWrite(w)
				p.FS.Git = mode
				guards, err := gitGuards(p)
				require.NoError(t, err)
				var got []string
				for _, g := range guards {
					if !there(g.root) && !pathWithin(w, g.root) {
						continue // The user's configuration.
					}
					mark := "+"
					if g.parts[0] == (part{}) {
						mark = "="
					} else if g.parts[0].writable {
						mark = "*"
					}
					name := strings.TrimPrefix(g.root, top+"/")
					if pathWithin(w, g.root) {
						name = rebase(g.root, w, "W")
					}
					got = append(got, mark+name)
				}
				slices.Sort(got)
				slices.Sort(want)
				assert.Equal(t, want, got, "mode %d", mode)
				_, err = p.resolve()
				require.NoError(t, err)
			}
		})
	}
}

// What the sandbox could change says nothing about where git looks.
func TestGitDirectoriesAreNotFoundBySymlinks(t *testing.T) {
	top := tree(t, "home/w/real/", "main/.git/")
	w := filepath.Join(top, "home/w")
	require.NoError(t, os.Symlink(top+"/main", filepath.Join(w, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(w, ".git"), []byte("gitdir: link/.git\n"), 0o600))
	p := WorkspaceWrite(w)
	_, err := p.resolve()
	require.ErrorIs(t, err, ErrProtect)
	assert.ErrorContains(t, err, "cannot protect what "+w+"/.git names: "+w+"/link is a symlink; name in it where the symlink leads, or set FS.Git=GitWritable to accept")
	p.FS.Git = GitWritable
	_, err = p.resolve()
	require.NoError(t, err)

	top = tree(t, "home/w/.git/", "hooks/")
	w = filepath.Join(top, "home/w")
	require.NoError(t, os.Symlink(top+"/hooks", filepath.Join(w, ".git/hooks")))
	p = WorkspaceWrite(w)
	_, err = p.resolve()
	require.NoError(t, err, "all of .git is read-only")
	p.FS.Git = GitCommit
	_, err = p.resolve()
	require.ErrorIs(t, err, ErrProtect)
	assert.ErrorContains(t, err, "cannot protect "+w+"/.git/hooks: it is a symlink; set FS.Git=GitWritable to accept")
}

func TestGitFilesAreReadWithCare(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(path("one"), []byte("line\n"), 0o600))
	require.NoError(t, os.Symlink("one", path("link")))
	require.NoError(t, syscall.Mkfifo(path("fifo"), 0o600))
	require.NoError(t, os.Truncate(path("one"), 5))
	assert.Equal(t, "line", readLine(path("one")))
	for _, name := range []string{"link", "fifo", "none", "."} {
		assert.Empty(t, readLine(path(name)), name)
	}
	require.NoError(t, os.Truncate(path("one"), 1<<40))
	assert.Empty(t, readLine(path("one")), "sparse, and so full of NULs")
}

// The tripwire is for what is missing where it can be written.
func TestTheTripwireIsForWhatIsMissing(t *testing.T) {
	top := tree(t, "home/w/.git/hooks/", "home/w/.git/config", "home/w/.git/objects/", "home/w/.vscode/", "home/w/own/", "other/.git/worktrees/wt/")
	w := filepath.Join(top, "home/w")
	wired := func(p Policy) (paths []string) {
		p.FS.ScanProtect = []string{}
		r, err := p.resolve()
		require.NoError(t, err)
		for _, s := range r.wire.missing {
			paths = append(paths, strings.TrimPrefix(s.path(), w+"/"))
		}
		slices.Sort(paths)
		return paths
	}
	rest := []string{".claude", ".codex", ".envrc", ".hg", ".idea", ".mcp.json", ".svn"}
	p := WorkspaceWrite(w)
	assert.Equal(t, rest, wired(p))
	p.FS.Git = GitCommit
	gits := []string{".git/branches", ".git/commondir", ".git/config.worktree", ".git/gitdir", ".git/modules", ".git/objects/info/alternates", ".git/remotes", ".git/worktrees"}
	all := slices.Concat(rest, gits)
	slices.Sort(all)
	assert.Equal(t, all, wired(p))
	r, err := p.resolve()
	require.NoError(t, err)
	assert.Equal(t, []string{w + "/.git"}, r.wire.gitDirs)
	assert.Equal(t, w, r.wire.bare)
	p.FS.Access = Overlay
	assert.Empty(t, wired(p), "what is written is thrown away")
	p.FS.Access = ReadOnlyAccess
	assert.Empty(t, wired(p))

	p = WorkspaceWrite(w)
	p.FS.Protect, p.FS.Git = []string{"own", "own/in", "not/there", "masked/in"}, GitWritable
	p.FS.Mask = []string{"masked"}
	require.NoError(t, os.Mkdir(filepath.Join(w, "masked"), 0o700))
	assert.Equal(t, []string{"not/there"}, wired(p), "what is protected or masked already is no matter")

	// A worktree's repository, where it is shown.
	require.NoError(t, os.RemoveAll(filepath.Join(w, ".git")))
	require.NoError(t, os.WriteFile(filepath.Join(w, ".git"), []byte("gitdir: "+top+"/other/.git/worktrees/wt\n"), 0o600))
	require.NoError(t, os.WriteFile(top+"/other/.git/worktrees/wt/commondir", []byte("../..\n"), 0o600))
	p = WorkspaceWrite(w)
	p.FS.Git, p.FS.Protect = GitCommit, []string{}
	assert.Empty(t, wired(p))
	p.FS.ExtraRW = []Bind{{Src: top + "/other"}}
	got := wired(p)
	assert.Contains(t, got, top+"/other/.git/hooks")
	assert.NotContains(t, got, top+"/other/.git/worktrees/wt/commondir")
	assert.Contains(t, got, top+"/other/.git/worktrees/wt/config.worktree")
}
