package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gitIn runs git in a directory, with a configuration of its own.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "install git, as ./test does")
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// Git itself says what the index should hold.
func TestGitlinksAreReadFromEveryKindOfIndex(t *testing.T) {
	for name, commands := range map[string][][]string{
		"version 2": {{"update-index", "--index-version", "2"}},
		"version 3": {{"update-index", "--index-version", "3"}, {"add", "-N", "later"}},
		"version 4": {{"update-index", "--index-version", "4"}},
		"split":     {{"config", "core.splitIndex", "true"}, {"update-index", "--split-index"}, {"update-index", "--cacheinfo", "100644,HASH,a/file"}},
		"SHA-256":   {{"update-index", "--index-version", "4"}},
		"untracked": {{"update-index", "--untracked-cache"}, {"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			top := tree(t)
			w := filepath.Join(top, "home/w")
			format := "sha1"
			if name == "SHA-256" {
				format = "sha256"
			}
			gitIn(t, w, "init", "-q", "--object-format="+format)
			require.NoError(t, os.WriteFile(filepath.Join(w, "later"), nil, 0o600))
			hash := gitIn(t, w, "hash-object", "-w", "later")
			for _, path := range []string{"a/file", "a/sub/file", "b/x", "zzz", strings.Repeat("long/", 60) + "file"} {
				gitIn(t, w, "update-index", "--add", "--cacheinfo", "100644,"+hash+","+path)
			}
			want := []string{"a/link", "b/link/in", "link", strings.Repeat("long/", 60) + "link"}
			for _, path := range want {
				gitIn(t, w, "update-index", "--add", "--cacheinfo", "160000,"+hash+","+path)
			}
			for _, command := range commands {
				for i := range command {
					command[i] = strings.ReplaceAll(command[i], "HASH", hash)
				}
				gitIn(t, w, command...)
			}
			dir := filepath.Join(w, ".git")
			r := repository{w, dir, dir}
			got, split, err := r.gitlinks()
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, name == "split", split)
			assert.Len(t, want, strings.Count(gitIn(t, w, "ls-files", "-s"), "160000 "), "git says so too")

			// One that is cut short is none, but where an extension begins.
			b, err := os.ReadFile(filepath.Join(dir, "index"))
			require.NoError(t, err)
			for n := range len(b) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "index"), b[:n], 0o600))
				if _, _, err := r.gitlinks(); err == nil {
					require.Contains(t, []string{"split", "untracked"}, name, n)
				}
			}
			require.NoError(t, os.Remove(filepath.Join(dir, "index")))
			got, _, err = r.gitlinks()
			require.NoError(t, err)
			assert.Empty(t, got)
		})
	}
}

func TestSubmodulesAreGuarded(t *testing.T) {
	top := tree(t, "home/w/.git/modules/a/", "home/w/a/", "home/w/gone/", "home/w/dir/.git/")
	w := filepath.Join(top, "home/w")
	gitIn(t, w, "init", "-q")
	hash := gitIn(t, w, "hash-object", "-w", "--stdin")
	link := func(dir string, paths ...string) {
		for _, path := range paths {
			gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+hash+","+path)
		}
	}
	link(w, "a", "dir", "gone", "not/there")
	gitIn(t, filepath.Join(w, "dir"), "init", "-q")
	link(filepath.Join(w, "dir"), "deeper")
	require.NoError(t, os.WriteFile(filepath.Join(w, "a/.git"), []byte("gitdir: ../.git/modules/a\n"), 0o600))
	for mode, want := range map[GitMode][]string{
		GitReadOnly: {"/.git", "/a/.git", "/dir/.git"}, GitWritable: nil,
		GitCommit: {"/.git/branches", "/.git/config", "/.git/hooks", "/.git/modules", "/a/.git", "/dir/.git"},
	} {
		p := WorkspaceWrite(w)
		p.FS.Git, p.FS.Protect, p.FS.ScanProtect = mode, []string{}, []string{}
		r, err := p.resolve()
		require.NoError(t, err)
		var got []string
		for _, path := range readOnlyIn(r) {
			got = append(got, strings.TrimPrefix(path, w))
		}
		assert.Equal(t, want, got, mode)
		var missing []string
		for _, s := range r.wire.missing {
			if !strings.HasPrefix(s.rel, ".git/") {
				missing = append(missing, s.rel)
			}
		}
		if mode != GitWritable {
			assert.ElementsMatch(t, []string{"dir/deeper/.git", "gone/.git", "not/there/.git"}, missing)
		}
	}

	require.NoError(t, os.RemoveAll(filepath.Join(w, "gone")))
	require.NoError(t, os.Symlink("dir", filepath.Join(w, "gone")))
	_, err := WorkspaceWrite(w).resolve()
	require.ErrorIs(t, err, ErrProtect)
	assert.ErrorContains(t, err, "cannot protect "+w+"/gone/.git: "+w+"/gone is a symlink; set FS.Git=GitWritable to accept")
	require.NoError(t, os.Remove(filepath.Join(w, "gone")))
	require.NoError(t, os.WriteFile(filepath.Join(w, ".git/index"), []byte("DIRCgarbage"), 0o600))
	_, err = WorkspaceWrite(w).resolve()
	require.ErrorIs(t, err, ErrProtect)
	assert.ErrorContains(t, err, "cannot find the submodules of "+w+": "+w+"/.git/index: it is not an index that is understood")
}

