package approval_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
)

// plainGit is what a repository has that was cloned, and what people have.
func plainGit(string, bool) (approval.Git, error) {
	return approval.Git{Settings: []string{
		"user.name=a", "user.email=a@b", "core.repositoryformatversion=0", "core.filemode=true", "core.bare=false", "core.logallrefupdates=true", "remote.origin.url=https://host/x",
		"remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*", "branch.main.remote=origin", "branch.main.merge=refs/heads/main", "init.defaultbranch=main", "pull.rebase=true", "alias.st=status", "core.fsmonitor=false", "core.pager=less -FRX",
	}}, nil
}

func TestGitThatOnlyReadsIsAllowedWhereItRunsNothing(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"git status": approval.Allow, "git status -sb && git log --oneline -5": approval.Allow, "git diff": approval.Allow, "git diff --stat HEAD~1": approval.Allow, "git diff --cached -- a b": approval.Allow,
		"git log -p -3": approval.Allow, "git show HEAD:a": approval.Allow, "git show --stat": approval.Allow, "git branch -vv": approval.Allow, "git blame -L1,5 a": approval.Allow, "git grep -n foo": approval.Allow,
		"git ls-files | wc -l": approval.Allow, "git stash list": approval.Allow, "git remote get-url origin": approval.Allow, "git config --get user.name": approval.Allow, "git config --bool core.bare": approval.Allow, "git config edit": approval.Ask, "git config core.bare \"$x\"": approval.Ask, "git config --unset core.bare": approval.Ask, "git config --add core.bare": approval.Ask, "git cat-file -p HEAD": approval.Allow, "git reflog -5": approval.Allow,
		"git -C sub status": approval.Allow, "cd /x && git status": approval.Allow, "git rev-list --count HEAD": approval.Allow, "git tag -l 'v*'": approval.Allow, "timeout 5 git status": approval.Allow, "git worktree list": approval.Allow,

		"git commit -m x": approval.Ask, "git checkout .": approval.Ask, "git diff --output=F": approval.Ask, "git diff --ext-diff": approval.Ask, "git diff --no-index a b": approval.Ask, "git diff -O F": approval.Ask, "git grep -Oless x": approval.Ask,
		"git grep --open-files-in-pager x": approval.Ask, "git branch x": approval.Ask, "git stash": approval.Ask, "git stash drop": approval.Ask, "git stash list -p": approval.Ask, "git -p log": approval.Ask, "git -c core.pager=x log": approval.Ask,
		"git -c core.fsmonitor=x status": approval.Ask, "git --git-dir=x status": approval.Ask, "git --exec-path=x status": approval.Ask, "git -C \"$x\" status": approval.Ask, "cd \"$x\"; git status": approval.Ask, "cd ~/x; git status": approval.Ask,
		"git status; cd \"$x\"; git log": approval.Ask, "git log --show-signature": approval.Ask, "git log --format=%G?": approval.Ask, "git log --help": approval.Ask, "git status --help": approval.Ask, "git help log": approval.Ask, "git config user.name x": approval.Ask,
		"git config --edit": approval.Ask, "git config --get-urlmatch a b": approval.Ask, "git remote show origin": approval.Ask, "git remote get-url --add origin": approval.Ask, "git fetch": approval.Ask, "git status \"$x\"": approval.Ask, "git reflog expire --all": approval.Ask,
		"GIT_DIR=x git status": approval.Ask, "find . -execdir git status ';'": approval.Ask, "env -C x git status": approval.Ask, "env --chdir=x git status": approval.Ask, "git diff > a": approval.Ask, "git submodule status": approval.Ask, "git cat-file --textconv HEAD:a": approval.Ask,
		"git cat-file --batch-check": approval.Ask, "xargs git diff": approval.Ask, "popd; git status": approval.Ask, "git describe --dirty": approval.Ask, "./git status": approval.Ask, "git ls-remote": approval.Ask, "git blame --contents F a": approval.Ask,

		"git log -1 --format=%h": approval.Allow, "git log --format='%+s %-b % an'": approval.Allow, "git log --pretty=x": approval.Allow, "git log --format='%+GS'": approval.Ask, "git log --format=%-GK": approval.Ask, "git log --format='% GS'": approval.Ask,
		"git log --pretty='format:%h %+G?'": approval.Ask, "git log --format='%<(5)%+GS'": approval.Ask, "git show -s --format='%-+ GS'": approval.Ask, "git log --format='%(describe)'": approval.Ask, "git log --format=\"$x\"": approval.Ask,
		"git for-each-ref --format='%(refname)'": approval.Allow, "git for-each-ref --format='%(signature)'": approval.Ask, "git for-each-ref --format='%(*signature:grade)'": approval.Ask, "git branch --format='%(if)%(signature)%(then)x%(end)'": approval.Ask, "git tag -l --format='%(*sig)'": approval.Ask,
		"git for-each-ref --sort=-committerdate": approval.Allow, "git for-each-ref --sort=-signature": approval.Ask, "git branch --sort=signature:key": approval.Ask, "git tag -l --sort=\"$x\"": approval.Ask, "git ls-files -m": approval.Allow,
	} {
		j := approval.Judge(script, &approval.Options{Dir: "/home/me/src", Git: plainGit, Exported: typical.Exported})
		assert.Equal(t, want, j.Verdict, "%s: %v", script, j.Findings)
	}
}

