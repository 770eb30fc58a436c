package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wired is the tripwire of a repository that can be committed to.
func wired(t *testing.T) (dir string, w *watcher) {
	t.Helper()
	top := tree(t)
	workspace := filepath.Join(top, "home/w")
	gitIn(t, workspace, "init", "-q")
	gitIn(t, workspace, "commit", "-q", "--allow-empty", "-m", "one")
	require.NoError(t, os.Symlink("old", filepath.Join(workspace, ".git/had")))
	p := WorkspaceWrite(workspace)
	p.FS.Git, p.FS.Protect = GitCommit, []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	w = newWatcher(r, nil)
	require.Empty(t, w.look())
	return workspace, w
}

func paths(found []Violation) (paths []string) {
	for _, v := range found {
		paths = append(paths, v.Path)
	}
	return paths
}

func TestASymlinkThatWasThereMayNotLeadElsewhere(t *testing.T) {
	dir, w := wired(t)
	had := filepath.Join(dir, ".git/had")
	require.NoError(t, os.Remove(had))
	require.NoError(t, os.Symlink("new", had))
	assert.Equal(t, []string{had}, paths(w.look()))
	assert.Empty(t, w.look(), "it is told once")
	require.NoError(t, os.Remove(had))
	require.Empty(t, w.look())
	require.NoError(t, os.Symlink("new", had))
	assert.Equal(t, []string{had}, paths(w.look()), "and once more when it is back")
}

func TestASymlinkThatWasMovedAwayIsNotFoundAgain(t *testing.T) {
	dir, w := wired(t)
	w.quarantine = true
	require.NoError(t, os.Symlink("x", filepath.Join(dir, ".git/index2")))
	found := w.look()
	require.Len(t, found, 1)
	assert.NotEmpty(t, found[0].Moved)
	assert.Empty(t, w.look())
	// But its name protects no other one.
	require.NoError(t, os.Symlink("x", filepath.Join(dir, ".git/logs/a.limpet-quarantine-0")))
	assert.Len(t, w.look(), 1)
}

// A symlink hides in no crowd.
func TestACrowdIsAViolation(t *testing.T) {
	dir, w := wired(t)
	w.quarantine = true
	for i := range crowd {
		require.NoError(t, os.Link(filepath.Join(dir, ".git/HEAD"), filepath.Join(dir, ".git", fmt.Sprint(i))))
	}
	require.NoError(t, os.Symlink("x", filepath.Join(dir, ".git/COMMIT_EDITMSG2")))
	found := w.look()
	require.Len(t, found, 1)
	assert.Equal(t, Violation{Path: filepath.Join(dir, ".git"), Err: errCrowded}, found[0])
	assert.DirExists(t, filepath.Join(dir, ".git"))
}

// Neither the time of the content nor the name of the file hides a change of the
// index.
func TestAnIndexIsReadAgainWhateverItSaysOfItself(t *testing.T) {
	dir, w := wired(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub/.git"), 0o700))
	require.Empty(t, w.look(), "it is no submodule")
	index := filepath.Join(dir, ".git/index")
	hash := gitIn(t, dir, "rev-parse", "HEAD")
	gitIn(t, dir, "update-index", "--add", "--cacheinfo", "100644,"+gitIn(t, dir, "hash-object", "-w", "--stdin")+",sub2")
	require.Empty(t, w.look())
	before, err := os.Stat(index)
	require.NoError(t, err)
	plain, err := os.ReadFile(index)
	require.NoError(t, err)
	gitIn(t, dir, "rm", "-q", "--cached", "sub2")
	gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+hash+",sub")
	with, err := os.ReadFile(index)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(index, plain, 0o600))
	require.Empty(t, w.look())
	require.NoError(t, os.WriteFile(index, with, 0o600))
	require.NoError(t, os.Chtimes(index, before.ModTime(), before.ModTime()))
	assert.Equal(t, []string{filepath.Join(dir, "sub/.git")}, paths(w.look()))

	dir, w = wired(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub/.git"), 0o700))
	gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+hash+",sub")
	gitIn(t, dir, "update-index", "--split-index")
	shared, err := filepath.Glob(filepath.Join(dir, ".git/sharedindex.*"))
	require.NoError(t, err)
	require.Len(t, shared, 1)
	b, err := os.ReadFile(shared[0])
	require.NoError(t, err)
	const mode = 12 + 24
	require.Equal(t, byte(0xe0), b[mode+2])
	b[mode+2] = 0x81 // A file.
	require.NoError(t, os.Chmod(shared[0], 0o600))
	require.NoError(t, os.WriteFile(shared[0], b, 0o600))
	require.Empty(t, w.look())
	b[mode+2] = 0xe0
	require.NoError(t, os.WriteFile(shared[0], b, 0o600))
	assert.Equal(t, []string{filepath.Join(dir, "sub/.git")}, paths(w.look()))

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/index"), []byte("DIRC"), 0o600))
	assert.Contains(t, paths(w.look()), filepath.Join(dir, ".git/index"), "what cannot be read may say anything")
}

