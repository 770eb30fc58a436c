package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// git runs git outside, as a user would who knows nothing.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	require.NoError(t, err, "%v: %s", args, out)
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_EDITOR=true")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// gitWorkspace is a workspace with a commit in it.
func gitWorkspace(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "install git, as ./test does")
	workspace := testenv.TempDir(t)
	git(t, workspace, "init", "-q", "-b", "main")
	put(t, workspace, "one\n", "file")
	git(t, workspace, "add", "file")
	git(t, workspace, "commit", "-q", "-m", "one")
	return workspace
}

// commit is a script that commits.
const commit = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u; " +
	"echo two >file && git commit -q -a -m two 2>&1 && git gc -q 2>&1 && git switch -q -c other && echo done"

func TestGitCommitLetsACommandCommit(t *testing.T) {
	need(t)
	for mode, want := range map[sandbox.GitMode]string{sandbox.GitWritable: "done", sandbox.GitCommit: "done", sandbox.GitReadOnly: "Read-only file system"} {
		workspace := gitWorkspace(t)
		policy := sandbox.WorkspaceWrite(workspace)
		policy.FS.Git = mode
		assert.Contains(t, once(t, workspace, &policy, commit), want)
		if mode != sandbox.GitReadOnly {
			assert.Equal(t, "two", git(t, workspace, "log", "-1", "--format=%s", "other"))
			git(t, workspace, "fsck", "--strict")
		}
	}
}

// Each probe makes git run a program of the sandbox's, or take its directory for
// git's. What is there is read-only; what is not is found, and moved away.
func TestGitCommitKeepsWhatMakesGitRunPrograms(t *testing.T) {
	need(t)
	evil := "mkdir -p evil/hooks && git init -q --bare evil/git && git -C evil/git config core.fsmonitor 'touch '$PWD'/BITTEN; false'; "
	for _, row := range []struct {
		name, script string
		breaks       bool // git works no more
	}{
		{name: "hook", script: `printf '#!/bin/sh\ntouch BITTEN' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
		{name: "hook in a missing directory", script: `rm -rf .git/hooks; mkdir -p .git/hooks; printf '#!/bin/sh\ntouch BITTEN' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
		{name: "config", script: `git config core.fsmonitor "touch $PWD/BITTEN; false"`},
		{name: "config by rename", script: `cp .git/config c; printf '[core]\nfsmonitor = "touch '$PWD'/BITTEN; false"\n' >>c; mv -f c .git/config`},
		{name: "config of the worktree", script: `git config extensions.worktreeConfig true; printf '[core]\nfsmonitor = "touch '$PWD'/BITTEN; false"\n' >.git/config.worktree`},
		{name: "another directory", script: evil + `echo $PWD/evil/git >.git/commondir`},
		{name: "put aside", script: `mv .git .old && cp -r .old .git && git config core.fsmonitor "touch $PWD/BITTEN; false"`},
		{name: "a link out", script: `rm -rf .git/logs; ln -s $PWD/evil .git/COMMIT_EDITMSG; ln -s $PWD/BITTEN .git/SQUASH_MSG; ln -sf $PWD/BITTEN .git/COMMIT_EDITMSG`},
		{name: "a link out, below", script: `rm .git/logs/HEAD; ln -s $PWD/BITTEN .git/logs/HEAD`},
		{name: "a worktree", script: evil + `git worktree add -q wt 2>/dev/null; echo $PWD/evil/git >.git/worktrees/wt/commondir`},
		{name: "a repository around it", breaks: true, script: `rm .git/HEAD; mkdir objects refs worktree; git init -q --bare x; cp x/HEAD .; printf '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = worktree\nfsmonitor = "touch '$PWD'/BITTEN; false"\n' >config`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, mode := range []sandbox.GitMode{sandbox.GitWritable, sandbox.GitCommit} {
				workspace := gitWorkspace(t)
				if row.name == "hook in a missing directory" {
					require.NoError(t, os.RemoveAll(filepath.Join(workspace, ".git/hooks")))
				}
				git(t, workspace, "config", "extensions.worktreeConfig", "true")
				policy := sandbox.WorkspaceWrite(workspace)
				policy.FS.Git, policy.FS.Quarantine = mode, true
				where, violations := told(t, policy)
				sh := startWith(t, workspace, where)
				_ = says(t, sh, row.script+" 2>/dev/null")
				require.NoError(t, sh.Close())
				victim := workspace
				if row.name == "a worktree" && mode == sandbox.GitWritable {
					victim = filepath.Join(workspace, "wt")
				}
				put(t, victim, "three\n", "file")
				for _, args := range [][]string{{"status"}, {"commit", "-q", "-a", "-m", "three", "--edit"}} {
					out, err := tryGit(victim, args...)
					if mode == sandbox.GitCommit && !row.breaks { // What an attack has broken is broken.
						require.NoError(t, err, out)
					}
				}
				_, err := os.Stat(filepath.Join(workspace, "BITTEN"))
				if mode == sandbox.GitWritable {
					require.NoError(t, err, "the control")
					continue
				}
				require.Error(t, err, "violations: %v", violations())
			}
		})
	}
}

