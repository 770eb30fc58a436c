package approve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// repository is one with two commits, a file that has changed and one that has not, below a home without a configuration.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	home := t.TempDir()
	r := repository{t, filepath.Join(home, "repo"), []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "MARK=" + filepath.Join(home, "mark")}}
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	r.must("git init -q && git config user.name a && git config user.email a@b && echo 1 >a && echo 1 >same && git add a same && git commit -qm one && echo 2 >a && git commit -qam two && echo 3 >a")
	require.NoError(t, os.WriteFile(filepath.Join(home, "evil"), []byte("#!/bin/sh\ntouch \"$MARK\"\ncat 2>/dev/null\n"), 0o700))
	return r
}

// run runs a script in the repository, and reports whether the program "evil" has run.
func (r repository) run(script string) (out string, marked bool) {
	r.t.Helper()
	mark := filepath.Join(filepath.Dir(r.dir), "mark")
	require.NoError(r.t, os.RemoveAll(mark))
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	b, _ := cmd.CombinedOutput() // Some fail, as they should.
	_, err := os.Stat(mark)
	return string(b), err == nil
}

func (r repository) must(script string) {
	r.t.Helper()
	out, _ := r.run("{ " + script + "; } || echo failed")
	require.NotContains(r.t, out, "failed", "%s", script)
}

// reading are commands that are allowed where git runs nothing.
var reading = []string{"git status", "git diff", "git diff --cached", "git log -p -2", "git show", "git blame a", "git grep 3", "git ls-files", "git log --oneline", "git cat-file -p HEAD:a", "git stash list", "git branch -v", "git reflog -2", "git diff --stat HEAD~1", "git ls-files -m", "git log --pretty=x"}

// Whatever has git run a program when it reads is seen before.
func TestWhatGitWouldRunIsSeen(t *testing.T) {
	testenv.Slow(t)
	for name, setup := range map[string]string{
		"nothing": ":", "a monitor": "git config core.fsmonitor ../evil", "a monitor of the user": "git config --global core.fsmonitor ../evil", "a monitor of a file": "printf '[core]\nfsmonitor=../evil\n' >../inc; git config include.path ../../inc",
		"an external diff": "git config diff.external ../evil", "a text": "echo 'a diff=x' >.gitattributes; git config diff.x.textconv ../evil", "a diff": "echo 'a diff=x' >.gitattributes; git config diff.x.command ../evil",
		"a filter": "echo 'a filter=x' >.git/info/attributes; git config filter.x.clean ../evil", "a process": "echo 'a filter=x' >.gitattributes; git config filter.x.process ../evil",
		"a hook": "printf '#!/bin/sh\ntouch \"$MARK\"\n' >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change", "a hook elsewhere": "mkdir ../h; printf '#!/bin/sh\ntouch \"$MARK\"\n' >../h/post-index-change; chmod +x ../h/post-index-change; git config core.hooksPath ../h",
		"a pager": "git config core.pager ../evil", "a signature": "git config log.showSignature true; git config gpg.program ../evil",
		"a format":            "{ git cat-file commit HEAD | sed '/^$/,$d'; printf 'gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nx\\n'; } >../c && git update-ref HEAD $(git hash-object -t commit -w ../c); git config pretty.x format:%+GS; git config gpg.program ../evil",
		"a repository within": "git init -q sub; cd sub; git config user.name a; git config user.email a@b; echo 1 >b; git add b; git commit -qm x; cd ..; git add sub 2>/dev/null; git commit -qm sub; cd sub; git config core.fsmonitor \"$HOME/evil\"; echo 2 >b",
		"a work tree":         "git worktree add -q ../w; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor ../evil",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.must(setup)
			set, err := approve.Git(r.env)(r.dir, true)
			require.NoError(t, err)
			opts := &approval.Options{Dir: r.dir, Git: func(string, bool) (approval.Git, error) { return set, nil }}
			ran := 0
			for _, script := range reading {
				before := approval.Judge(script, opts).Verdict
				_, marked := r.run("touch a same; " + script) // Git looks at a file again that was touched, and writes the index if it is the same.
				if marked {
					ran++
					assert.Equal(t, approval.Ask, before, script)
				}
				if name == "nothing" {
					assert.Equal(t, approval.Allow, before, script)
				}
			}
			// There is no terminal for a pager, and no commit is signed.
			assert.Equal(t, name != "nothing" && name != "a pager" && name != "a signature", ran > 0)
		})
	}
}

// Behind a symbolic link, git's -C goes up to where the link leads.
func TestGitIsLookedAtBehindALink(t *testing.T) {
	testenv.Slow(t)
	r := newRepository(t)
	r.must("mkdir d; git init -q ../other && mkdir ../other/d && git -C ../other config core.fsmonitor ../evil && ln -s ../other/d l && ln -s \"$HOME/other/d\" ../m")
	opts := &approval.Options{Dir: r.dir, Git: approve.Git(r.env)}
	for script, runs := range map[string]bool{"git -C d/.. status": false, "git -C l/.. status": true, "git -C ./l/../. status": true, "git -C ../m/.. status": true, "git -C \"" + filepath.Dir(r.dir) + "/m/..\" status": true} {
		_, marked := r.run(script)
		assert.Equal(t, runs, marked, script)
		assert.Equal(t, runs, approval.Judge(script, opts).Verdict == approval.Ask, script)
	}
}

// BenchmarkGit is what a look costs.
func BenchmarkGit(b *testing.B) {
	dir, err := os.Getwd()
	require.NoError(b, err)
	look := approve.Git(nil)
	for name, worktree := range map[string]bool{"objects": false, "files": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := look(dir, worktree)
				require.NoError(b, err)
			}
		})
	}
}

func TestWhereThereIsNoRepositoryGitIsAskedInVain(t *testing.T) {
	r := newRepository(t)
	set, err := approve.Git(r.env)(filepath.Dir(r.dir), true)
	require.NoError(t, err)
	assert.Empty(t, set.Settings[1:], "but for that of the look itself")
	_, err = approve.Git(r.env)(filepath.Join(r.dir, "nosuch"), true)
	require.Error(t, err)
	_, err = approve.Git([]string{"GIT_CONFIG_COUNT=x"})(r.dir, true)
	require.Error(t, err)
}