func TestWhatTheConfigurationNamesIsGuarded(t *testing.T) {
	top := tree(t, "home/w/.git/", "home/w/.githooks/", "home/w/conf/git", "home/w/with space/", "outside/")
	w := filepath.Join(top, "home/w")
	config := "[core]\n\thooksPath = .githooks # ours\n[include] path = ../conf/git\n[includeIf \"gitdir:x\"]\n\tPath=\"../with space\"\n" +
		"[include]\npath = ~/x\npath = " + top + "/outside\npath =\npath = %(prefix)/x\npath=../none ; not there\npath = ../..\n"
	require.NoError(t, os.WriteFile(filepath.Join(w, ".git/config"), []byte(config), 0o600))
	p := WorkspaceWrite(w)
	p.FS.Protect, p.FS.ScanProtect = []string{}, []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	var got []string
	for _, path := range readOnlyIn(r) {
		got = append(got, strings.TrimPrefix(path, w))
	}
	assert.Equal(t, []string{"/.git", "/.githooks", "/conf/git", "/with space"}, got)
	assert.Equal(t, []spot{{w, "none"}}, r.wire.missing)
}

// Hooks of the user's configuration run in every repository: they are guarded in a workspace
// without a repository too.
func TestWhatTheUsersConfigurationNamesIsGuarded(t *testing.T) {
	top := tree(t, "home/w/hooks/", "home/w/inc", "home/w/system/", "home/w/dotfiles/gitconfig", "data/hooks/x")
	w := filepath.Join(top, "home/w")
	config := func(file, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	t.Setenv("HOME", filepath.Join(top, "home"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(top, "home/xdg"))
	t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(top, "system"))
	guarded := func(p Policy) (paths []string) {
		p.FS.Protect, p.FS.ScanProtect = []string{}, []string{}
		r, err := p.resolve()
		require.NoError(t, err)
		for _, path := range readOnlyIn(r) {
			paths = append(paths, strings.TrimPrefix(path, top))
		}
		for _, s := range r.wire.missing {
			paths = append(paths, "missing "+strings.TrimPrefix(s.path(), top))
		}
		return paths
	}
	assert.Equal(t, []string{"missing /home/w/.git"}, guarded(WorkspaceWrite(w)))

	config(filepath.Join(top, "system"), "[core] hooksPath = "+w+"/system\n")
	config(filepath.Join(top, "home/xdg/git/config"), "[include]\n\tpath = more\n")
	config(filepath.Join(top, "home/xdg/git/more"), "[includeIf \"gitdir:~/nowhere/\"]\n\tpath = ~/w/inc\n[include]\npath = more\n")
	config(filepath.Join(w, "inc"), "[core]\nhooksPath = .none\n")
	config(filepath.Join(w, "dotfiles/gitconfig"), "[core]\n\thooksPath = ~/w/hooks\n\thooksPath = "+top+"/data/hooks\n\thooksPath = "+top+"\n")
	require.NoError(t, os.Symlink("w/dotfiles/gitconfig", filepath.Join(top, "home/.gitconfig")))
	all := []string{"/home/w/dotfiles/gitconfig", "/home/w/hooks", "/home/w/inc", "/home/w/system", "missing /home/w/.git", "missing /home/w/.none"}
	assert.Equal(t, all, guarded(WorkspaceWrite(w)))
	assert.ElementsMatch(t, append([]string{"/data/hooks"}, all...), guarded(WorkspaceWrite(w).With(nil, []string{top + "/data"})), "where it can be written")
	_, err := WorkspaceWrite(w).With(nil, []string{top + "/data/hooks"}).resolve()
	assert.ErrorContains(t, err, "/data/hooks would be writable by it")
	p := WorkspaceWrite(w)
	p.FS.Git = GitWritable
	assert.Empty(t, guarded(p))

	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(top, "none"))
	assert.Equal(t, []string{"/home/w/system", "missing /home/w/.git"}, guarded(WorkspaceWrite(w)))
}

// A directory of hooks that is relative is one of each submodule, too.
func TestWhatTheUsersConfigurationNamesInSubmodulesIsGuarded(t *testing.T) {
	top := tree(t, "home/w/sub/hooks/x", "home/w/hooks/x", "home/w/other/x")
	w := filepath.Join(top, "home/w")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(top, "home/config"))
	require.NoError(t, os.WriteFile(filepath.Join(top, "home/config"), []byte("[core]\nhooksPath = hooks\n"), 0o600))
	gitIn(t, w, "init", "-q")
	for _, sub := range []string{"sub", "other"} {
		gitIn(t, filepath.Join(w, sub), "init", "-q")
		gitIn(t, filepath.Join(w, sub), "commit", "-q", "--allow-empty", "-m", "x")
		gitIn(t, w, "add", sub)
	}
	p := WorkspaceWrite(w)
	p.FS.Protect, p.FS.ScanProtect = []string{}, []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	assert.Subset(t, readOnlyIn(r), []string{w + "/hooks", w + "/sub/hooks"})
	assert.Contains(t, r.wire.missing, spot{w, "other/hooks"})
}
