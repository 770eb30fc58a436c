package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/sandbox"
)

// gitProbes try to make programs of the host run something: git, an editor, an
// agent.
var gitProbes = []probe{
	{name: "git: a hook", policy: hasRepository, script: `echo x >.git/hooks/pre-commit; mkdir .git/hooks/x`},
	{name: "git: its config", policy: hasRepository, script: `echo x >>.git/config; git config core.pager x`},
	{name: "git: its commondir", policy: hasRepository, script: `echo ../evil >.git/commondir`},
	{name: "git: it is deleted", policy: hasRepository, script: `rm -rf .git`},
	{name: "git: it is put aside", policy: hasRepository, script: `mv .git old; cp -r old .git; echo x >.git/hooks/pre-commit`},
	{name: "git: it is exchanged", policy: hasRepository, script: `mkdir new; $TOOL exchange .git new`},
	{name: "git: what is known of it", policy: hasRepository, script: `chmod 777 .git .git/config; touch .git/config; $TOOL xattr .git/config`},
	{name: "git: a hard link to its config", policy: hasRepository, script: `ln .git/config hard; echo x >>hard`},
	{name: "git: a descriptor of its config", policy: hasRepository, script: `exec 3<.git/config; echo x >>/proc/self/fd/3; ln -L /proc/self/fd/3 hard; echo x >>hard`},
	{name: "git: its mount is taken off", policy: hasRepository, script: `umount .git; umount -l .git; mount -o remount,rw,bind .git; echo x >.git/hooks/x`},
	{name: "git: a mount in a namespace", policy: hasRepository, script: `unshare -Urm bash -c 'umount .git; mount -o remount,rw,bind .git; echo x >.git/hooks/x'`},
	{name: "git: a nested repository", policy: nested, script: `echo x >>sub/repo/.git/config; rm -rf sub/repo/.git/hooks`},
	{name: "git: above a nested repository", policy: nested, script: `mv sub/repo sub/old; mv sub old; mkdir -p sub/repo; cp -r old/repo/.git old/.git sub/repo; cp -r sub/old/.git sub/repo; echo x >>sub/repo/.git/config`},
	{name: "git: above a nested repository, exchanged", policy: nested, script: `mkdir -p new/repo; $TOOL exchange sub new; $TOOL exchange sub/repo new/repo`},
	{name: "git: the file of a worktree", policy: worktree, script: `echo "gitdir: $W/evil" >.git; mv .git old; rm -f .git`},
	{name: "git: what the file of a worktree names", policy: worktree, script: `echo x >>$OUT/repo/.git/config; echo x >$OUT/repo/.git/hooks/x; echo x >>$OUT/repo/.git/worktrees/project/commondir`},
	{name: "git: a hook, where one may commit", policy: committing, script: `git commit -qm x --allow-empty; echo x >.git/hooks/pre-commit; mv .git/hooks .git/old`},
	{name: "git: its config, where one may commit", policy: committing, script: `git config core.hooksPath evil; mv .git/config .git/old; rm -f .git/config`},

	{name: "what an editor runs", policy: has(".vscode/tasks.json"), script: `echo x >.vscode/tasks.json; mv .vscode old`},
	{name: "what a shell runs on entry", policy: has(".envrc"), script: `echo x >.envrc; mv .envrc old; rm -f .envrc`},
	{name: "what an agent starts", policy: has(".mcp.json"), script: `echo x >.mcp.json; ln .mcp.json hard; echo x >>hard`},
	{name: "what an agent is told", policy: has(".claude/settings.json"), script: `echo x >.claude/settings.json; rm -rf .claude`},

	{name: "what is protected is made", own: true, try: tripped(`mkdir -p .vscode; echo x >.vscode/tasks.json`)},
	{name: "git: a repository is made", own: true, try: tripped(`git init -q .`)},
	{name: "git: a link is made", own: true, try: tripped(`ln -s $OUT .git`)},
	{name: "git: a bare repository is made", own: true, try: tripped(`mkdir objects refs; echo 'ref: refs/heads/x' >HEAD`)},
	{name: "what is protected is put where a link leads", policy: func(w *world, p *sandbox.Policy) {
		p.FS.Protect, p.FS.Quarantine = []string{"sub/secret"}, true
	}, try: func(w *world) bool {
		w.do(`ln -s $OUT sub`)
		if w.control { // Who moves it away without a look at what is above it moves the host's.
			return os.Rename(filepath.Join(w.Work, "sub", "secret"), filepath.Join(w.Work, "moved")) == nil
		}
		w.do("echo alive")
		return false
	}},
	{name: "git: a commondir is made, where one may commit", policy: committing, try: tripped(`echo ../evil >.git/commondir`)},
	{name: "git: a link for git to write through, where one may commit", policy: committing, try: tripped(`ln -sf $OUT/plain .git/COMMIT_EDITMSG`)},
}

// hasRepository makes the workspace one, and guards it.
func hasRepository(w *world, _ *sandbox.Policy) { w.repository(w.Work) }

func (w *world) repository(dir string) {
	w.dir(dir)
	w.git(dir, "init", "-q")
	w.put(filepath.Join(dir, ".git", "hooks", "README"), "none\n")
	w.guard(filepath.Join(dir, ".git"))
}

// nested makes a repository deeper down, and protects it.
func nested(w *world, p *sandbox.Policy) {
	w.repository(filepath.Join(w.Work, "sub", "repo"))
	p.FS.Protect = append(slices.Clone(sandbox.DefaultProtect), "sub/repo/.git")
}

// worktree makes the workspace one, of a repository outside that can be written
// as far as the binds go.
func worktree(w *world, p *sandbox.Policy) {
	repo := filepath.Join(w.Out, "repo")
	w.repository(repo)
	w.git(repo, "commit", "-q", "--allow-empty", "-m", "first")
	require.NoError(w, os.Remove(w.Work))
	w.git(repo, "worktree", "add", "-q", w.Work)
	w.guard(filepath.Join(w.Work, ".git"))
	p.FS.ExtraRW = append(p.FS.ExtraRW, sandbox.Bind{Src: repo})
}

// committing makes a repository into which may be committed. Of it, what git
// makes of itself is guarded.
func committing(w *world, p *sandbox.Policy) {
	w.repository(w.Work)
	w.guarded = []string{filepath.Join(w.Work, ".git", "hooks"), filepath.Join(w.Work, ".git", "config")}
	p.FS.Git = sandbox.GitCommit
}

// has makes a file that is protected.
func has(path string) func(*world, *sandbox.Policy) {
	return func(w *world, _ *sandbox.Policy) {
		w.put(filepath.Join(w.Work, path), "plain\n")
		w.guard(filepath.Join(w.Work, path))
	}
}

// git runs it as the user would, outside of any sandbox.
func (w *world) git(dir string, args ...string) {
	w.Helper()
	cmd := w.gitCommand(dir, args...)
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "git %v: %s", args, out)
}

func (w *world) gitCommand(dir string, args ...string) *exec.Cmd {
	cmd := w.who.command("/usr/bin/env", append([]string{"git"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(cmd.Env,
		"PATH="+usualPath, "HOME="+w.Home, "OUT="+w.Out, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=U", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=u@example.org",
		"GIT_CONFIG_KEY_2=safe.directory", "GIT_CONFIG_VALUE_2=*") // Whosever the repository is.
	return cmd
}

// tripped is for what is not there to be protected: it can be made, but the next
// command says so instead of running.
func tripped(script string) func(*world) bool {
	return func(w *world) bool {
		w.do(script)
		return w.says("echo bites", "bites")
	}
}