func TestGitThatPrintsASecretAsks(t *testing.T) {
	const remote, get, config = "git remote -v", "git remote get-url origin", "git config --get "
	for _, row := range []struct {
		script, setting string
		want            approval.Verdict
	}{
		{remote, "remote.origin.url=https://host/x", approval.Allow}, {remote, "remote.origin.url=git@host:x", approval.Allow}, {remote, "remote.origin.url=ssh://git@host:22/x", approval.Allow}, {remote, "http.extraheader=x", approval.Allow},
		{remote, "remote.origin.url=https://me:word@host/x", approval.Ask}, {remote, "remote.origin.pushurl=https://word@host/x", approval.Ask}, {remote, "url.https://word@host/.insteadof=https://host/", approval.Ask}, {remote, "REMOTE.a.b.url=HTTPS://word@host/x", approval.Ask},
		{"git remote --verbose", "remote.origin.url=https://me:word@host/x", approval.Ask}, {get, "remote.origin.url=https://me:word@host/x", approval.Ask}, {get, "remote.origin.url=https://host/x", approval.Allow},
		{config + "remote.origin.url", "remote.origin.url=https://me:word@host/x", approval.Ask}, {config + "remote.origin.url", "remote.origin.url=https://host/x", approval.Allow}, {config + "http.extraheader", "remote.origin.url=https://host/x", approval.Allow},
		{config + "http.https://host/.extraheader", "http.https://host/.extraheader=AUTHORIZATION: basic x", approval.Ask}, {config + "GitHub.Token", "github.token=x", approval.Ask}, {"git config sendemail.smtppass", "sendemail.smtppass=x", approval.Ask},
		{config + "http.proxy", "http.proxy=socks5://me:word@host", approval.Ask}, {config + "credential.helper", "credential.helper=!echo password=x", approval.Ask}, {config + "user.name", "github.token=x", approval.Allow},
		{"git -C d remote -v", "remote.origin.url=https://me:word@host/x", approval.Ask}, {"git log --oneline", "remote.origin.url=https://me:word@host/x", approval.Allow}, {"git remote", "remote.origin.url=https://me:word@host/x", approval.Allow},
		{remote, "remote.origin.url=https://host/x?private_token=word", approval.Ask}, {remote, "url.https://host/x?private_token=word.insteadof=https://host/", approval.Ask}, {remote, "remote.compass.url=https://host/x", approval.Allow}, {get, "remote.token.url=https://host/x", approval.Allow},
		{config + "remote.compass.url", "remote.compass.url=https://host/x", approval.Allow}, {config + "http.extraheader", "http.extraheader=AUTHORIZATION: basic x", approval.Ask},
		{"git remote -v update", "remote.origin.url=https://host/x", approval.Ask},
	} {
		set := func(string, bool) (approval.Git, error) { return approval.Git{Settings: []string{row.setting}}, nil }
		j := approval.Judge(row.script, &approval.Options{Dir: "/x", Git: set})
		assert.Equal(t, row.want, j.Verdict, "%s with %s", row.script, row.setting)
		if row.want == approval.Ask {
			assert.Equal(t, approval.Ask, approval.Judge(row.script, nil).Verdict, "git is not looked at: %s", row.script)
		}
	}
	// A loop has each command with its own look at git, also where all have the bytes of one text.
	for _, script := range []string{`for i in 1; do bash -c "git log -1; git remote -v"; done`, `while ls; do sh -c "git log -1; git -C d remote -v"; done`} {
		set := func(string, bool) (approval.Git, error) {
			return approval.Git{Settings: []string{"remote.origin.url=https://me:word@host/x"}}, nil
		}
		assert.Equal(t, approval.Ask, approval.Judge(script, &approval.Options{Dir: "/x", Git: set}).Verdict, script)
	}
	for _, script := range []string{
		"git remote -v", "git config -l", "git config --get-regexp url", "git config get remote.origin.url", "git config -f .git/config -l", "git -C . remote -v", "git -C . remote $x", "git -C $x remote", "echo -v | xargs git -C . remote", "git -C . config -l", "git remote get-url --all origin", "git remote show origin", "git credential fill",
		"git credential-store get", "git var -l", "git ls-remote --get-url", `git "$x"`,
	} {
		assert.Equal(t, approval.Ask, approval.Judge(script, &approval.Options{Contained: true}).Verdict, "a sandbox keeps no secret: %s", script)
	}
	for _, script := range []string{"git config user.name; git config --get branch.main.merge", "git remote; git remote add a b", "git -C sub remote", "git status; git -C . log -1", "git ls-remote"} {
		assert.Equal(t, approval.Allow, approval.Judge(script, &approval.Options{Contained: true}).Verdict, script)
	}
	for _, name := range []string{"branch.main.remote", "user.password", "push.pushoption", "merge.x.driver", "core.sshcommand"} {
		assert.Equal(t, approval.Ask, approval.Judge("git config "+name, &approval.Options{Contained: true}).Verdict, name)
	}
}