// What git reads at some other time can be written neither where it is, nor where
// it is missing without that being found.
func TestGitCommitGuardsAllThatGitTrusts(t *testing.T) {
	need(t)
	for _, name := range []string{
		"branches/x", "commondir", "config", "config.worktree", "gitdir", "hooks/x", "modules/x/config", "objects/info/alternates", "remotes/x", "worktrees/x/commondir",
	} {
		for _, there := range []bool{true, false} {
			for _, mode := range []sandbox.GitMode{sandbox.GitWritable, sandbox.GitCommit} {
				workspace := gitWorkspace(t)
				path := filepath.Join(workspace, ".git", name)
				first, _, _ := strings.Cut(name, "/")
				if first == "objects" {
					first = name
				}
				require.NoError(t, os.RemoveAll(filepath.Join(workspace, ".git", first)))
				if there {
					put(t, workspace, "as it was\n", ".git/"+name)
				}
				policy := sandbox.WorkspaceWrite(workspace)
				policy.FS.Git = mode
				where, violations := told(t, policy)
				sh := startWith(t, workspace, where)
				got := says(t, sh, fmt.Sprintf("{ mkdir -p $(dirname %s) && echo x >%[1]s; } 2>/dev/null && echo bites", path))
				require.NoError(t, sh.Close())
				if mode == sandbox.GitWritable {
					require.Equal(t, "bites", got, "the control")
					require.Empty(t, violations())
				} else if there {
					require.Empty(t, got, name)
					require.Empty(t, violations())
				} else {
					require.Equal(t, []sandbox.Violation{{Path: filepath.Join(workspace, ".git", first)}}, violations())
				}
			}
		}
	}
}

// Git runs itself in the repositories that the index names, if only to tell
// their status: it does as their configuration says.
func TestSubmodulesAreNoWayToHaveGitRunPrograms(t *testing.T) {
	need(t)
	const evil = `mkdir -p sub; rm -rf sub/.git; git init -q sub; git -C sub -c user.name=u -c user.email=u commit -q --allow-empty -m x; ` +
		`git -C sub config core.fsmonitor "touch $PWD/BITTEN; false"`
	for _, row := range []struct {
		name, script string
		before       func(workspace string)
		mode         sandbox.GitMode
	}{
		{"a submodule", evil, func(w string) {
			put(t, w, "", "sub/")
			git(t, filepath.Join(w, "sub"), "init", "-q")
			git(t, filepath.Join(w, "sub"), "commit", "-q", "--allow-empty", "-m", "x")
			git(t, w, "add", "sub")
		}, sandbox.GitReadOnly},
		{"one that is missing", evil, func(w string) {
			git(t, w, "update-index", "--add", "--cacheinfo", "160000,"+git(t, w, "rev-parse", "HEAD")+",sub")
		}, sandbox.GitReadOnly},
		{"one that is missing, to commit", evil, func(w string) {
			git(t, w, "update-index", "--add", "--cacheinfo", "160000,"+git(t, w, "rev-parse", "HEAD")+",sub")
		}, sandbox.GitCommit},
		{"a new one", evil + "; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub", func(string) {}, sandbox.GitCommit},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, mode := range []sandbox.GitMode{sandbox.GitWritable, row.mode} {
				workspace := gitWorkspace(t)
				row.before(workspace)
				policy := sandbox.WorkspaceWrite(workspace)
				policy.FS.Git, policy.FS.Quarantine = mode, true
				where, violations := told(t, policy)
				sh := startWith(t, workspace, where)
				_ = says(t, sh, "("+row.script+") 2>/dev/null") // Some of it is refused.
				require.NoError(t, sh.Close())
				_, _ = tryGit(workspace, "status", "-s") // A submodule that was moved away may be missed.
				_, err := os.Stat(filepath.Join(workspace, "BITTEN"))
				if mode == sandbox.GitWritable {
					require.NoError(t, err, "the control")
				} else {
					require.Error(t, err, "violations: %v", violations())
				}
			}
		})
	}
}

// The .git of a worktree names directories that the policy shows besides: they
// are git's by that name too.
func TestTheRepositoryOfAWorktreeIsGitsToo(t *testing.T) {
	need(t)
	probe := fmt.Sprintf(`%s; (echo x >$(git rev-parse --git-common-dir)/hooks/pre-commit) 2>/dev/null && echo bites
(echo x >$(git rev-parse --git-dir)/commondir) 2>/dev/null && echo bites
(echo x >.git) 2>/dev/null && echo bites; mv .git .old 2>/dev/null && echo bites; :`, commit)
	for _, row := range []struct {
		mode sandbox.GitMode
		want string
	}{
		{sandbox.GitWritable, "done\nbites\nbites\nbites\nbites"},
		{sandbox.GitCommit, "done"},
		{sandbox.GitReadOnly, "Read-only file system"},
	} {
		main := gitWorkspace(t)
		workspace := filepath.Join(testenv.TempDir(t), "wt")
		git(t, main, "worktree", "add", "-q", workspace)
		policy := sandbox.WorkspaceWrite(workspace).With(nil, []string{main})
		policy.FS.Git = row.mode
		got := once(t, workspace, &policy, probe)
		assert.Contains(t, got, row.want)
		if row.mode != sandbox.GitWritable {
			assert.NotContains(t, got, "bites")
		}
		if row.mode == sandbox.GitReadOnly {
			policy.FS.ExtraRW[0].Src = filepath.Join(main, ".git/objects")
			policy.FS.ExtraRW[0].Dst = ""
			_, err := sandbox.New(policy)
			require.ErrorIs(t, err, sandbox.ErrMount)
			assert.ErrorContains(t, err, "would be writable by it; choose a directory beside it, or set FS.Git=GitWritable to accept")
		}
	}
}