// What the user's configuration names may be missing where the sandbox could make it.
func TestWhatTheUsersConfigurationNamesCanBeMissingElsewhere(t *testing.T) {
	top := tree(t, "home/w/", "home/.config/", "home/.gitconfig", "data/rw/", "data/ro/")
	w := filepath.Join(top, "home/w")
	t.Setenv("HOME", filepath.Join(top, "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	require.NoError(t, os.WriteFile(filepath.Join(top, "home/.gitconfig"),
		[]byte("[core]\nhooksPath = "+top+"/data/rw/a/hooks\nhooksPath = "+top+"/data/ro/hooks\nhooksPath = "+top+"/data/hooks\n"), 0o600))
	p := WorkspaceWrite(w).With([]string{top + "/data/ro"}, []string{top + "/data/rw", top + "/home/.config"})
	p.FS.Protect, p.FS.ScanProtect = []string{}, []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	assert.Equal(t, []spot{{top + "/data/rw", "a/hooks"}, {top + "/home/.config", "git/config"}, {w, ".git"}}, r.wire.missing)

	watch := newWatcher(r, nil)
	require.Empty(t, watch.look())
	require.NoError(t, os.MkdirAll(filepath.Join(top, "data/rw/a/hooks"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(top, "home/.config/git"), 0o700))
	assert.Equal(t, []string{top + "/data/rw/a/hooks"}, paths(watch.look()))
}

// linked is the tripwire of a workspace in which .profile leads to end by way of mid.
func linked(t *testing.T, files ...string) (workspace string, w *watcher) {
	t.Helper()
	workspace = filepath.Join(tree(t, files...), "home/w")
	require.NoError(t, os.Symlink("mid", filepath.Join(workspace, ".profile")))
	require.NoError(t, os.Symlink("end", filepath.Join(workspace, "mid")))
	p := WorkspaceWrite(workspace)
	p.FS.Protect = []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	w = newWatcher(r, nil)
	require.Empty(t, w.look())
	return workspace, w
}

// What a symlink with a protected name leads to is what counts, by whichever way.
func TestASymlinkMayNotLeadElsewhereByAnother(t *testing.T) {
	dir, w := linked(t, "home/w/end", "home/w/evil")
	require.NoError(t, os.Remove(filepath.Join(dir, "mid")))
	require.NoError(t, os.Symlink("evil", filepath.Join(dir, "mid")))
	assert.Equal(t, []string{filepath.Join(dir, ".profile")}, paths(w.look()))
	assert.Empty(t, w.look(), "it is told once")

	dir, w = linked(t, "home/w/end")
	require.NoError(t, os.Remove(filepath.Join(dir, "mid")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mid"), nil, 0o600))
	assert.Equal(t, []string{filepath.Join(dir, ".profile")}, paths(w.look()))
}

func TestASymlinkThatLedNowhereMayNotLeadSomewhere(t *testing.T) {
	dir, w := linked(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	assert.Equal(t, []string{filepath.Join(dir, ".profile")}, paths(w.look()))
}