func TestASettingThatMayRunAProgramMakesGitAsk(t *testing.T) {
	for setting, asks := range map[string][2]bool{ // git status, and git log
		"core.fsmonitor=x": {true, true}, "core.fsmonitor": {true, true}, "core.fsmonitor=true": {true, true}, "core.fsmonitor=false": {}, "CORE.FSMonitor=x": {true, true},
		"diff.external=x": {true, true}, "diff.x.textconv=y": {true, true}, "diff.x.command=y": {true, true}, "diff.a.b.textconv=y": {true, true}, "diff.x.xfuncname=y": {}, "diff.algorithm=x": {}, "diff.submodule=diff": {true, true},
		"filter.lfs.clean=x": {true, false}, "filter.lfs.process=x": {true, false}, "filter.lfs.required=true": {}, "core.pager=touch x": {true, true}, "core.pager=less; x": {true, true}, "core.pager=delta --dark": {}, "pager.log=x": {true, true}, "pager.log": {true, true},
		"pager.log=false": {}, "log.showsignature=true": {true, true}, "log.showsignature": {true, true}, "format.pretty=%G?": {true, true}, "format.pretty=oneline": {}, "pretty.x=%GS": {true, true}, "pretty.x=format:%+GS": {true, true}, "pretty.x=%-GK": {true, true}, "format.pretty=% G?": {true, true}, "format.pretty=%+s": {}, "branch.sort=-signature": {true, true}, "tag.sort=signature:key": {true, true}, "branch.sort=-committerdate": {}, "branch.signature.remote=x": {}, "core.alternaterefscommand=x": {true, true}, "core.virtualfilesystem=x": {true, true},
		"remote.origin.promisor=true": {true, true}, "extensions.partialclone=origin": {true, true}, "extensions.worktreeconfig=true": {}, "hook.x.command=y": {true, true}, "trace2.eventtarget=/x": {true, true}, "submodule.x.url=y": {true, false}, "nosuch.x=y": {true, true},
		"status.submodulesummary=true": {true, true}, "core.nosuch=y": {true, true}, "core.hookspath=x": {}, "credential.helper=x": {}, "alias.log=!x": {}, "gpg.program=x": {},
	} {
		for i, script := range []string{"git status", "git log"} {
			j := approval.Judge(script, &approval.Options{Dir: "/", Git: func(string, bool) (approval.Git, error) { return approval.Git{Settings: []string{setting}}, nil }})
			assert.Equal(t, asks[i], j.Verdict == approval.Ask, "%s: %s", setting, script)
		}
	}
	loop := `for i in 1; do sh -c "%s; git -C sub %s"; done`
	for script, asks := range map[string]bool{fmt.Sprintf(loop, "git status", "status"): true, fmt.Sprintf(loop, "git log", "log"): true, `for i in 1; do sh -c "git log; git status"; done`: true, `for i in 1; do sh -c "git log; git log -1"; done`: false} {
		j := approval.Judge(script, &approval.Options{Dir: "/x", Git: func(dir string, _ bool) (approval.Git, error) {
			if dir == "/x/sub" {
				return approval.Git{Settings: []string{"core.fsmonitor=y"}}, nil
			}
			return approval.Git{Settings: []string{"filter.x.clean=y"}}, nil
		}})
		assert.Equal(t, asks, j.Verdict == approval.Ask, "%s: %v", script, j.Findings)
	}
	j := approval.Judge("git ls-files -m", &approval.Options{Dir: "/", Git: func(string, bool) (approval.Git, error) {
		return approval.Git{Settings: []string{"filter.x.clean=y"}}, nil
	}})
	assert.Equal(t, approval.Ask, j.Verdict, "git ls-files -m reads files that are checked out")
	for name, c := range map[string]struct {
		set    approval.Git
		err    error
		status approval.Verdict
		log    approval.Verdict
	}{
		"a hook": {set: approval.Git{Hooked: true}, status: approval.Ask, log: approval.Allow}, "a repository within": {set: approval.Git{Nested: true}, status: approval.Ask, log: approval.Allow},
		"an error": {err: errors.New("no"), status: approval.Ask, log: approval.Ask},
	} {
		opts := &approval.Options{Dir: "/", Git: func(string, bool) (approval.Git, error) { return c.set, c.err }}
		assert.Equal(t, c.status, approval.Judge("git status", opts).Verdict, name)
		assert.Equal(t, c.log, approval.Judge("git log", opts).Verdict, name)
	}
	// All directories that the script may be in count.
	var asked []string
	approval.Judge("cd a && cd b; git -C c status", &approval.Options{Dir: "/x", Git: func(dir string, _ bool) (approval.Git, error) { asked = append(asked, dir); return approval.Git{}, nil }})
	assert.Equal(t, []string{"/x/a/b/c", "/x/a/c", "/x/b/c", "/x/c"}, asked)
	asked = nil
	approval.Judge("cd a/..; git -C l/.. status; git -C /l/../x status", &approval.Options{Dir: "/x", Git: func(dir string, _ bool) (approval.Git, error) { asked = append(asked, dir); return approval.Git{}, nil }})
	assert.Equal(t, []string{"/x/l/..", "/l/../x"}, asked, "behind a link, git goes up by the files")
	assert.Equal(t, approval.Ask, approval.Judge("git status", &approval.Options{Git: plainGit}).Verdict, "it is not known where")
}

// A setting that comes between the answer and the turn of the script counts.
func TestWhatWaitsIsJudgedAnewByGit(t *testing.T) {
	set := approval.Git{}
	g := approval.NewGate(nil, &approval.Options{Git: func(string, bool) (approval.Git, error) { return set, nil }})
	p, err := g.Pass(t.Context(), approval.Question{Script: "git status", Dir: "/x"})
	require.NoError(t, err)
	assert.True(t, p.Holds("/x"))
	assert.False(t, p.Holds("/y"), "in another directory git may be set up in another way")
	set.Hooked = true
	assert.False(t, p.Holds("/x"))
	refused(t, g.Check(t.Context(), "git status", "/x"))
}

// What asks without a look at git asks where that runs something.
func TestNoWayAroundIsAllowedWhereGitRunsSomething(t *testing.T) {
	evil := func(string, bool) (approval.Git, error) {
		return approval.Git{Settings: []string{"core.fsmonitor=touch x"}}, nil
	}
	for _, script := range scripts(t, "ways.txt") {
		assert.NotEqual(t, approval.Allow, approval.Judge(script, &approval.Options{Dir: "/x", Git: evil, Exported: typical.Exported}).Verdict, "%q", script)
	}
}
